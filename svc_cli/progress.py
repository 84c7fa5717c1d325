"""The progress of a long command: a bar on a terminal, occasional plain lines otherwise, or nothing."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol, Self

from svc_cli.console import Console, is_terminal
from svc_cli.interrupts import shielded

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

Style = Literal["auto", "bar", "plain", "none"]

#: Without a terminal, at most one line in this time, so that logs of builds stay short.
PLAIN_INTERVAL_S = 10.0
#: Lines become rarer: the next one is shown when the elapsed time has grown by this part.
PLAIN_SHARE = 0.25
#: The longest silence: some build services treat more as a hang.
LONGEST_SILENCE_S = 300.0
#: No rate is shown before this time, since it would jump.
SHORTEST_RATE_S = 1.0


class Flow:
    """Counts sent bytes for a note beside the progress. Threads may count."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._began_s: float | None = None
        self._sent_bytes = 0

    def count(self, size_bytes: int) -> None:
        """Count bytes that were sent."""
        with self._lock:
            self._began_s = self._clock() if self._began_s is None else self._began_s
            self._sent_bytes += size_bytes

    def note(self, waiting: int = 0) -> str:
        """The number of bytes, their rate, and how many requests wait for the rate limit."""
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
    """One phase at a time: `begin` it with a label and a total where one is known, `update` how many are done."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def begin(self, label: str, total: int | None) -> None: ...

    def update(self, done: int, note: str = "") -> None: ...


def progress_for(console: Console, style: Style, clock: Callable[[], float] = time.monotonic) -> Progress:
    """The kind of progress that suits the stream; `auto` shows a bar only where it can move."""
    if style == "none":
        return Silent()
    movable = is_terminal(console.err) and console.environ.get("TERM") != "dumb" and not console.environ.get("CI")
    if style == "bar" or (style == "auto" and movable):
        return Bar(console)
    return Plain(console, clock)


class Silent:
    """Shows nothing."""

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
    """Lines without escape codes, 25 in the first hour at most; short work stays silent."""

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
    """A moving bar on stderr that is gone when the work ends; a thread of its own moves it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rich: RichProgress | None = None

    @shielded()
    def __enter__(self) -> Self:
        # Rich costs 40 ms to import; only a terminal pays for it.
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
        self._rich.add_task(label, total=total, note="")

    @shielded()
    def update(self, done: int, note: str = "") -> None:
        if self._rich is not None and self._rich.task_ids:
            self._rich.update(self._rich.task_ids[-1], completed=done, note=note)
