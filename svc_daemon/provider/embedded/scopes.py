"""The buckets and sources that a search is limited to, and how many chunks they have.

Every change of the index changes its revision, which makes the cached counts invalid.

A bucket's id is indexed as an extra word of each of its chunks. In a small bucket, a search finds chunks by this word.
In a large bucket, it is faster to look up the document of each chunk found.
"""

import json
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from svc_daemon.provider.contract import SearchQuery
from svc_daemon.provider.embedded import documents
from svc_daemon.provider.embedded.schema import bucket_word
from svc_daemon.provider.ranked_chunks import distinct

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
    _known: dict[tuple[str, str], int] = field(default_factory=dict)

    def get(self, kind: str, name: str, count: Callable[[], int]) -> int:
        """Return the count with this name; call `count` if it isn't cached."""
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
        """Return the counts for the revision of the index that this connection reads."""
        totals = connection.execute("SELECT revision, chunks FROM totals").fetchone()
        with self._lock:
            if self._latest.revision == totals["revision"]:
                return self._latest
            counts = Counts(revision=totals["revision"], chunks=totals["chunks"])
            if counts.revision > self._latest.revision:
                self._latest = counts
            return counts


#: Buckets that together have at least this share of the team's chunks count as large. With 100,000 chunks, this value
#: made searches fastest.
LARGE_SHARE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The buckets and sources to search; None means no limit."""

    #: Small buckets. The search expression has a word for each, so that it matches only their chunks.
    matched_buckets: tuple[str, ...] | None = None
    #: Large buckets. For each chunk found, the search checks whether its document is in one of these buckets.
    checked_buckets: tuple[str, ...] | None = None
    source_ids: tuple[str, ...] | None = None

    @property
    def is_narrow(self) -> bool:
        """Whether the scope is probably a small part of the index."""
        return self.matched_buckets is not None or self.source_ids is not None

    def restrict(self, expression: str) -> str:
        """Restrict the FTS5 expression to chunks in `matched_buckets`."""
        if self.matched_buckets is None:
            return expression
        words = " OR ".join(f'"{bucket_word(bucket_id)}"' for bucket_id in self.matched_buckets)
        return f"buckets : ({words}) AND {expression}"

    def parameters(self) -> dict[str, str | None]:
        """Return the buckets and sources to look up, as JSON parameters."""
        return {"bucket_ids": as_json(self.checked_buckets), "source_ids": as_json(self.source_ids)}


def choose_scope(connection: sqlite3.Connection, counts: Counts, query: SearchQuery) -> Scope:
    """Choose the fastest way to limit a search."""
    source_ids = None if query.source_ids is None else tuple(query.source_ids)
    if query.bucket_ids is None:
        return Scope(source_ids=source_ids)
    bucket_ids = distinct(query.bucket_ids)
    sizes = [
        counts.get("bucket", bucket_id, partial(documents.count_bucket_chunks, connection, bucket_id))
        for bucket_id in bucket_ids
    ]
    if max(sizes) == counts.chunks:
        return Scope(source_ids=source_ids)
    if sum(sizes) < LARGE_SHARE * counts.chunks:
        return Scope(matched_buckets=bucket_ids, source_ids=source_ids)
    return Scope(checked_buckets=bucket_ids, source_ids=source_ids)


def as_json(ids: Sequence[str] | None) -> str | None:
    """Encode ids as a JSON parameter."""
    return None if ids is None else json.dumps(ids)
