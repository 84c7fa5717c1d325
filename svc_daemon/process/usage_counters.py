"""Counters of each team's answers and searches, until they are recorded in the state database."""

from dataclasses import dataclass, field

#: A team's id, and a month such as `2026-01`.
Period = tuple[str, str]


@dataclass(slots=True)
class UsageCounters:
    """The number of answers and searches by team and month."""

    totals: dict[Period, int] = field(default_factory=dict)
    #: The part of `totals` that isn't in the state database yet.
    unrecorded: dict[Period, int] = field(default_factory=dict)

    def add(self, period: Period, answers: int) -> None:
        """Add answers to a period, which must already be in `totals`."""
        self.totals[period] += answers
        self.unrecorded[period] = self.unrecorded.get(period, 0) + answers

    def take_unrecorded(self) -> dict[Period, int]:
        """Return the counts that aren't recorded yet, and reset them. The caller must record them."""
        taken, self.unrecorded = self.unrecorded, {}
        return {period: answers for period, answers in taken.items() if answers}

    def update_totals(self, recorded: dict[Period, int]) -> None:
        """Set the totals to the recorded counts plus those that aren't recorded yet."""
        for period, answers in recorded.items():
            self.totals[period] = answers + self.unrecorded.get(period, 0)

    def give_back(self, unrecorded: dict[Period, int]) -> None:
        """Add back the counts that the caller could not record."""
        for period, answers in unrecorded.items():
            self.unrecorded[period] = self.unrecorded.get(period, 0) + answers
