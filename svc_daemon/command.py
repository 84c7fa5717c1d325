"""`svc-daemon`: what runs on the server itself. Exit codes are those of the command line's table."""

import json
import os
import sys
from typing import Annotated, NoReturn

import typer

from svc_daemon.errors import ServiceError
from svc_daemon.paths import data_dir
from svc_daemon.settings import SettingError, Settings
from svc_daemon.wire.versions import VERSION

EXIT_DONE, EXIT_FAILED, EXIT_USAGE, EXIT_NOT_FOUND, EXIT_LOCKED, EXIT_ADDRESS = 0, 1, 2, 5, 11, 12
#: What a program reads of a directory that can't be looked at.
_CODES = {
    EXIT_USAGE: "svc_data_dir_unreadable",
    EXIT_NOT_FOUND: "svc_data_dir_not_found",
    EXIT_LOCKED: "svc_data_dir_locked",
}

app = typer.Typer(
    name="svc-daemon",
    help="The service behind svc: runs on the machine that keeps the data.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def options() -> None:
    """Every setting is an environment variable; docs/settings.md lists them."""


@app.command()
def serve(
    listen: Annotated[
        str | None, typer.Option(help="Address and port; anything but loopback is reachable by others.")
    ] = None,
) -> None:
    """Run the service until it is told to stop (SIGTERM, Ctrl-C)."""
    try:
        settings = Settings.from_environ(os.environ, listen)
    except SettingError as error:
        _fail(str(error), EXIT_USAGE)
    if not settings.is_loopback:
        print(
            f"warning: {settings.host} can be reached from other machines; API keys go there in clear.", file=sys.stderr
        )
    _run(settings)


@app.command()
def verify(
    read_data: Annotated[bool, typer.Option("--read-data", help="Read every stored byte and every word, too.")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended without guessing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON value.")] = False,
) -> None:
    """Look for broken promises in the data directory of a service that is stopped: exit 0 whole, 1 problems."""
    from svc_daemon.offline import NoDirectory, verify_directory
    from svc_daemon.provider.errors import ProviderError
    from svc_daemon.server import DirectoryLocked

    try:
        verdict = verify_directory(data_dir(os.environ), read_data=read_data, repair=repair)
    except DirectoryLocked as error:
        _fail(f"{error} Stop it first: svc daemon stop.", EXIT_LOCKED, as_json=as_json)
    except NoDirectory as error:
        _fail(str(error), EXIT_NOT_FOUND, as_json=as_json)
    except (ServiceError, ProviderError, OSError) as error:
        _fail(getattr(error, "message", str(error)), EXIT_USAGE, as_json=as_json)
    print(json.dumps(verdict.as_json()) if as_json else "\n".join(verdict.lines()))
    raise SystemExit(EXIT_DONE if verdict.is_whole else EXIT_FAILED)


@app.command()
def version() -> None:
    """Print the release."""
    print(VERSION)


def _run(settings: Settings) -> None:
    # Loaded here, so that a wrong setting is told at once.
    from svc_daemon.server import AddressTaken, DirectoryLocked
    from svc_daemon.server import serve as run

    try:
        run(settings)
    except DirectoryLocked as error:
        _fail(str(error), EXIT_LOCKED)
    except AddressTaken as error:
        _fail(str(error), EXIT_ADDRESS)
    except SettingError as error:
        _fail(str(error), EXIT_USAGE)
    except ServiceError as error:
        _fail(error.message, EXIT_FAILED)


def _fail(message: str, code: int, *, as_json: bool = False) -> NoReturn:
    if as_json:
        error = {"code": _CODES[code], "message": message, "retryable": False, "details": {}}
        print(json.dumps({"error": error, "exit_code": code}))
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(code)


def main() -> None:
    """Entry point of the script."""
    app()
