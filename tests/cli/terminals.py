"""Run `svc` on a pseudo-terminal and type input."""

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
    """Return the exit code and the output; type `typed` as soon as `after` is shown, or at once without it."""
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    variables = {**installation.environ, "TERM": "xterm-256color", **environ}
    for name in {"CI", "NO_COLOR", "COLUMNS"} - set(environ):
        variables.pop(name, None)
    streams = {"stdin": secondary, "stdout": secondary, "stderr": secondary}
    options: dict[str, Any] = {"env": variables, "cwd": installation.root, **streams}
    process: subprocess.Popen[bytes]
    if after:
        # A prompt for a secret opens the terminal of its session, and a fork would share the session of the tests.
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
    """Read the next output; return nothing once the other end is closed, which Linux reports as an error."""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
