"""Consoles with recorded streams, pseudo-terminals with typed input, and what several tests share."""

import fcntl
import io
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from svc_cli.console import Console
from tests.acceptance.forks import Fork
from tests.acceptance.installations import Finished, Installation


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


Json = dict[str, Any]

#: DEL and all characters above it that Unicode calls controls, formats, or separators of lines and paragraphs, less the
#: two joiners. The block of tags counts as a whole.
HIDDEN = [
    chr(code)
    for code in (*range(0x7F, 0x20000), *range(0xE0000, 0xE1000))
    if unicodedata.category(chr(code)) in {"Cc", "Cf", "Zl", "Zp"} or 0xE0000 <= code < 0xE0080
    if code not in {0x200C, 0x200D}
]

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="the results are compared with those of git")


def write(folder: Path, *names: str, data: bytes = b"text") -> None:
    """Write files with these names and bytes, and create missing folders."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def only(finished: Finished) -> Json:
    """Return the only item of a report."""
    (item,) = finished.json["items"]
    return dict(item)


class Terminal(io.StringIO):
    """A stream that reports itself as a terminal."""

    def isatty(self) -> bool:
        if self.closed:
            raise ValueError("I/O operation on closed file")
        return True


@dataclass
class Recorded:
    console: Console
    out: io.StringIO
    err: io.StringIO


#: `make(format, terminal=…, **environ)`.
MakeConsole = Callable[..., Recorded]
#: `svc(*arguments, stdin=…)`.
RunSvc = Callable[..., Finished]
