"""Consoles with recorded streams, and helpers that several tests of the command line share."""

import io
import shutil
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from svc_cli.console import Console
from tests.acceptance.installations import Finished

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
