"""`svc diff`: shows what a sync would do."""

from svc_cli.commands.daily.sync import DiffFlags, SyncFlags, run
from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.exits import Exit

app = new_app()


@command(app, "diff", "svc diff docs -b handbook", "svc diff --all", "svc diff docs -b handbook --prune delete")
def diff(call: Invocation, flags: DiffFlags) -> Exit:
    """Show what `svc sync` would do, without changing anything.

    Exits with code 10 if a sync would change anything.
    """
    shared = {name: getattr(flags, name) for name in DiffFlags.__dataclass_fields__}
    return run(call, SyncFlags(**shared, dry_run=True, exit_code=True))
