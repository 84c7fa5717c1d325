"""Caches how many chunks a team has and how many of them have a word, from which the weights of words are computed.

Milvus counts by walking through a word's chunks, and says nothing of changes. So a count is kept until this node writes
to the team's index, and for a limited time, since other nodes write too: a weight may be a little out of date.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

#: Maximum age of a count.
MOST_AGE_S = 30.0
#: Maximum number of cached counts of a team; when there are more, all of them are dropped.
MOST_COUNTS = 20_000
#: Maximum number of teams with cached counts.
MOST_TEAMS = 1_000


@dataclass(slots=True)
class TeamCounts:
    """The counts of one team since this node's last write."""

    _known: dict[str, tuple[float, int]] = field(default_factory=dict)

    def get(self, name: str, now_s: float, count: Callable[[], int]) -> int:
        """Return the count with this name; calls `count` if it isn't cached or too old. Threads may do so at once."""
        known = self._known.get(name)
        if known is not None and now_s - known[0] < MOST_AGE_S:
            return known[1]
        if len(self._known) >= MOST_COUNTS:
            self._known.clear()
        counted = count()
        if counted:
            # None is asked again: a team without chunks is not searched, and another node may write its first ones now.
            self._known[name] = now_s, counted
        return counted


class TeamCountsCache:
    """The counts of all teams. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of_teams: dict[str, TeamCounts] = {}

    def of_team(self, team_id: str) -> TeamCounts:
        """Return the team's counts. What is added to them after `forget` is not kept."""
        with self._lock:
            if len(self._of_teams) >= MOST_TEAMS:
                self._of_teams.clear()
            return self._of_teams.setdefault(team_id, TeamCounts())

    def forget(self, team_id: str) -> None:
        with self._lock:
            self._of_teams.pop(team_id, None)
