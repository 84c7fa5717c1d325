"""`svc`: the one place where an error becomes a line and an exit code.

`svc --version` is answered before anything is imported; everything else loads when it is needed.
"""

import os
import sys
from contextlib import suppress
from typing import NoReturn

from svc_daemon.wire.versions import VERSION


def main() -> NoReturn:
    """Entry point of the `svc` command; never returns."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        with suppress(OSError):  # `run` reports the error if standard output can't be written
            os.write(1, f"svc {VERSION}\n".encode())
            sys.exit(0)
    import atexit
    import signal

    # Python's own handler would show a traceback of whatever is being imported.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from svc_cli.exits import Exit
    from svc_cli.interrupts import leave

    # Before the command itself runs, nothing has to be stopped.
    signal.signal(signal.SIGINT, leave)
    # At its very end Python would let the signal end the process, though the run is over and its exit code is decided.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    from svc_cli.app import run

    try:
        code = run(arguments)
    except KeyboardInterrupt:  # interrupted while the last line was written
        code = Exit.INTERRUPTED
    signal.signal(signal.SIGINT, leave)
    if code == Exit.INTERRUPTED:
        os._exit(code)  # Python would wait for threads whose requests nobody answers
    sys.exit(code)


if __name__ == "__main__":
    main()
