"""Counts that are kept in memory, and what of them the state has still to hear of.

Asked on the event loop only, so no locks: one process owns the data directory, and sees every answer.
"""

from dataclasses import dataclass, field

#: A team and a month.
Period = tuple[str, str]


@dataclass(slots=True)
class Tallies:
    """Answers and searches by team and month."""

    totals: dict[Period, int] = field(default_factory=dict)
    #: The part of each total that is not in the state.
    untold: dict[Period, int] = field(default_factory=dict)

    def add(self, period: Period, answers: int) -> None:
        """Count answers of a period whose total is known."""
        self.totals[period] += answers
        self.untold[period] = self.untold.get(period, 0) + answers

    def take_untold(self) -> dict[Period, int]:
        """What the state has still to hear, which counts as told from now on."""
        taken, self.untold = self.untold, {}
        return {period: answers for period, answers in taken.items() if answers}

    def give_back(self, untold: dict[Period, int]) -> None:
        """The state could not be told."""
        for period, answers in untold.items():
            self.untold[period] = self.untold.get(period, 0) + answers
