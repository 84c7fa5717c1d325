"""How the service begins: settings, process limits, then all the rest of it, loaded as late and as fast as can be."""

import gc
import os

from svc_daemon.errors import ServiceError
from svc_daemon.exits import EXIT_ADDRESS, EXIT_FAILED, EXIT_LOCKED, EXIT_USAGE, fail, print_note
from svc_daemon.settings import SettingError, Settings


def start(listen: str | None = None) -> None:
    """Run the service until SIGTERM or Ctrl-C, with the settings of this environment; ends the process."""
    try:
        settings = Settings.from_environ(os.environ, listen)
    except SettingError as error:
        fail(str(error), EXIT_USAGE)
    if not settings.is_loopback:
        print_note(f"warning: {settings.host} can be reached from other machines; API keys go there in clear.")

    # Loaded here, so that a wrong setting is reported at once.
    from svc_daemon.directories import DirectoryLocked
    from svc_daemon.process_limits import TooLittle, take_allowances

    try:
        take_allowances()
    except TooLittle as error:
        fail(str(error), EXIT_FAILED)

    # What follows takes memory, and lives as long as the process: no collection has to look through it, now or later.
    gc.disable()
    from svc_daemon.listening import AddressTaken
    from svc_daemon.server import serve as run

    gc.freeze()
    gc.enable()
    try:
        run(settings)
    except DirectoryLocked as error:
        fail(str(error), EXIT_LOCKED)
    except AddressTaken as error:
        fail(str(error), EXIT_ADDRESS)
    except SettingError as error:
        fail(str(error), EXIT_USAGE)
    except ServiceError as error:
        fail(error.message, EXIT_FAILED)
    except OSError as error:
        fail(f"{error.filename or 'The system refused'}: {error.strerror}.", EXIT_FAILED)
