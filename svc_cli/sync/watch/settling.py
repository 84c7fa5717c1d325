"""Decides when a path has stopped changing, and when the next full sync of a folder is due."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from svc_cli.sync.watch.observers import EVERYTHING, Hint, Kind
from svc_cli.transfer.snapshots import folders_above

#: Seconds without a change after which a path has settled, by the kind of its last change.
REST_S = {Kind.CLOSED: 0.15, Kind.WRITTEN: 0.5, Kind.GONE: 5.0, Kind.MOVED: 5.0}
#: Seconds after which a file that is still being written is listed as busy.
BUSY_S = 10.0
#: If more paths than this are changing, the whole folder is synced instead of each path.
MANY = 1000
#: Maximum seconds that the full sync after many changes waits for the changes to end.
LONGEST_BURST_S = 5.0

#: Size, modification time and inode of a path; None if it does not exist.
Facts = tuple[int, int, int] | None
Look = Callable[[str], Facts]


@dataclass(slots=True)
class Restless:
    """A path that changed a moment ago and may change again."""

    kind: Kind
    facts: Facts
    first_s: float
    due_s: float


@dataclass(slots=True)
class Burst:
    """A period with so many changes that the whole folder is synced after it."""

    first_s: float
    last_s: float

    @property
    def due_s(self) -> float:
        return min(self.last_s + REST_S[Kind.WRITTEN], self.first_s + LONGEST_BURST_S)


@dataclass(slots=True)
class Settler:
    """The paths that have changed a moment ago and may change again."""

    waiting: dict[str, Restless] = field(default_factory=dict)
    burst: Burst | None = None
    #: When a path was last reported as deleted or moved away.
    _gone_s: float = float("-inf")

    def add(self, hint: Hint, now_s: float, look: Look) -> None:
        """Add a hint. `look` returns the current metadata of its path."""
        if hint.kind is Kind.GONE:
            self._gone_s = now_s
        if self.burst is not None:
            self.burst.last_s = now_s
            return
        known = self.waiting.get(hint.path)
        is_writing = known is not None and known.kind is not Kind.GONE
        first_s = known.first_s if known is not None and is_writing else now_s
        facts = None if hint.kind is Kind.GONE else look(hint.path)
        self.waiting[hint.path] = Restless(hint.kind, facts, first_s, now_s + REST_S[hint.kind])
        if len(self.waiting) > MANY or hint.path == EVERYTHING:
            self.burst = Burst(now_s, now_s)
            self.waiting.clear()

    def take(self, now_s: float, look: Look) -> set[str]:
        """Remove and return the paths that no longer change. After a burst of changes, return only EVERYTHING."""
        if self.burst is not None:
            if now_s < self.burst.due_s:
                return set()
            self.burst = None
            return {EVERYTHING}
        due = {path for path, restless in self.waiting.items() if restless.due_s <= now_s}
        held = {folder for path in self.waiting.keys() - due for folder in folders_above(path)}
        settled = {path for path in due if self._has_settled(path, now_s, look, is_held=path in held)}
        for path in settled:
            del self.waiting[path]
        return settled

    def _has_settled(self, path: str, now_s: float, look: Look, *, is_held: bool) -> bool:
        """Whether the path is unchanged since the last check; if not, its waiting time starts again."""
        restless = self.waiting[path]
        if restless.kind is Kind.GONE:
            return True
        facts, was = look(path), restless.facts
        if facts is None:
            restless.kind = Kind.GONE
        # A folder waits while files in it are still changing (`is_held`), but at most BUSY_S.
        if facts == was and facts is not None and not (is_held and now_s < restless.first_s + BUSY_S):
            return True
        restless.facts, restless.due_s = facts, now_s + REST_S[restless.kind]
        return False

    def is_fresh(self, path: str) -> bool:
        """Whether the path was written a moment ago; true during a burst."""
        known = self.waiting.get(path)
        return self.burst is not None or (known is not None and known.kind in (Kind.WRITTEN, Kind.CLOSED))

    def is_calm(self, now_s: float) -> bool:
        """Whether no path was deleted in the last seconds. A path that was just deleted may reappear."""
        return self.burst is None and now_s >= self._gone_s + REST_S[Kind.GONE]

    def due_s(self) -> float | None:
        """Return when to call `take` next; None if no path is waiting."""
        if self.burst is not None:
            return self.burst.due_s
        return min((restless.due_s for restless in self.waiting.values()), default=None)

    def busy(self, now_s: float) -> list[str]:
        """Return the files that have been changing for longer than BUSY_S."""
        return sorted(
            path
            for path, restless in self.waiting.items()
            if restless.kind in (Kind.WRITTEN, Kind.CLOSED) and now_s >= restless.first_s + BUSY_S
        )


#: Maximum seconds between two full syncs.
PERIOD_S = 600.0
#: System sleeps that are shorter than this, in seconds, are not noticed.
NAP_S = 2.0
#: Seconds until the next attempt after a failed sync. The pause doubles with each failure, from the first of these
#: values up to the second.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0


@dataclass(slots=True)
class Agenda:
    """Stores when the next full sync of a mapping is due, and why."""

    due_s: float = 0.0
    reason: str = "start"
    #: The number of full syncs so far, by reason.
    counts: Counter[str] = field(default_factory=Counter)
    _pause_s: float = 0.0

    def call(self, reason: str, now_s: float, in_s: float = 0.0) -> None:
        """Schedule a full sync in `in_s` seconds, unless one is due earlier."""
        if now_s + in_s < self.due_s:
            self.due_s, self.reason = now_s + in_s, reason

    def take(self, now_s: float) -> str | None:
        """Return the reason of the sync that is due now, and schedule the next; None if none is due."""
        if now_s < self.due_s:
            return None
        reason = self.reason
        self.counts[reason] += 1
        self.due_s, self.reason = now_s + PERIOD_S, "period"
        return reason

    def end_well(self) -> None:
        self._pause_s = 0.0

    def end_in_trouble(self, now_s: float) -> None:
        """Schedule another attempt after a failed sync."""
        self._pause_s = min(LONGEST_PAUSE_S, self._pause_s * 2 or FIRST_PAUSE_S)
        self.call("trouble", now_s, self._pause_s)


@dataclass(slots=True)
class Naps:
    """Detects system sleep by comparing two clocks, one of which stops during sleep."""

    _ahead_s: float | None = None

    def has_slept(self, waking_s: float, all_s: float) -> bool:
        """Whether the machine slept since the last call. The clock of `waking_s` stops during sleep."""
        ahead_s, before_s = all_s - waking_s, self._ahead_s
        self._ahead_s = ahead_s
        return before_s is not None and ahead_s - before_s > NAP_S
