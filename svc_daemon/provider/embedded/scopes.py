"""Where a search looks: by the index where that is cheaper, else by looking at each ranked chunk's document.

A bucket's word in the expression costs a walk through all of the bucket's postings, twice. For a bucket that holds
most of the index that is more than ranking everything and passing over the few chunks that lie elsewhere.
"""

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from svc_daemon.provider.contract import SearchQuery
from svc_daemon.provider.embedded import memberships
from svc_daemon.provider.embedded.counts import Counts
from svc_daemon.provider.embedded.schema import bucket_word

#: From this share of the chunks on, a bucket is filtered after ranking. Measured: at one half both cost the same.
LARGE_SHARE = 0.5

Admits = Callable[[int], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A scope in the two forms that a search needs."""

    #: Buckets to match by their words in the index; None where the index is not asked.
    indexed_buckets: tuple[str, ...] | None = None
    #: Tests that a document, by its key, must all pass after ranking.
    checks: tuple[Admits, ...] = ()

    def admits(self, document_key: int) -> bool:
        return all(check(document_key) for check in self.checks)

    def restrict(self, expression: str) -> str:
        """The FTS5 expression, narrowed to the buckets that the index finds."""
        if self.indexed_buckets is None:
            return expression
        words = " OR ".join(f'"{bucket_word(bucket_id)}"' for bucket_id in self.indexed_buckets)
        return f"buckets : ({words}) AND {expression}"


def choose_scope(connection: sqlite3.Connection, counts: Counts, query: SearchQuery) -> Scope:
    """How to keep the search within its buckets and sources."""
    checks: list[Admits] = []
    if query.source_ids is not None:
        checks.append(_document_keys(connection, query.source_ids).__contains__)
    if query.bucket_ids is None:
        return Scope(checks=tuple(checks))
    bucket_ids = memberships.distinct(query.bucket_ids)
    if _chunks_in(connection, counts, bucket_ids) < LARGE_SHARE * counts.chunks:
        return Scope(indexed_buckets=bucket_ids, checks=tuple(checks))
    return Scope(checks=(*checks, _membership_check(connection, bucket_ids)))


def _chunks_in(connection: sqlite3.Connection, counts: Counts, bucket_ids: Sequence[str]) -> int:
    def count(bucket_id: str) -> int:
        return counts.get("bucket", bucket_id, lambda: memberships.count_bucket_chunks(connection, bucket_id))

    return sum(count(bucket_id) for bucket_id in bucket_ids)


def _membership_check(connection: sqlite3.Connection, bucket_ids: Sequence[str]) -> Admits:
    @cache
    def admits(document_key: int) -> bool:
        return memberships.is_member(connection, document_key, bucket_ids)

    return admits


def _document_keys(connection: sqlite3.Connection, source_ids: Sequence[str]) -> frozenset[int]:
    rows = connection.execute(
        "SELECT document_key FROM documents WHERE source_id IN (SELECT value FROM json_each(:source_ids))",
        {"source_ids": json.dumps(list(source_ids))},
    )
    return frozenset(row["document_key"] for row in rows)
