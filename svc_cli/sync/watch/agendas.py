"""When the next whole sync is due, and why. Pure: the clock is an argument."""

from collections import Counter
from dataclasses import dataclass, field

#: Every folder is looked at as a whole this often, whatever was heard.
PERIOD_S = 600.0
#: After trouble the next try comes after these: doubling from the first to the last.
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
