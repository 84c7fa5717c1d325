"""Counts that searches need, cached until the index changes. Every change of the index changes its revision."""

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

#: Maximum number of cached counts. When it is reached, the cache is emptied, so that it can't use up the memory.
MAX_COUNTS = 20_000


@dataclass(slots=True)
class Counts:
    """The counts of one revision of the index.

    No lock is needed: threads that count the same thing at the same time get the same number.
    """

    revision: int
    #: Number of chunks in the index.
    chunks: int
    #: The languages of the documents; None if not read yet.
    _languages: tuple[str, ...] | None = None
    _known: dict[tuple[str, str], int] = field(default_factory=dict)

    def get(self, kind: str, name: str, count: Callable[[], int]) -> int:
        """Return the count with this name; call `count` if it isn't cached."""
        known = self._known.get((kind, name))
        if known is None:
            if len(self._known) >= MAX_COUNTS:
                self._known.clear()
            known = self._known[(kind, name)] = count()
        return known

    def list_languages(self, connection: sqlite3.Connection) -> tuple[str, ...]:
        """List the languages of the index's documents."""
        if self._languages is None:
            found = connection.execute("SELECT DISTINCT language FROM documents WHERE language <> ''")
            self._languages = tuple(sorted(language for (language,) in found))
        return self._languages


class CountsCache:
    """The counts of an index's latest revision. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = Counts(revision=-1, chunks=0)

    def at(self, connection: sqlite3.Connection) -> Counts:
        """Return the counts for the revision of the index that this connection reads."""
        totals = connection.execute("SELECT revision, chunks FROM totals").fetchone()
        with self._lock:
            if self._latest.revision == totals["revision"]:
                return self._latest
            counts = Counts(revision=totals["revision"], chunks=totals["chunks"])
            if counts.revision > self._latest.revision:
                self._latest = counts
            return counts
