"""`svc-daemon`: runs and administers the service on its own machine. It uses the same exit codes as `svc`."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.completion import get_completion_inspect_parameters, get_completion_script  # type: ignore[attr-defined]

from svc_daemon.command.admin import keys, search, teams
from svc_daemon.command.backup import backup, restore
from svc_daemon.command.groups import new_group
from svc_daemon.command.model import JsonFlag, models
from svc_daemon.command.move import migrate, move
from svc_daemon.command.serve import check, start
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.exits import EXIT_DONE, EXIT_FAILED, EXIT_MISSING, EXIT_USAGE, print_result, refuse, refuse_directory
from svc_daemon.paths import data_dir
from svc_daemon.settings.daemon import Role
from svc_daemon.settings.limits import SettingError
from svc_daemon.settings.servers import ClusterSettings
from svc_daemon.wire.light.versions import API_RANGE, VERSION

#: The variable with which the completion scripts ask for the words to choose from.
COMPLETE = "_SVC_DAEMON_COMPLETE"

app = new_group("svc-daemon", "Run and administer the svc service on the machine that stores its data.")
for group in (teams, keys, search, models):
    app.add_typer(group)
app.command("move")(move)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"svc-daemon {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Run and administer the svc service on the machine that stores its data.

    Settings are environment variables; docs/reference/settings.md lists them.
    """


@app.command()
def serve(
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Listen on this address and port. With an address other than loopback, other machines can connect.",
        ),
    ] = None,
    role: Annotated[
        Role,
        typer.Option(
            help="In a cluster, only answer requests (api), only do background work (worker), or do both (all)."
        ),
    ] = Role.ALL,
    faults: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Make requests fail as this file describes, to test clients. The data directory must be new, "
            "or created with this option.",
        ),
    ] = None,
    only_check: Annotated[
        bool,
        typer.Option("--check", help="Only check the settings, the files that they name and the state; start nothing."),
    ] = False,
) -> None:
    """Run the service in the foreground until SIGTERM or Ctrl-C."""
    (check if only_check else start)(listen, role, faults)


@app.command()
def verify(
    read_data: Annotated[
        bool,
        typer.Option("--read-data", help="Also read all stored files and the complete index, which takes longer."),
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair problems for which the correct repair is certain.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Check the stored data for damage, and repair it with --repair.

    The service must be stopped, except in a cluster. Exits with code 1 if there are problems.
    """
    from svc_daemon.cluster.verify import verify_cluster
    from svc_daemon.data_directory import DirectoryRefused
    from svc_daemon.offline.verify import verify_directory
    from svc_daemon.provider.errors import ProviderError

    try:
        cluster = ClusterSettings.from_environ(os.environ)
        if cluster is not None:
            verdict = verify_cluster(cluster, os.environ, read_data=read_data, repair=repair)
        else:
            verdict = verify_directory(data_dir(os.environ), read_data=read_data, repair=repair)
    except SettingError as error:
        refuse("svc_usage", str(error), EXIT_USAGE, as_json)
    except DirectoryRefused as error:
        refuse_directory(error, as_json)
    except NotFound as error:
        refuse("svc_data_dir_not_found", error.message, EXIT_MISSING, as_json)
    except (ServiceError, ProviderError, OSError) as error:
        refuse("svc_data_dir_unreadable", getattr(error, "message", str(error)), EXIT_USAGE, as_json)
    print_result(verdict.as_json(), "\n".join(verdict.lines()), as_json)
    raise SystemExit(EXIT_DONE if verdict.is_whole else EXIT_FAILED)


app.command()(backup)
app.command()(restore)
app.command()(migrate)


@app.command()
def version(as_json: JsonFlag = False) -> None:
    """Print the version number."""
    print_result({"version": VERSION, "api": API_RANGE}, VERSION, as_json)


@app.command()
def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish", "powershell"],
        typer.Argument(metavar="SHELL", help="The shell: bash, zsh, fish or powershell."),
    ],
) -> None:
    """Print the script that completes svc-daemon commands in a shell.

    bash and zsh: add this line to ~/.bashrc or ~/.zshrc: eval "$(svc-daemon completion bash)", or zsh.
    """
    print(get_completion_script(prog_name="svc-daemon", complete_var=COMPLETE, shell=shell))


@app.command("help")
def show_help(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="The command, such as `backup` or `team create`.")
    ] = None,
) -> None:
    """Show the help of svc-daemon or of one of its commands, as `--help` does."""
    context: Any = ctx.find_root()
    for word in words or []:
        inner = context.command.get_command(context, word) if hasattr(context.command, "get_command") else None
        if inner is None:
            refuse("svc_usage", f"There is no command `{context.command_path} {word}`.", EXIT_USAGE, False)
        context = inner.context_class(inner, info_name=word, parent=context)
    print(context.get_help())


def main() -> None:
    """Run `svc-daemon`."""
    if COMPLETE in os.environ:
        get_completion_inspect_parameters()  # makes the shells known, as Typer does for options of its own
    app()
