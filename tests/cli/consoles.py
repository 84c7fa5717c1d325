"""Consoles over recorded streams, and the types of the fixtures that make them."""

import io
from collections.abc import Callable
from dataclasses import dataclass

from svc_cli.console import Console
from tests.acceptance.installations import Finished


class Terminal(io.StringIO):
    """A stream that reports itself as a terminal."""

    def isatty(self) -> bool:
        if self.closed:
            raise ValueError("I/O operation on closed file")
        return True


@dataclass
class Recorded:
    """A console and what was written to it."""

    console: Console
    out: io.StringIO
    err: io.StringIO


#: `make(format, terminal=…, **environ)`.
MakeConsole = Callable[..., Recorded]
#: `svc(*arguments, stdin=…)`.
RunSvc = Callable[..., Finished]
