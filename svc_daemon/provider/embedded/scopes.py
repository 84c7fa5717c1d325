"""The buckets and sources that a search is limited to, as parameters of its statement.

There are two ways to limit a search to a bucket. One is to search for the bucket's id, which is indexed like a word of
each of its chunks; this reads the list of all chunks of the bucket twice, and is best for a small bucket. The other is
to look up the document of each chunk that has a word of the query, which is better for a bucket with a large share of
the index. If a bucket contains the whole index, neither is needed.
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
from svc_daemon.provider.texts import distinct

#: Documents are looked up if the bucket contains at least this share of the team's chunks. Measured with 100,000 chunks
#: and a query word in 5 % of them: with a share of 1, a search takes 9.2 ms by the bucket's word, 6.7 ms by look-ups;
#: with 0.5, 5.3 and 4.6 ms; with 0.01, 0.8 and 1.9 ms.
LARGE_SHARE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The buckets and sources that a search is limited to; None means no limit."""

    #: Buckets to which the full-text query itself is limited; the index has a word for each bucket.
    matched_buckets: tuple[str, ...] | None = None
    #: Buckets for which the document of each found chunk is looked up.
    checked_buckets: tuple[str, ...] | None = None
    source_ids: tuple[str, ...] | None = None

    @property
    def is_narrow(self) -> bool:
        """Whether the scope probably covers only a small part of the index."""
        return self.matched_buckets is not None or self.source_ids is not None

    def restrict(self, expression: str) -> str:
        """Restrict the FTS5 expression to the chunks that are in one of `matched_buckets`."""
        if self.matched_buckets is None:
            return expression
        words = " OR ".join(f'"{bucket_word(bucket_id)}"' for bucket_id in self.matched_buckets)
        return f"buckets : ({words}) AND {expression}"

    def parameters(self) -> dict[str, str | None]:
        """Return the ids of buckets and sources to look up, as JSON for the parameters of a statement."""
        return {"bucket_ids": as_json(self.checked_buckets), "source_ids": as_json(self.source_ids)}


def choose_scope(connection: sqlite3.Connection, counts: Counts, query: SearchQuery) -> Scope:
    """Choose the fastest way to limit a search to its buckets and sources."""
    source_ids = None if query.source_ids is None else tuple(query.source_ids)
    if query.bucket_ids is None:
        return Scope(source_ids=source_ids)
    bucket_ids = distinct(query.bucket_ids)
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
    """Encode ids as JSON for a parameter of a statement."""
    return None if ids is None else json.dumps(ids)
