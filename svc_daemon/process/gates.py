"""Counters of uploads being stored, and of answers and searches.

They are in memory and only used on the event loop. A restart resets them.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

#: How long indexing waits at most for uploads being stored, in seconds.
UPLOADS_TURN_S = 0.25


class Gates:
    """Counts the uploads being stored, so that indexing can wait for them."""

    def __init__(self) -> None:
        self._uploads = 0
        self._no_uploads = asyncio.Event()
        self._no_uploads.set()

    @contextmanager
    def uploading(self) -> Iterator[None]:
        """While the block runs, count one more upload that is being stored. All of its bytes have arrived."""
        self._uploads += 1
        self._no_uploads.clear()
        try:
            yield
        finally:
            self._uploads -= 1
            if self._uploads == 0:
                self._no_uploads.set()

    async def let_uploads_go_first(self) -> None:
        """Wait until no upload is being stored, but at most `UPLOADS_TURN_S`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(UPLOADS_TURN_S):
                await self._no_uploads.wait()


#: A team's id, and a month such as `2026-01`.
Period = tuple[str, str]


@dataclass(slots=True)
class Tallies:
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
