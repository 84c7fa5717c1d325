"""`svc diff`: what a sync would do."""

from svc_cli.commands.options import Invocation, command, new_app
from svc_cli.commands.sync import DiffFlags, SyncFlags, run
from svc_cli.exits import Exit

app = new_app()


@command(app, "diff")
def diff(call: Invocation, flags: DiffFlags) -> Exit:
    """Show what `svc sync` would do; exit 10 when there is something to do. Nothing is changed."""
    shared = {name: getattr(flags, name) for name in DiffFlags.__dataclass_fields__}
    return run(call, SyncFlags(**shared, dry_run=True, exit_code=True))
