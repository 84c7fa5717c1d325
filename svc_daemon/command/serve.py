"""`svc-daemon serve`: reads the settings and runs the server. Imports no parser of command lines."""

import gc
import os
from contextlib import suppress
from pathlib import Path

from svc_daemon import exits
from svc_daemon.core.shortages import find_shortage
from svc_daemon.errors import ServiceError
from svc_daemon.paths import DataFiles
from svc_daemon.settings.daemon import Role, Settings, find_misspelled
from svc_daemon.settings.limits import SettingError


def _read_settings(listen: str | None, role: Role, faults: Path | None) -> Settings:
    """Read the settings from the environment, and warn of likely mistakes. Raises SettingError or OSError."""
    settings = Settings.from_environ(os.environ, listen, role, faults)
    for name, meant in find_misspelled(os.environ).items():
        exits.print_note(f"warning: {name} has no effect{f': {meant} is probably meant' if meant else ''}.")
    if warning := _find_other_owner(DataFiles(settings.data_dir)):
        exits.print_note(f"warning: {settings.data_dir} is {warning}: run the service as that user.")
    return settings


def _find_other_owner(files: DataFiles) -> str | None:
    """Say whose data root would use, and what follows from that; None if it is root's, or another user asks."""
    if os.geteuid() != 0:
        return None
    with suppress(OSError):
        if owner := files.state.stat().st_uid:
            return f"the data of user {owner}, who can't open what root stores there"
    with suppress(OSError):
        if owner := files.root.stat().st_uid:
            return f"the folder of user {owner}, who can replace what root stores there"
    return None


def check(listen: str | None, role: Role, faults: Path | None) -> None:
    """Check the settings, what they name, and whether this release can use the state; a service may be using it.

    Exits with an error if the service could not start.
    """
    from svc_daemon.core.access.urls import parse_allowed
    from svc_daemon.process.telemetry import open_traces
    from svc_daemon.server.certificates import load_certificate
    from svc_daemon.store.migrations import list_pending

    try:
        settings = _read_settings(listen, role, faults)
        parse_allowed(settings.fetch_allow)
        if settings.tls is not None:
            load_certificate(settings.tls)
        if settings.has_traces:
            open_traces().close()
        state = DataFiles(settings.data_dir).state
        if settings.cluster is None and state.exists():
            list_pending(state, is_in_use=True)
    except (SettingError, OSError) as error:
        exits.fail(str(error), exits.EXIT_USAGE)
    except ServiceError as error:
        exits.fail(error.message, exits.EXIT_FAILED)


def start(listen: str | None = None, role: Role = Role.ALL, faults: Path | None = None) -> None:
    """Run the service until SIGTERM or Ctrl-C. Exits with an error if it fails."""
    try:
        settings = _read_settings(listen, role, faults)
    except (SettingError, OSError) as error:
        exits.fail(str(error), exits.EXIT_USAGE)
    if settings.tls is None and not settings.is_loopback:
        exits.print_note(
            f"warning: {settings.host} can be reached from other machines; API keys are sent there unencrypted. "
            "Set SVC_TLS_CERT and SVC_TLS_KEY to serve HTTPS."
        )

    # Imported only now, so that an invalid setting is reported at once.
    from svc_daemon.data_directory import DirectoryLocked
    from svc_daemon.server.sockets import TooLittle, take_allowances

    try:
        take_allowances()
    except TooLittle as error:
        exits.fail(str(error), exits.EXIT_FAILED)

    # The objects that these imports create live as long as the process, so exclude them from garbage collection.
    gc.disable()
    from svc_daemon.server.server import serve as run
    from svc_daemon.server.sockets import AddressTaken

    gc.freeze()
    gc.enable()
    try:
        run(settings)
    except DirectoryLocked as error:
        exits.fail(str(error), exits.EXIT_LOCKED)
    except AddressTaken as error:
        exits.fail(str(error), exits.EXIT_ADDRESS)
    except SettingError as error:
        exits.fail(str(error), exits.EXIT_USAGE)
    except ServiceError as error:
        exits.fail(error.message, exits.EXIT_TEMPORARY if find_shortage(error) else exits.EXIT_FAILED)
    except OSError as error:
        exits.fail(f"{error.filename or 'The system refused'}: {error.strerror}.", exits.EXIT_FAILED)
