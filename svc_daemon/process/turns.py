"""Whose turn it is to be indexed: the lane, and within it the team, that was served the longest ago.

Kept in memory: after a restart the turns begin afresh. Used on the event loop only.
"""

from collections import Counter
from collections.abc import Collection

from svc_daemon.core import lanes


class Turns:
    """Which lanes have children at work, and when each lane and each team had its latest turn."""

    def __init__(self, children: int) -> None:
        """`children` is the limit for waves, and that for other children."""
        self._children = children
        self._at_work: Counter[str] = Counter()
        self._served: dict[str, int] = {}
        self._served_teams: dict[tuple[str, str], int] = {}
        self._turn = 0

    def lanes(self) -> list[str]:
        """Return the lanes of which a child may be started now, the next one first."""
        return lanes.in_turn(self._at_work, self._served, self._children)

    def teams(self, lane: str, team_ids: Collection[str]) -> list[str]:
        """Sort the teams by their latest turn in the lane, so that one with many documents starves no other."""
        return sorted(team_ids, key=lambda team_id: self._served_teams.get((lane, team_id), 0))

    def begin(self, lane: str, team_id: str) -> None:
        """Note that a child of the lane was started for the team; `end` must follow."""
        self._turn += 1
        self._at_work[lane] += 1
        self._served[lane] = self._served_teams[lane, team_id] = self._turn

    def end(self, lane: str) -> None:
        self._at_work[lane] -= 1
