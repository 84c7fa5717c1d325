"""The two output streams: data on stdout, messages on stderr; colour is decided for each of them.

With `--json` stdout gets exactly one JSON value, whatever happens; with `--ndjson` one per line as things happen and
that value last. Everything else goes to stderr.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TextIO

from svc_cli.errors import SvcError

Format = Literal["text", "json", "ndjson"]

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
#: C0 and C1 controls apart from tab and newline, bidi overrides: names from elsewhere must not drive a terminal.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class OutputLost(OSError):
    """Standard output can't be written."""


@dataclass(slots=True)
class Console:
    """Where a command writes. One per run of `svc`."""

    out: TextIO
    err: TextIO
    environ: Mapping[str, str]
    format: Format = "text"
    #: Show tracebacks.
    debug: bool = False
    #: Results and errors only.
    is_quiet: bool = False
    #: List every item instead of grouping.
    is_verbose: bool = False
    #: Set once the one JSON value has been written.
    answered: bool = False

    @property
    def is_text(self) -> bool:
        return self.format == "text"

    def show(self, value: Any, text: Callable[[], str]) -> None:
        """Write a command's one result: `value` as JSON, or what `text` makes of it for people."""
        if self.is_text:
            self.print(text())
        else:
            self.answer(value)

    def answer(self, value: Any) -> None:
        """Write the one JSON value of this run."""
        self.answered = True
        indent = 2 if self.format == "json" and is_terminal(self.out) else None
        self._write(self.out, json.dumps(value, ensure_ascii=False, indent=indent) + "\n")

    def show_page(self, page: dict[str, Any], rows: str, text: Callable[[], str]) -> None:
        """Write a page of the API; with `--ndjson` each of its rows is a line, and the rest of the page is the last."""
        if self.format == "ndjson":
            for row in page[rows]:
                self.event(row)
            page = {name: value for name, value in page.items() if name != rows}
        self.show(page, text)

    def event(self, value: dict[str, Any]) -> None:
        """Write one line of a stream; only `--ndjson` has them."""
        if self.format == "ndjson":
            self._write(self.out, json.dumps(value, ensure_ascii=False) + "\n")
            self.out.flush()

    def print(self, text: str) -> None:
        """Write lines of data for people."""
        if text:
            self._write(self.out, text + "\n")

    def write(self, text: str) -> None:
        """Write a piece of what people read, at once; `print` writes whole lines."""
        self._write(self.out, text)
        self.out.flush()

    def write_bytes(self, block: bytes) -> None:
        """Write bytes of data unchanged, after everything written before."""
        self.out.flush()
        binary = getattr(self.out, "buffer", None)
        if binary is not None:  # a stream that was closed before we started has none
            binary.write(block)

    def message(self, text: str) -> None:
        """Write a line on stderr, unless only results and errors are wanted."""
        if self.is_quiet:
            return
        self._write(self.err, clean(text) + "\n")

    def note(self, text: str) -> None:
        """Show a useful remark, to people only."""
        if self.is_text:
            self.message(f"note: {text}")

    def warn(self, text: str) -> None:
        if not self.is_quiet:
            self._write(self.err, f"{self.paint('warning:', 'yellow', self.err)} {clean(text)}\n")

    def next_step(self, command: str) -> None:
        """Show the next useful command, on a terminal only."""
        if self.is_text and not self.is_quiet and is_terminal(self.err):
            self._write(self.err, f"{self.paint('next:', 'dim', self.err)} {clean(command)}\n")

    def fail(self, error: SvcError) -> None:
        """Report an error once: as one line and a hint on stderr, with `--json` as the envelope on stdout too."""
        if not self.is_text and not self.answered:
            self.answer(error.envelope())
        self._write(self.err, f"{self.paint('error:', 'red', self.err)} {clean(error.message)}\n")
        if error.hint:
            self._write(self.err, f"{self.paint('hint:', 'cyan', self.err)} {clean(error.hint)}\n")

    def paint(self, text: str, style: str, stream: TextIO | None = None) -> str:
        """Wrap text in a colour, where the stream takes colours."""
        if not has_colour(stream or self.out, self.environ):
            return text
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"

    def width(self) -> int | None:
        """Columns of the terminal on stdout; None if it is no terminal."""
        if not is_terminal(self.out):
            return None
        columns = self.environ.get("COLUMNS", "")
        if columns.isdigit() and int(columns):
            return int(columns)
        try:
            return os.get_terminal_size(self.out.fileno()).columns or 80
        except OSError:  # some CI and remote shells don't report it
            return 80

    def _write(self, stream: TextIO, text: str) -> None:
        try:
            stream.write(text)
            if stream is self.err:
                stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            if stream is self.out:  # a lost message is ignored, lost data is an error
                raise OutputLost(error.errno, error.strerror) from error


def clean(text: str) -> str:
    """Text from elsewhere, with control characters made visible."""
    return _CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # the stream was closed before we started
        return False


def has_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Colour on a terminal, unless NO_COLOR, TERM=dumb or CI forbid it; FORCE_COLOR overrides both."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in {"", "0"}:
        return True
    return is_terminal(stream) and environ.get("TERM") != "dumb" and not environ.get("CI")
