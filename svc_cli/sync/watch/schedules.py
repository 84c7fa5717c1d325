"""When the next whole sync is due, and why. Pure: the clocks are arguments."""

from collections import Counter
from dataclasses import dataclass, field

#: The interval of whole syncs, even if nothing was reported.
PERIOD_S = 600.0
#: A smaller difference between the clocks is no sleep.
NAP_S = 2.0
#: Pauses after trouble: doubling from the first to the last.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0


@dataclass(slots=True)
class Agenda:
    """One mapping's next whole sync."""

    due_s: float = 0.0
    reason: str = "start"
    #: How often a whole sync was due, by reason.
    counts: Counter[str] = field(default_factory=Counter)
    _pause_s: float = 0.0

    def call(self, reason: str, now_s: float, in_s: float = 0.0) -> None:
        """A whole sync is due; one that is due earlier stays."""
        if now_s + in_s < self.due_s:
            self.due_s, self.reason = now_s + in_s, reason

    def take(self, now_s: float) -> str | None:
        """The reason of the sync that is due now, counted; None where none is."""
        if now_s < self.due_s:
            return None
        reason = self.reason
        self.counts[reason] += 1
        self.due_s, self.reason = now_s + PERIOD_S, "period"
        return reason

    def end_well(self) -> None:
        self._pause_s = 0.0

    def end_in_trouble(self, now_s: float) -> None:
        """Try again, later each time."""
        self._pause_s = min(LONGEST_PAUSE_S, self._pause_s * 2 or FIRST_PAUSE_S)
        self.call("trouble", now_s, self._pause_s)


@dataclass(slots=True)
class Naps:
    """Whether the machine was asleep: a clock that runs during sleep gets ahead of one that doesn't."""

    _ahead_s: float | None = None

    def has_slept(self, waking_s: float, all_s: float) -> bool:
        """Whether there was a sleep since the last call. `waking_s` pauses during sleep, `all_s` does not."""
        ahead_s, before_s = all_s - waking_s, self._ahead_s
        self._ahead_s = ahead_s
        return before_s is not None and ahead_s - before_s > NAP_S
