"""Shows the progress of a command as a bar, as occasional lines, or not at all."""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Literal, Protocol, Self

from svc_cli.console import Console, clean, is_terminal
from svc_cli.interrupts import shielded
from svc_cli.render import cut, duration, width

Style = Literal["auto", "bar", "plain", "none"]

#: Minimum time between two lines, to keep logs short.
PLAIN_INTERVAL_S = 10.0
#: Minimum time between two lines, as a share of the elapsed time.
PLAIN_SHARE = 0.25
#: Maximum time between two lines: some CI services end silent jobs.
LONGEST_SILENCE_S = 300.0
#: Seconds before a rate is shown, because it varies too much at first.
SHORTEST_RATE_S = 1.0
#: Seconds between two drawings of a bar.
DRAW_INTERVAL_S = 0.1
BAR_COLUMNS = 20


class SentBytes:
    """Counts sent bytes, to show them next to the progress. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._began_s: float | None = None
        self._sent_bytes = 0

    def count(self, size_bytes: int) -> None:
        """Add to the number of bytes sent."""
        with self._lock:
            self._began_s = self._clock() if self._began_s is None else self._began_s
            self._sent_bytes += size_bytes

    def note(self, waiting: int = 0) -> str:
        """Describe the bytes sent and their rate. `waiting` requests wait for the service's rate limit."""
        words = [_size(self._sent_bytes)]
        seconds = 0.0 if self._began_s is None else self._clock() - self._began_s
        if seconds >= SHORTEST_RATE_S:
            words.append(f"{_size(self._sent_bytes / seconds)}/s")
        if waiting:
            words.append(f"{waiting} waiting for the rate limit")
        return ", ".join(words)


def _size(size_bytes: float) -> str:
    return f"{size_bytes / 1024**2:.1f} MB" if size_bytes >= 1024**2 else f"{size_bytes / 1024:.0f} KB"


class Progress(Protocol):
    """A display of one phase of the work at a time.

    `begin` starts a phase; `total` is None if it is unknown. `update` sets how many items are done.
    """

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def begin(self, label: str, total: int | None) -> None: ...

    def update(self, done: int, note: str = "") -> None: ...


def progress_for(console: Console, style: Style, clock: Callable[[], float] = time.monotonic) -> Progress:
    """Create the display for this style; `auto` is a bar on a terminal, otherwise lines."""
    if style == "none":
        return Silent()
    movable = is_terminal(console.err) and console.environ.get("TERM") != "dumb" and not console.environ.get("CI")
    if style == "bar" or (style == "auto" and movable):
        return Bar(console, clock)
    return Plain(console, clock)


class Silent:
    """A progress display that shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def begin(self, label: str, total: int | None) -> None:
        """Show nothing."""

    def update(self, done: int, note: str = "") -> None:
        """Show nothing."""


class Plain(Silent):
    """Shows progress as plain lines. Short work prints no line, and an hour of work at most 25."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console = console
        self._clock = clock
        self._began_s = self._last_s = clock()
        self._label = ""
        self._total: int | None = 0

    def begin(self, label: str, total: int | None) -> None:
        self._label, self._total = label, total

    def update(self, done: int, note: str = "") -> None:
        now_s = self._clock()
        pause_s = min(max(PLAIN_INTERVAL_S, (now_s - self._began_s) * PLAIN_SHARE), LONGEST_SILENCE_S)
        if now_s - self._last_s < pause_s:
            return
        self._last_s = now_s
        of_total = "" if self._total is None else f" of {self._total}"
        # Before the first phase, an earlier run is finished, of whose files only the bytes are counted.
        line = f"{self._label}: {done}{of_total}{f', {note}' if note else ''}" if self._label else f"sending: {note}"
        self._console.message(line)


class Bar(Silent):
    """Shows a progress bar on the last line of stderr, which disappears when the work ends.

    It is drawn by hand: when a terminal has become narrower, the line before takes several rows, and all of them have
    to be cleared. Rich clears one, and takes 40 ms to import.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._label, self._note, self._done = "", "", 0
        self._total: int | None = None
        self._began_s = clock()
        #: The width of the line that is shown.
        self._shown = 0

    @shielded()
    def __enter__(self) -> Self:
        self._console.escape("\x1b[?25l")  # hides the cursor
        threading.Thread(target=self._keep_drawing, name="progress", daemon=True).start()
        return self

    @shielded()
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._is_over.set()
            self._console.escape(f"\x1b[?25h{self._clearing(self._columns())}")

    @shielded()
    def begin(self, label: str, total: int | None) -> None:
        with self._lock:
            self._label, self._total, self._done, self._note = clean(label), total, 0, ""
            self._began_s = self._clock()
        self._draw()

    @shielded()
    def update(self, done: int, note: str = "") -> None:
        self._done, self._note = done, clean(note)

    def line(self, columns: int) -> str:
        """Return what is shown: a bar, how much is done, the rate, and about how long the rest takes."""
        seconds = self._clock() - self._began_s
        parts = [self._label, f"{self._done}" if self._total is None else f"{self._done}/{self._total}"]
        if self._total:
            filled = BAR_COLUMNS * min(self._done, self._total) // self._total
            parts.insert(1, "\N{BOX DRAWINGS HEAVY HORIZONTAL}" * filled + " " * (BAR_COLUMNS - filled))
        if seconds >= SHORTEST_RATE_S and self._done:
            rate = self._done / seconds
            parts.append(f"{rate:.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
            if self._total and self._done < self._total:
                parts.append(f"{duration((self._total - self._done) / rate)} left")
        return cut("  ".join(filter(None, [*parts, self._note])), columns - 1)

    def _keep_drawing(self) -> None:
        while not self._is_over.wait(DRAW_INTERVAL_S):
            with suppress(OSError, ValueError):  # stderr was closed
                self._draw()

    def _draw(self) -> None:
        with self._lock:
            if self._is_over.is_set() or not self._label:
                return
            columns = self._columns()
            line = self.line(columns)
            self._console.escape(f"{self._clearing(columns)}{line}")
            self._shown = width(line)

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._console.err.fileno()).columns or 80
        except (OSError, ValueError):
            return 80

    def _clearing(self, columns: int) -> str:
        """Return what clears the line that is shown, and the rows into which a narrower terminal has broken it."""
        rows = max(0, self._shown - 1) // columns
        up = f"\x1b[{rows}A" if rows else ""
        return f"{up}\r\x1b[J\x1b[2K"
