"""`svc-daemon`: what runs on the server itself. Exit codes are those of the command line's table."""

import os
import sys
from typing import Annotated

import typer

from svc_daemon.errors import ServiceError
from svc_daemon.settings import SettingError, Settings
from svc_daemon.wire.versions import VERSION

EXIT_FAILED, EXIT_USAGE, EXIT_LOCKED, EXIT_ADDRESS = 1, 2, 11, 12

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


def _fail(message: str, code: int) -> None:
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(code)


def main() -> None:
    """Entry point of the script."""
    app()
