"""Decides which documents are indexed next: first the lane, then the team within the lane.

A lane is a queue of documents for child processes (see `core.lanes`). The order is kept in memory, and a restart resets
it. Not thread-safe: use it only on the event loop.
"""

from collections import Counter
from collections.abc import Collection

from svc_daemon.core import lanes


class Turns:
    """Records how many child processes are running in each lane, and when each lane and each team last had a turn."""

    def __init__(self, children: int) -> None:
        """`children` is the maximum number of child processes per lane; `single` and `suspect` count as one lane."""
        self._children = children
        self._at_work: Counter[str] = Counter()
        self._served: dict[str, int] = {}
        self._served_teams: dict[tuple[str, str], int] = {}
        self._turn = 0

    def lanes(self) -> list[str]:
        """Return the lanes in which a child process may be started now, the next one first."""
        return lanes.in_turn(self._at_work, self._served, self._children)

    def teams(self, lane: str, team_ids: Collection[str]) -> list[str]:
        """Sort the teams by their last turn in the lane, so that a team with many documents doesn't delay others."""
        return sorted(team_ids, key=lambda team_id: self._served_teams.get((lane, team_id), 0))

    def begin(self, lane: str, team_id: str) -> None:
        """Record that a child process of this lane was started for the team. Call `end` when it has ended."""
        self._turn += 1
        self._at_work[lane] += 1
        self._served[lane] = self._served_teams[lane, team_id] = self._turn

    def end(self, lane: str) -> None:
        self._at_work[lane] -= 1
