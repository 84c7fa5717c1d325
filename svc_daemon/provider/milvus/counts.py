"""Caches how many chunks a team has, and how many contain a word, to compute the weights of words.

Milvus counts slowly. A count is cached for up to `MOST_AGE_S`, or until this node writes to the team's index. So other
nodes' writes may be missing from a count.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

#: Maximum age of a cached count, in seconds.
MOST_AGE_S = 30.0
#: When a team has this many cached counts, all of them are dropped.
MOST_COUNTS = 20_000
#: Maximum number of teams with cached counts.
MOST_TEAMS = 1_000


@dataclass(slots=True)
class TeamCounts:
    """A cache of one team's counts. It is dropped when this node writes to the team's index."""

    _known: dict[str, tuple[float, int]] = field(default_factory=dict)

    def get(self, name: str, now_s: float, count: Callable[[], int]) -> int:
        """Return the count with this name; call `count` if it isn't cached or is too old. Thread-safe."""
        known = self._known.get(name)
        if known is not None and now_s - known[0] < MOST_AGE_S:
            return known[1]
        if len(self._known) >= MOST_COUNTS:
            self._known.clear()
        counted = count()
        if counted:
            # Don't cache a 0: another node may soon write the first chunks.
            self._known[name] = now_s, counted
        return counted


class TeamCountsCache:
    """The cached counts of all teams. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of_teams: dict[str, TeamCounts] = {}

    def of_team(self, team_id: str) -> TeamCounts:
        """Return the team's cached counts."""
        with self._lock:
            if len(self._of_teams) >= MOST_TEAMS:
                self._of_teams.clear()
            return self._of_teams.setdefault(team_id, TeamCounts())

    def forget(self, team_id: str) -> None:
        with self._lock:
            self._of_teams.pop(team_id, None)
