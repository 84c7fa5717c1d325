"""Decides which documents are indexed next: from which queue, of which team, and after which uploads.

A lane is a queue of documents for child processes (see `core.lanes`). Use `IndexingScheduler` only on the event loop.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from math import ceil

from svc_daemon.core import lanes


class IndexingScheduler:
    """Tracks how many child processes each lane is running, and when each lane and team last started one."""

    def __init__(self, children: int) -> None:
        """`children` is the maximum number of child processes in a lane, and in `single` and `suspect` together."""
        self._children = children
        self._at_work: Counter[str] = Counter()
        self._served: dict[str, int] = {}
        self._served_teams: dict[tuple[str, str], int] = {}
        self._turn = 0

    def lanes(self) -> list[str]:
        """Return the lanes in which a child process may start now. The lane whose turn is next comes first."""
        return lanes.in_turn(self._at_work, self._served, self._children)

    def teams(self, lane: str, team_ids: Collection[str]) -> list[str]:
        """Sort the teams by their last turn in the lane. The team that has waited longest is first."""
        return sorted(team_ids, key=lambda team_id: self._served_teams.get((lane, team_id), 0))

    def begin(self, lane: str, team_id: str) -> None:
        """Record that a child process started for the team. Call `end` when it has ended."""
        self._turn += 1
        self._at_work[lane] += 1
        self._served[lane] = self._served_teams[lane, team_id] = self._turn

    def end(self, lane: str) -> None:
        self._at_work[lane] -= 1


class ScanPace:
    """How long the pages of scans take lately, to estimate the time that a scan still needs."""

    def __init__(self) -> None:
        #: Seconds for a page; None if no page was read since the start.
        self.page_s: float | None = None

    def add(self, page_s: float) -> None:
        """Record the seconds that a page took."""
        self.page_s = round(page_s if self.page_s is None else 0.8 * self.page_s + 0.2 * page_s, 2)

    def seconds_left(self, pages: int) -> int | None:
        """Estimate the seconds for so many pages; None if no page was read since the start."""
        return None if self.page_s is None else ceil(self.page_s * pages)


#: Longest time in seconds that indexing waits for uploads that are being stored.
UPLOADS_TURN_S = 0.25


class UploadPriority:
    """Counts the uploads being stored, so that indexing can wait for them."""

    def __init__(self) -> None:
        self._uploads = 0
        self._no_uploads = asyncio.Event()
        self._no_uploads.set()

    @contextmanager
    def uploading(self) -> Iterator[None]:
        """While the block runs, count one more upload that is being stored."""
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
