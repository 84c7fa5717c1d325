"""The entry point of `svc`: prepares the process for Ctrl-C, runs `app.run`, and exits with its exit code.

`svc --version` is answered before anything else is imported; other modules are imported when they are needed.
"""

import os
import sys
from contextlib import suppress
from typing import NoReturn

from svc_daemon.wire.versions import VERSION

#: The arguments with which the completion scripts list the buckets at each TAB.
BUCKET_NAMES = ["bucket", "ls", "--names", "--no-autostart"]


def main() -> NoReturn:
    """Entry point of the `svc` command; never returns."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        with suppress(OSError):  # if standard output can't be written, `run` below reports the error
            os.write(1, f"svc {VERSION}\n".encode())
            sys.exit(0)
    import atexit
    import signal

    # Python's default handler would print a traceback if an import is interrupted.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from svc_cli.exits import Exit
    from svc_cli.interrupts import leave

    # Before the command runs, there is nothing to clean up, so Ctrl-C can end the process immediately.
    signal.signal(signal.SIGINT, leave)
    # Ignore Ctrl-C during Python's shutdown, when the exit code has already been decided.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    if arguments == BUCKET_NAMES:
        from svc_cli.bucket_names import write_bucket_names

        if write_bucket_names():
            sys.exit(0)
    from svc_cli.app import run

    try:
        code = run(arguments)
    except KeyboardInterrupt:  # interrupted while output was being flushed
        code = Exit.INTERRUPTED
    signal.signal(signal.SIGINT, leave)
    if code == Exit.INTERRUPTED:
        # Don't use `sys.exit` here: it waits for threads, whose requests may never end.
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
