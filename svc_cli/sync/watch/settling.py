"""Decides when a path has settled. Pure: the clock and the file's state are arguments."""

from collections.abc import Callable
from dataclasses import dataclass, field

from svc_cli.sync.snapshots import folders_above
from svc_cli.sync.watch.hints import EVERYTHING, Hint, Kind

#: A path without changes for this long counts as settled.
REST_S = {Kind.CLOSED: 0.15, Kind.WRITTEN: 0.5, Kind.GONE: 5.0, Kind.MOVED: 5.0}
#: A file that is written to for longer is shown.
BUSY_S = 10.0
#: With more changing paths than this, a whole sync is cheaper and safer.
MANY = 1000
#: While many paths change without a pause, a whole sync is made after this time.
LONGEST_BURST_S = 5.0

#: Size, time of change and inode; None where nothing is there.
Facts = tuple[int, int, int] | None
Look = Callable[[str], Facts]


@dataclass(slots=True)
class Restless:
    """A path that changed and has not settled yet."""

    kind: Kind
    facts: Facts
    first_s: float
    due_s: float


@dataclass(slots=True)
class Burst:
    """More paths than are worth counting one by one."""

    first_s: float
    last_s: float

    @property
    def due_s(self) -> float:
        return min(self.last_s + REST_S[Kind.WRITTEN], self.first_s + LONGEST_BURST_S)


@dataclass(slots=True)
class Settler:
    """Paths on the way to rest."""

    waiting: dict[str, Restless] = field(default_factory=dict)
    burst: Burst | None = None
    #: When something was last reported as gone.
    _gone_s: float = float("-inf")

    def add(self, hint: Hint, now_s: float, look: Look) -> None:
        """Take a hint: its path is looked at now, and again when it is due."""
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
        """The paths that have settled; EVERYTHING among them after a burst."""
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
        """Whether the path is as it was when it was last looked at; one that is not waits once more."""
        restless = self.waiting[path]
        if restless.kind is Kind.GONE:
            return True
        facts, was = look(path), restless.facts
        if facts is None:
            restless.kind = Kind.GONE
        # Wait for files inside the folder that are still being written.
        if facts == was and facts is not None and not (is_held and now_s < restless.first_s + BUSY_S):
            return True
        restless.facts, restless.due_s = facts, now_s + REST_S[restless.kind]
        return False

    def is_fresh(self, path: str) -> bool:
        """Whether the path was written a moment ago."""
        known = self.waiting.get(path)
        return self.burst is not None or (known is not None and known.kind in (Kind.WRITTEN, Kind.CLOSED))

    def is_calm(self, now_s: float) -> bool:
        """Whether what was reported as gone has had its time to come back."""
        return self.burst is None and now_s >= self._gone_s + REST_S[Kind.GONE]

    def due_s(self) -> float | None:
        """When to take next; None while nothing is on the way."""
        if self.burst is not None:
            return self.burst.due_s
        return min((restless.due_s for restless in self.waiting.values()), default=None)

    def busy(self, now_s: float) -> list[str]:
        """Files that have been written to for a long time."""
        return sorted(
            path
            for path, restless in self.waiting.items()
            if restless.kind in (Kind.WRITTEN, Kind.CLOSED) and now_s >= restless.first_s + BUSY_S
        )
