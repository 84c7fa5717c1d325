"""Shows the progress of a command as a bar, as occasional lines, or not at all."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol, Self

from svc_cli.console import Console, clean, is_terminal
from svc_cli.interrupts import shielded

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

Style = Literal["auto", "bar", "plain", "none"]

#: Minimum time between two lines, to keep logs short.
PLAIN_INTERVAL_S = 10.0
#: Minimum time between two lines, as a share of the elapsed time.
PLAIN_SHARE = 0.25
#: Maximum time between two lines: some CI services end silent jobs.
LONGEST_SILENCE_S = 300.0
#: Seconds before a rate is shown, because it varies too much at first.
SHORTEST_RATE_S = 1.0


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
        return Bar(console)
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
        self._console.message(f"{self._label}: {done}{of_total}{f', {note}' if note else ''}")


class Bar(Silent):
    """Shows a progress bar on stderr, which disappears when the work ends."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rich: RichProgress | None = None

    @shielded()
    def __enter__(self) -> Self:
        # Imported only here, because the import takes 40 ms.
        from rich import progress as rich_progress
        from rich.console import Console as RichConsole

        is_plain = bool(self._console.environ.get("NO_COLOR"))
        self._rich = rich_progress.Progress(
            rich_progress.SpinnerColumn(),
            rich_progress.TextColumn("{task.description}", markup=False),
            rich_progress.BarColumn(),
            rich_progress.MofNCompleteColumn(),
            rich_progress.TimeElapsedColumn(),
            rich_progress.TextColumn("{task.fields[note]}", markup=False),
            console=RichConsole(file=self._console.err, no_color=is_plain),
            transient=True,
        )
        self._rich.start()
        return self

    @shielded()
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._rich is not None:
            self._rich.stop()

    @shielded()
    def begin(self, label: str, total: int | None) -> None:
        if self._rich is None:
            return
        for task in self._rich.task_ids:
            self._rich.remove_task(task)
        self._rich.add_task(clean(label), total=total, note="")

    @shielded()
    def update(self, done: int, note: str = "") -> None:
        if self._rich is not None and self._rich.task_ids:
            self._rich.update(self._rich.task_ids[-1], completed=done, note=clean(note))
