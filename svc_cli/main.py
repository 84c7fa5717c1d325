"""The entry point of `svc`. Imports other modules only when they are needed, so that `svc --version` is fast."""

import os
import sys
from contextlib import suppress
from typing import NoReturn

from svc_daemon.wire.light.versions import VERSION

#: The command that the completion scripts run at each TAB.
BUCKET_NAMES = ["bucket", "ls", "--names", "--no-autostart"]
#: The beginning of those for other names.
NAMES = ["completion", "names"]


def main() -> NoReturn:
    """Run `svc` with the arguments of the process, and exit."""
    use_utf8()
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        with suppress(OSError):  # if this fails, `run` below reports the error
            os.write(1, f"svc {VERSION}\n".encode())
            sys.exit(0)
    import atexit
    import gc
    import signal

    # Imports create many objects but hardly any garbage. `invocations.command` enables the collector again later.
    gc.disable()
    # Otherwise Python would search all objects for garbage once more before the process ends.
    atexit.register(gc.freeze)
    # Python's own handler would print a traceback if an import is interrupted.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from svc_cli.interrupts import ENDING, catch, end_early, leave

    catch(end_early)
    # Ignore Ctrl-C during Python's shutdown.
    atexit.register(catch, signal.SIG_IGN)
    if arguments == BUCKET_NAMES or arguments[:2] == NAMES:
        from svc_cli.commands.machine.completed_names import write_bucket_names, write_names

        if write_names(arguments[2:]) if arguments[:2] == NAMES else write_bucket_names():
            sys.exit(0)
    from svc_cli.app import run

    try:
        code = run(arguments)
    except KeyboardInterrupt as interrupt:  # interrupted while output was being flushed
        code = 128 + (interrupt.args or (signal.SIGINT,))[0]
    catch(leave)
    if code - 128 in ENDING:
        os._exit(code)  # `sys.exit` would wait for threads, whose requests may never end
    sys.exit(code)


def use_utf8() -> None:
    """Begin again in UTF-8 mode if the locale has another encoding, in which files would get other names."""
    if sys.getfilesystemencoding() != "utf-8":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 - the same program


if __name__ == "__main__":
    main()
