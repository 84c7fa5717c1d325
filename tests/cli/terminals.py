"""`svc` on a pseudo terminal, with somebody who types."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from typing import Any

from tests.acceptance.forks import Fork
from tests.acceptance.installations import Installation


def on_terminal(
    installation: Installation, *words: str, typed: str = "", after: str = "", columns: int = 80, **environ: str
) -> tuple[int, str]:
    """Exit code and everything that was shown; types when `after` is shown, or before anything is asked."""
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    variables = {**installation.environ, "TERM": "xterm-256color", **environ}
    for name in {"CI", "NO_COLOR", "COLUMNS"} - set(environ):
        variables.pop(name, None)
    streams = {"stdin": secondary, "stdout": secondary, "stderr": secondary}
    options: dict[str, Any] = {"env": variables, "cwd": installation.root, **streams}
    process: subprocess.Popen[bytes]
    if after:
        # What asks for a secret looks for the terminal of its session, which a fork shares with the tests.
        words = (sys.executable, "-m", "svc_cli", *words)
        process = subprocess.Popen(words, start_new_session=True, **options)
    else:
        process = Fork(("svc_cli", *words), **options)
    os.close(secondary)
    shown = b""
    while after.encode() not in shown:
        shown += _read(primary)
    os.write(primary, typed.encode())
    while chunk := _read(primary):
        shown += chunk
    os.close(primary)
    return process.wait(60), shown.decode("utf-8").replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    """The next bytes on the screen; none once the other end is closed, which Linux reports as an error."""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
