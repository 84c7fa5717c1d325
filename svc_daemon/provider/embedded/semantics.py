"""Semantic search: candidates are chosen by their vectors' signs, and ranked by full vectors.

After a change, only the signs of changed documents are read again. When the cache is full, the least recently used
entries are dropped.
"""

import json
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING

from svc_daemon.provider.contract import QueryVector, SearchQuery, SemanticMatch
from svc_daemon.provider.embedded.embeddings import find_model
from svc_daemon.provider.embedded.indexes import TeamIndex
from svc_daemon.provider.embedded.schema import ORDINAL_BITS
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.provider.ranked_chunks import distinct

if TYPE_CHECKING:
    from svc_daemon.provider.embedded.arrays import Signs


#: Number of documents whose vector signs one SQL statement reads. If a search is interrupted, the cache keeps the signs
#: that earlier statements have read.
BATCH_DOCUMENTS = 5000
#: Approximate size in bytes of a document's entry in `Held.documents`.
DOCUMENT_BYTES = 150


@dataclass(frozen=True, slots=True)
class SignsKey:
    """Identifies the signs of a model's vectors in one bucket, or in the whole index if `bucket_id` is None."""

    index: TeamIndex
    model_key: int
    bucket_id: str | None


@dataclass(frozen=True, slots=True)
class Held:
    """A cache entry: the signs of the vectors in a bucket or the whole index, one bit for each component."""

    #: The revisions of the index and of its vectors when the signs were read; None if not all signs were read.
    revisions: tuple[int, int] | None = None
    #: Maps each document's key to its `embedded_at`, which shows whether its vectors have changed.
    documents: dict[int, int] = field(default_factory=dict)
    signs: "Signs | None" = None

    @property
    def size_bytes(self) -> int:
        return len(self.documents) * DOCUMENT_BYTES + (self.signs.size_bytes if self.signs else 0)


class SignsCache:
    """A cache of vector signs with bounded memory. Thread-safe."""

    def __init__(self, limit_bytes: int, batch_documents: int = BATCH_DOCUMENTS) -> None:
        self._limit_bytes = limit_bytes
        self._batch_documents = batch_documents
        self._lock = threading.Lock()
        self._held: OrderedDict[SignsKey, Held] = OrderedDict()
        self._size_bytes = 0

    @property
    def size_bytes(self) -> int:
        """Approximate size of the cached data in bytes."""
        return self._size_bytes

    @property
    def is_half_full(self) -> bool:
        """Whether half of the limit is used. If so, preloading stops, because it could drop entries in use."""
        return self._size_bytes * 2 >= self._limit_bytes

    def at(self, connection: sqlite3.Connection, key: SignsKey) -> "Signs | None":
        """Return the signs of the key's vectors, or None if there are none. Signs that have changed are read again."""
        row = connection.execute("SELECT revision, vector_revision FROM totals").fetchone()
        revisions = (row["revision"], row["vector_revision"])
        with self._lock:
            held = self._held.get(key, Held())
            if key in self._held:
                self._held.move_to_end(key)
        if held.revisions != revisions:
            held = self._refresh(connection, key, held, revisions)
        return held.signs

    def forget(self, team_id: str) -> None:
        """Drop the entries of a team's index."""
        with self._lock:
            for key in [key for key in self._held if key.index.team_id == team_id]:
                self._size_bytes -= self._held.pop(key).size_bytes

    def _refresh(self, connection: sqlite3.Connection, key: SignsKey, held: Held, revisions: tuple[int, int]) -> Held:
        from svc_daemon.provider.embedded import arrays  # noqa: PLC0415 - see there

        # The documents that have vectors.
        rows = connection.execute(
            """
            SELECT document_key, embedded_at FROM documents
            WHERE hidden = 0 AND model_key = :model_key AND embedded > 0 AND (:bucket_id IS NULL OR document_key IN (
                SELECT document_key FROM memberships WHERE bucket_id = :bucket_id))
            """,
            {"model_key": key.model_key, "bucket_id": key.bucket_id},
        )
        wanted: dict[int, int] = dict(tuple(row) for row in rows)
        documents = {document: at for document, at in held.documents.items() if wanted.get(document) == at}
        parts = [held.signs]
        if held.signs is not None and len(documents) < len(held.documents):
            parts = [arrays.keep(held.signs, documents)]
        missing = (document for document in wanted if document not in documents)
        is_whole = False
        try:
            while batch := list(islice(missing, self._batch_documents)):
                read = connection.execute(
                    """
                    SELECT s.chunk_key, s.signs FROM json_each(:document_keys) AS d
                    CROSS JOIN signs AS s ON s.chunk_key BETWEEN d.value << :bits AND (d.value + 1 << :bits) - 1
                    WHERE s.model_key = :model_key
                    """,
                    {"document_keys": json.dumps(batch), "bits": ORDINAL_BITS, "model_key": key.model_key},
                )
                parts.append(arrays.read_signs([tuple(row) for row in read]))
                documents |= {document: wanted[document] for document in batch}
            is_whole = True
        finally:
            fresh = Held(revisions if is_whole else None, documents, arrays.join(parts))
            self._keep(key, fresh)
        return fresh

    def _keep(self, key: SignsKey, fresh: Held) -> None:
        with self._lock:
            held = self._held.get(key, Held())
            if held.revisions is not None and (fresh.revisions is None or fresh.revisions < held.revisions):
                return
            self._held[key] = fresh
            self._held.move_to_end(key)
            self._size_bytes += fresh.size_bytes - held.size_bytes
            while self._size_bytes > self._limit_bytes:
                _, oldest = self._held.popitem(last=False)
                self._size_bytes -= oldest.size_bytes


def warm_up(connection: sqlite3.Connection, index: TeamIndex, cache: SignsCache, model: str, bucket_id: str) -> None:
    """Load the signs of a bucket's vectors into the cache, unless it is half full."""
    model_key = find_model(connection, model)
    if model_key is not None and not cache.is_half_full:
        cache.at(connection, SignsKey(index, model_key, bucket_id))


#: Minimum number of chunks that are chosen by the signs of their vectors, and whose exact cosine is then computed. In a
#: measurement, 250 chunks included 99.8 % of the 10 nearest ones.
MEASURED = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """A query's vector, and access to the index's vectors of the same model."""

    index: TeamIndex
    model_key: int
    vector: QueryVector
    cache: SignsCache
    #: Raises SearchTimeout once the deadline has passed.
    check: Callable[[], None]

    def rank(
        self,
        connection: sqlite3.Connection,
        bucket_ids: Sequence[str] | None,
        document_keys: Collection[int] | None,
        count: int,
    ) -> list[tuple[int, float]]:
        """Return up to `count` chunks of these buckets and documents with a cosine above 0, nearest first."""
        from svc_daemon.provider.embedded import arrays  # noqa: PLC0415 - see there

        (wanted,) = arrays.pack_signs([self.vector.values])
        chosen = max(count, MEASURED)
        parts = []
        for bucket_id in [None] if bucket_ids is None else distinct(bucket_ids):
            signs = self.cache.at(connection, SignsKey(self.index, self.model_key, bucket_id))
            if signs is not None:
                parts.append(arrays.nearest(signs, wanted, chosen, document_keys, self.check))
        measured = self.measure(connection, arrays.merge(parts, chosen) if parts else [])
        near = [(key, cosine) for key, cosine in measured.items() if cosine > 0]
        return nsmallest(count, near, key=lambda item: (-item[1], item[0]))

    def measure(self, connection: sqlite3.Connection, keys: Iterable[int]) -> dict[int, float]:
        """Compute the cosine of the query and each of these chunks that has a vector."""
        from svc_daemon.provider.embedded import arrays  # noqa: PLC0415 - see there

        rows = connection.execute(
            """
            SELECT chunk_key, vector FROM vectors
            WHERE model_key = :model_key AND chunk_key IN (SELECT value FROM json_each(:keys))
            """,
            {"model_key": self.model_key, "keys": json.dumps(list(keys))},
        ).fetchall()
        found = arrays.cosines([row["vector"] for row in rows], self.vector.values)
        return {row["chunk_key"]: cosine for row, cosine in zip(rows, found, strict=True)}

    def match(self, rank: int | None, cosine: float) -> SemanticMatch:
        return SemanticMatch(rank=rank, cosine=cosine, model=self.vector.model)


def find_meaning(
    connection: sqlite3.Connection, index: TeamIndex, query: SearchQuery, cache: SignsCache, check: Callable[[], None]
) -> Meaning | None:
    """Prepare the query's vector for this index. Returns None if the index has no vectors of the query's model.

    Raises ProviderFailed if the vector's length is not that of the model's vectors.
    """
    if query.vector is None:
        return None
    row = connection.execute(
        "SELECT model_key, vector_bytes FROM models WHERE name = :name", {"name": query.vector.model}
    ).fetchone()
    if row is None:
        return None
    if len(query.vector.values) != row["vector_bytes"]:
        raise ProviderFailed(
            f"The query's vector has {len(query.vector.values)} bytes; those of {query.vector.model} have "
            f"{row['vector_bytes']}.",
            retryable=False,
        )
    return Meaning(index=index, model_key=row["model_key"], vector=query.vector, cache=cache, check=check)
