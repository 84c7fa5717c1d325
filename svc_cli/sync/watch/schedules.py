"""Decides when the next full sync of a folder is due."""

from collections import Counter
from dataclasses import dataclass, field

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
