"""How many chunks have a word or are in a bucket: counted once for each state of the index, then kept.

A count walks the word's whole posting list. The totals' revision changes with every change of the index, so counts of
one revision stay right until the next.
"""

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

#: Counts kept of one revision; beyond that all are dropped, so that odd words don't fill the memory.
MAX_COUNTS = 20_000


@dataclass(slots=True)
class Counts:
    """The counts of one revision. Threads may fill it at once: they find the same numbers."""

    revision: int
    #: Chunks in the whole index.
    chunks: int
    _known: dict[tuple[str, str], int] = field(default_factory=dict)

    def get(self, kind: str, name: str, count: Callable[[], int]) -> int:
        """The count under this name, found by `count` where it isn't known yet."""
        known = self._known.get((kind, name))
        if known is None:
            if len(self._known) >= MAX_COUNTS:
                self._known.clear()
            known = self._known[(kind, name)] = count()
        return known


class CountsCache:
    """The latest revision's counts of one index. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = Counts(revision=-1, chunks=0)

    def at(self, connection: sqlite3.Connection) -> Counts:
        """The counts that belong to the snapshot which this connection reads."""
        totals = connection.execute("SELECT revision, chunks FROM totals").fetchone()
        with self._lock:
            if self._latest.revision == totals["revision"]:
                return self._latest
            counts = Counts(revision=totals["revision"], chunks=totals["chunks"])
            if counts.revision > self._latest.revision:
                self._latest = counts
            return counts
