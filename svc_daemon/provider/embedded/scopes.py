"""Where a search looks, as parameters of its one statement.

A bucket can be found in two ways. By its word in the index, which walks all of the bucket's postings, twice: best for
a small bucket. Or by looking up the document of each chunk that has a word of the query: best for a bucket that holds
much of the index. One that holds all of it needs neither.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from svc_daemon.provider.contract import SearchQuery
from svc_daemon.provider.embedded import memberships
from svc_daemon.provider.embedded.counts import Counts
from svc_daemon.provider.embedded.schema import bucket_word

#: From this share of the team's chunks on, buckets are looked up. Measured at 100,000 chunks, with a query word in
#: 5 % of them: a share of 1 costs 9.2 ms by word and 6.7 by look-up, 0.5 costs 5.3 and 4.6, 0.01 costs 0.8 and 1.9.
LARGE_SHARE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a search must keep to; None is no limit of that kind."""

    #: Buckets that the index finds by their words.
    matched_buckets: tuple[str, ...] | None = None
    #: Buckets in which each chunk's document is looked up.
    checked_buckets: tuple[str, ...] | None = None
    source_ids: tuple[str, ...] | None = None

    @property
    def is_narrow(self) -> bool:
        """Whether it is likely to hold only a small part of the index."""
        return self.matched_buckets is not None or self.source_ids is not None

    def restrict(self, expression: str) -> str:
        """The FTS5 expression, narrowed to the buckets that the index finds."""
        if self.matched_buckets is None:
            return expression
        words = " OR ".join(f'"{bucket_word(bucket_id)}"' for bucket_id in self.matched_buckets)
        return f"buckets : ({words}) AND {expression}"

    def parameters(self) -> dict[str, str | None]:
        """The look-ups as JSON lists, or None."""
        return {"bucket_ids": as_json(self.checked_buckets), "source_ids": as_json(self.source_ids)}


def choose_scope(connection: sqlite3.Connection, counts: Counts, query: SearchQuery) -> Scope:
    """The cheapest way to keep the search within its buckets and sources."""
    source_ids = None if query.source_ids is None else tuple(query.source_ids)
    if query.bucket_ids is None:
        return Scope(source_ids=source_ids)
    bucket_ids = memberships.distinct(query.bucket_ids)
    sizes = [
        counts.get("bucket", bucket_id, partial(memberships.count_bucket_chunks, connection, bucket_id))
        for bucket_id in bucket_ids
    ]
    if max(sizes) == counts.chunks:
        return Scope(source_ids=source_ids)
    if sum(sizes) < LARGE_SHARE * counts.chunks:
        return Scope(matched_buckets=bucket_ids, source_ids=source_ids)
    return Scope(checked_buckets=bucket_ids, source_ids=source_ids)


def as_json(ids: Sequence[str] | None) -> str | None:
    """The ids as a statement takes them."""
    return None if ids is None else json.dumps(ids)
