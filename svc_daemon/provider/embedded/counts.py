"""Caches how many chunks contain a word or are in a bucket, for the latest revision of the index.

Counting reads the list of all chunks with the word. The revision in `totals` changes with every change of the index, so
cached counts are valid until the revision changes.
"""

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

#: Maximum number of cached counts. The cache is cleared when it is full, so that counts of rare words don't use up the
#: memory.
MAX_COUNTS = 20_000


@dataclass(slots=True)
class Counts:
    """The counts of one revision of the index.

    Several threads may add counts at the same time, because all compute the same numbers.
    """

    revision: int
    #: Number of chunks in the whole index.
    chunks: int
    _known: dict[tuple[str, str], int] = field(default_factory=dict)

    def get(self, kind: str, name: str, count: Callable[[], int]) -> int:
        """Return the count with this name; calls `count` if it isn't cached."""
        known = self._known.get((kind, name))
        if known is None:
            if len(self._known) >= MAX_COUNTS:
                self._known.clear()
            known = self._known[(kind, name)] = count()
        return known


class CountsCache:
    """The counts of an index's latest revision. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = Counts(revision=-1, chunks=0)

    def at(self, connection: sqlite3.Connection) -> Counts:
        """Return the counts for the state of the index that this connection reads."""
        totals = connection.execute("SELECT revision, chunks FROM totals").fetchone()
        with self._lock:
            if self._latest.revision == totals["revision"]:
                return self._latest
            counts = Counts(revision=totals["revision"], chunks=totals["chunks"])
            if counts.revision > self._latest.revision:
                self._latest = counts
            return counts
