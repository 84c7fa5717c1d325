"""The vectors of chunks, read and written within the caller's transaction.

A document's row has the key of the model that embedded it last, and the number of that model's vectors. Vectors of
earlier models are ignored until they are replaced.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from svc_daemon.databases.sqlite import SqliteDatabase
from svc_daemon.provider.contract import ChunkText, VectorCount, chunk_id, parse_chunk_id
from svc_daemon.provider.embedded import documents
from svc_daemon.provider.embedded.packing import SLICE_CHUNKS, unpack_names
from svc_daemon.provider.embedded.schema import MAX_ORDINAL, ORDINAL_BITS, KeyRange, overwriting
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.provider.ranked_chunks import embeddable


@dataclass(frozen=True, slots=True)
class SignedVector:
    """A chunk's vector and its signs, ready to be stored."""

    chunk_id: str
    values: bytes
    #: The signs of the vector's components, one bit each.
    signs: bytes


def sign(vectors: Sequence[tuple[str, bytes]]) -> list[SignedVector]:
    """Compute the vectors' signs. Call this before the write transaction begins."""
    from svc_daemon.provider.embedded import arrays  # noqa: PLC0415 - see there

    signs = arrays.pack_signs([values for _, values in vectors])
    return [SignedVector(name, values, bits) for (name, values), bits in zip(vectors, signs, strict=True)]


def find_model(connection: sqlite3.Connection, name: str) -> int | None:
    """Return the key of the model with this name; None if the index has no vectors of it."""
    row = connection.execute("SELECT model_key FROM models WHERE name = :name", {"name": name}).fetchone()
    return None if row is None else int(row["model_key"])


def list_missing(connection: sqlite3.Connection, model: str, limit: int) -> list[ChunkText]:
    """List up to `limit` chunks without a vector of this model, oldest documents first."""
    model_key = find_model(connection, model)
    rows = connection.execute(
        """
        SELECT d.source_id, d.generation, d.title, c.chunk_key, c.headings, c.text FROM documents AS d
        CROSS JOIN chunks AS c ON c.chunk_key BETWEEN d.document_key << :bits AND (d.document_key + 1 << :bits) - 1
        WHERE d.hidden = 0 AND (d.model_key IS NOT :model_key OR d.embedded < d.chunks)
            AND NOT EXISTS (SELECT 1 FROM signs AS s WHERE s.chunk_key = c.chunk_key AND s.model_key = :model_key)
        ORDER BY d.document_key, c.chunk_key LIMIT :limit
        """,
        {"model_key": model_key, "bits": ORDINAL_BITS, "limit": limit},
    )
    chunks = []
    for row in rows:
        ordinal = row["chunk_key"] & (1 << ORDINAL_BITS) - 1
        name = chunk_id(row["source_id"], row["generation"], ordinal)
        chunks.append(ChunkText(name, embeddable(row["title"], unpack_names(row["headings"]), row["text"])))
    return chunks


def find_vectors(connection: sqlite3.Connection, source_id: str, model: str) -> dict[str, bytes]:
    """Read the vectors of this model for the source's document, by chunk id."""
    stored = documents.find(connection, source_id)
    if stored is None:
        return {}
    rows = connection.execute(
        """
        SELECT chunk_key, vector FROM vectors
        WHERE model_key = :model_key AND chunk_key BETWEEN :first AND :last ORDER BY chunk_key
        """,
        {
            "model_key": find_model(connection, model),
            **KeyRange.of_chunks(stored["document_key"], 0, stored["chunks"]).parameters(),
        },
    )
    generation = stored["generation"]
    return {chunk_id(source_id, generation, row["chunk_key"] & MAX_ORDINAL): row["vector"] for row in rows}


def count_missing(
    connection: sqlite3.Connection,
    model: str,
    bucket_ids: Sequence[str] | None,
    source_ids: Sequence[str] | None = None,
) -> VectorCount:
    """Count the chunks in these buckets and sources (None: all), and those without a vector of this model."""
    row = connection.execute(
        """
        SELECT coalesce(sum(chunks), 0) AS chunks,
            coalesce(sum(CASE WHEN model_key = :model_key THEN embedded ELSE 0 END), 0) AS embedded
        FROM documents WHERE hidden = 0 AND (:bucket_ids IS NULL OR document_key IN (
            SELECT document_key FROM memberships WHERE bucket_id IN (SELECT value FROM json_each(:bucket_ids))))
            AND (:source_ids IS NULL OR source_id IN (SELECT value FROM json_each(:source_ids)))
        """,
        {
            "model_key": find_model(connection, model),
            "bucket_ids": None if bucket_ids is None else json.dumps(bucket_ids),
            "source_ids": None if source_ids is None else json.dumps(source_ids),
        },
    ).fetchone()
    return VectorCount(row["chunks"] - row["embedded"], row["chunks"])


def put(connection: sqlite3.Connection, model: str, vectors: Sequence[SignedVector]) -> None:
    """Store vectors of this model, replacing earlier ones. Vectors of deleted chunks are skipped.

    Raises ProviderFailed unless all of the model's vectors have the same length.
    """
    rows = [(key, vector) for vector in vectors if (key := _find_key(connection, vector.chunk_id)) is not None]
    if not rows:
        return
    lengths = {len(vector.values) for _, vector in rows}
    ((model_key, vector_bytes),) = connection.execute(
        """
        INSERT INTO models (name, vector_bytes) VALUES (:name, :length)
        ON CONFLICT (name) DO UPDATE SET name = name RETURNING model_key, vector_bytes
        """,
        {"name": model, "length": min(lengths)},
    ).fetchall()
    if lengths != {vector_bytes}:
        raise ProviderFailed(
            f"Vectors of {model} have {vector_bytes} bytes; some have {', '.join(map(str, sorted(lengths)))}.",
            retryable=False,
        )
    connection.executemany(
        "INSERT OR REPLACE INTO vectors (chunk_key, model_key, vector) VALUES (?, ?, ?)",
        [(key, model_key, vector.values) for key, vector in rows],
    )
    connection.executemany(
        "INSERT OR REPLACE INTO signs (chunk_key, model_key, signs) VALUES (?, ?, ?)",
        [(key, model_key, vector.signs) for key, vector in rows],
    )
    for document_key in {key >> ORDINAL_BITS for key, _ in rows}:
        _count(connection, document_key, model_key)


def delete(connection: sqlite3.Connection, keys: KeyRange) -> None:
    """Remove the vectors of these chunks."""
    connection.execute("DELETE FROM vectors WHERE chunk_key BETWEEN :first AND :last", keys.parameters())
    connection.execute("DELETE FROM signs WHERE chunk_key BETWEEN :first AND :last", keys.parameters())


def drop(database: SqliteDatabase, keep_model: str | None) -> None:
    """Remove all vectors except those of `keep_model`, in several transactions.

    After a crash, the next call removes the rest.
    """
    keep_key = database.write(lambda connection: _disown(connection, keep_model))
    after: int | None = -1
    while after is not None:
        last = after
        after = database.write(lambda connection: _delete_others(connection, keep_key, last))  # noqa: B023 - run at once


def _find_key(connection: sqlite3.Connection, name: str) -> int | None:
    """Return the key of the chunk with this id; None if searches don't find its document."""
    source_id, generation, ordinal = parse_chunk_id(name)
    stored = documents.find(connection, source_id)
    if stored is None or stored["generation"] != generation or ordinal >= stored["chunks"]:
        return None
    return int(stored["document_key"]) << ORDINAL_BITS | ordinal


def _count(connection: sqlite3.Connection, document_key: int, model_key: int) -> None:
    """Update the document's model and number of vectors."""
    connection.execute("UPDATE totals SET vector_revision = vector_revision + 1")
    connection.execute(
        """
        UPDATE documents SET model_key = :model_key, embedded_at = (SELECT vector_revision FROM totals), embedded = (
            SELECT count(*) FROM signs WHERE model_key = :model_key AND chunk_key BETWEEN :first AND :last)
        WHERE document_key = :document_key
        """,
        {"document_key": document_key, "model_key": model_key, **KeyRange.of_document(document_key).parameters()},
    )


def _disown(connection: sqlite3.Connection, keep_model: str | None) -> int | None:
    """Delete all models except `keep_model`, so that their vectors no longer count.

    Returns the key of the kept model, or None.
    """
    keep_key = None if keep_model is None else find_model(connection, keep_model)
    connection.execute("UPDATE totals SET vector_revision = vector_revision + 1")
    connection.execute(
        """
        UPDATE documents SET model_key = NULL, embedded = 0, embedded_at = (SELECT vector_revision FROM totals)
        WHERE model_key IS NOT :keep_key
        """,
        {"keep_key": keep_key},
    )
    connection.execute("DELETE FROM models WHERE model_key IS NOT :keep_key", {"keep_key": keep_key})
    return keep_key


def _delete_others(connection: sqlite3.Connection, keep_key: int | None, after: int) -> int | None:
    """Delete a batch of other models' vectors, for chunks with keys above `after`.

    Returns the last deleted key; None at the end.
    """
    rows = connection.execute(
        """
        SELECT chunk_key FROM signs WHERE model_key IS NOT :keep_key AND chunk_key > :after
        ORDER BY chunk_key LIMIT :limit
        """,
        {"keep_key": keep_key, "after": after, "limit": SLICE_CHUNKS},
    ).fetchall()
    keys = [(row["chunk_key"],) for row in rows]
    with overwriting(connection):
        connection.executemany("DELETE FROM vectors WHERE chunk_key = ?", keys)
        connection.executemany("DELETE FROM signs WHERE chunk_key = ?", keys)
    return keys[-1][0] if keys else None
