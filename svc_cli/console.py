"""Writes results to stdout and messages to stderr.

With `--json`, stdout gets exactly one JSON value, even on failure. With `--ndjson`, that value comes last, after a line
of JSON for each event.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TextIO

from svc_cli.errors import SvcError
from svc_daemon.wire.light.printed_text import dump_json, escape_text

Format = Literal["text", "json", "ndjson"]

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
#: A colour or style, as `paint` and rich write it.
_STYLED = re.compile(r"(\x1b\[[0-9;]*m)")
#: Escapes characters of untrusted text that control the terminal.
clean = escape_text


class OutputLost(OSError):
    """Standard output can't be written."""


@dataclass(slots=True)
class Console:
    """Writes the output of one run of `svc`: results to stdout, messages to stderr."""

    out: TextIO
    err: TextIO
    environ: Mapping[str, str]
    format: Format = "text"
    #: Whether to show tracebacks.
    debug: bool = False
    #: Whether to write only results and errors.
    is_quiet: bool = False
    #: Whether to list every item instead of grouping similar ones.
    is_verbose: bool = False
    #: Whether the final JSON value has been written.
    answered: bool = False
    #: The address of a service whose answers are read, and which has not proved to be the local daemon.
    unproven_service: str | None = None

    @property
    def is_text(self) -> bool:
        return self.format == "text"

    def show(self, value: Any, text: Callable[[], str]) -> None:
        """Write the result of a command: the text of `text()` or, with `--json`, `value`."""
        if self.is_text:
            self.print(text())
        else:
            self.answer(value)

    def answer(self, value: Any) -> None:
        """Write the final JSON value of this run."""
        self.answered = True
        indent = 2 if self.format == "json" and is_terminal(self.out) else None
        self._write(self.out, dump_json(value, indent) + "\n")

    def show_page(self, page: Mapping[str, Any], rows: str, text: Callable[[], str]) -> None:
        """Write a page of results. With `--ndjson`, each row in `page[rows]` is a line of its own."""
        if self.format == "ndjson":
            for row in page[rows]:
                self.event(row)
            page = {name: value for name, value in page.items() if name != rows}
        self.show(page, text)

    def event(self, value: Mapping[str, Any]) -> None:
        """Write an event as a line of JSON; only with `--ndjson`."""
        if self.format == "ndjson":
            self._write(self.out, dump_json(value) + "\n")
            self.out.flush()

    def print(self, text: str) -> None:
        """Write lines of text to stdout."""
        if text:
            self.write(text + "\n", flush=False)

    def write(self, text: str, *, flush: bool = True) -> None:
        """Write text to stdout without a newline, and escape what could control the terminal, except colours."""
        self._write(self.out, clean_styled(text) if has_colour(self.out, self.environ) else clean(text))
        if flush:
            self.out.flush()

    def write_bytes(self, block: bytes) -> None:
        """Write bytes to stdout unchanged, after any text written before."""
        self.out.flush()
        binary = getattr(self.out, "buffer", None)
        if binary is not None:  # None if stdout was closed before svc started
            binary.write(block)

    def message(self, text: str) -> None:
        """Write a line to stderr, unless `--quiet` is given."""
        if self.is_quiet:
            return
        self._write(self.err, clean(text) + "\n")

    def escape(self, text: str) -> None:
        """Write text to stderr that moves the cursor, and whose other parts are clean."""
        self._write(self.err, text)

    def note(self, text: str) -> None:
        """Write a note to stderr; only in text format."""
        if self.is_text:
            self.message(f"note: {text}")

    def warn(self, text: str) -> None:
        if not self.is_quiet:
            self._write(self.err, f"{self.paint('warning:', 'yellow', self.err)} {clean(text)}\n")

    def next_step(self, command: str) -> None:
        """Suggest the next command; only in text format and on a terminal."""
        if self.is_text and not self.is_quiet and is_terminal(self.err):
            self._write(self.err, f"{self.paint('next:', 'dim', self.err)} {clean(command)}\n")

    def fail(self, error: SvcError) -> None:
        """Report an error on stderr and, in JSON formats, also on stdout."""
        if not self.is_text and not self.answered:
            self.answer(error.envelope())
        self._write(self.err, f"{self.paint('error:', 'red', self.err)} {clean(error.message)}\n")
        if error.hint:
            self._write(self.err, f"{self.paint('hint:', 'cyan', self.err)} {clean(error.hint)}\n")

    def paint(self, text: str, style: str, stream: TextIO | None = None) -> str:
        """Add a colour or style to the text if the stream supports it."""
        if not has_colour(stream or self.out, self.environ):
            return text
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"

    def width(self) -> int | None:
        """Return the width of the terminal on stdout in columns; None if stdout is not a terminal."""
        if not is_terminal(self.out):
            return None
        columns = self.environ.get("COLUMNS", "")
        if re.fullmatch("[1-9][0-9]{0,8}", columns):
            return int(columns)
        try:
            return os.get_terminal_size(self.out.fileno()).columns or 80
        except OSError:  # some CI services and remote shells don't report a width
            return 80

    def _write(self, stream: TextIO, text: str) -> None:
        try:
            stream.write(text)
            if stream is self.err:
                stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            # If stderr can't be written, only a message is lost.
            if stream is self.out:
                raise OutputLost(error.errno, error.strerror) from error


def clean_styled(text: str) -> str:
    """Escape control characters in untrusted text, except colours and styles."""
    # Every second part is a colour or style.
    return "".join(part if number % 2 else clean(part) for number, part in enumerate(_STYLED.split(text)))


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # raised if the stream was closed before svc started
        return False


def has_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether to write colours: on a terminal, unless an environment variable decides otherwise."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in {"", "0"}:
        return True
    return is_terminal(stream) and environ.get("TERM") != "dumb" and not environ.get("CI")
