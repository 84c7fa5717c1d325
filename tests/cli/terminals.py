"""`svc` on a pseudo terminal, with somebody who types."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

from tests.acceptance.installations import Installation


def on_terminal(
    installation: Installation, *words: str, typed: str = "", columns: int = 80, **environ: str
) -> tuple[int, str]:
    """Exit code and everything that was shown; what is typed stands ready before anything is asked."""
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    variables = {**installation.environ, "TERM": "xterm-256color", **environ}
    for name in {"CI", "NO_COLOR", "COLUMNS"} - set(environ):
        variables.pop(name, None)
    process = subprocess.Popen(
        [sys.executable, "-m", "svc_cli", *words],
        env=variables,
        cwd=installation.root,
        stdin=secondary,
        stdout=secondary,
        stderr=secondary,
    )
    os.close(secondary)
    os.write(primary, typed.encode())
    shown = b""
    while chunk := read_shown(primary):
        shown += chunk
    os.close(primary)
    return process.wait(60), shown.decode("utf-8").replace("\r\n", "\n")


def read_shown(descriptor: int) -> bytes:
    """The next bytes on the screen; none once the other end is closed, which Linux reports as an error."""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
