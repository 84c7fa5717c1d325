"""The vectors of chunks: which there are, of which model, and which are missing. All but `drop` run in their caller's
transaction.

A document's row names one model, the last that put a vector of it, and counts that model's. Vectors of another one,
left by a change of models, are ignored, and replaced when the new model embeds their chunk.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from svc_daemon.database import Database
from svc_daemon.provider.contract import ChunkText, VectorCount, chunk_id, parse_chunk_id
from svc_daemon.provider.embedded import documents
from svc_daemon.provider.embedded.packing import SLICE_CHUNKS, unpack_headings
from svc_daemon.provider.embedded.schema import ORDINAL_BITS, KeyRange, overwriting
from svc_daemon.provider.embedded.scopes import as_json
from svc_daemon.provider.errors import ProviderFailed


@dataclass(frozen=True, slots=True)
class SignedVector:
    """A vector on its way into the tables."""

    chunk_id: str
    values: bytes
    #: One bit for each number.
    signs: bytes


def sign(vectors: Sequence[tuple[str, bytes]]) -> list[SignedVector]:
    """What is stored of these vectors, computed before the writer is used."""
    from svc_daemon.provider.embedded import arrays  # noqa: PLC0415 - see there

    signs = arrays.pack_signs([values for _, values in vectors])
    return [SignedVector(name, values, bits) for (name, values), bits in zip(vectors, signs, strict=True)]


def find_model(connection: sqlite3.Connection, name: str) -> int | None:
    """The key of the model of which the index has vectors, or None."""
    row = connection.execute("SELECT model_key FROM models WHERE name = :name", {"name": name}).fetchone()
    return None if row is None else int(row["model_key"])


def list_missing(connection: sqlite3.Connection, model: str, limit: int) -> list[ChunkText]:
    """Up to `limit` chunks without a vector of this model, oldest documents first."""
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
        parts = dict.fromkeys((row["title"], *unpack_headings(row["headings"]), row["text"]))
        name = chunk_id(row["source_id"], row["generation"], ordinal)
        chunks.append(ChunkText(name, "\n".join(filter(None, parts))))
    return chunks


def count_missing(
    connection: sqlite3.Connection,
    model: str,
    bucket_ids: Sequence[str] | None,
    source_ids: Sequence[str] | None = None,
) -> VectorCount:
    """How many chunks of these buckets and sources have no vector of this model; None is no limit of that kind."""
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
            "bucket_ids": as_json(bucket_ids),
            "source_ids": as_json(source_ids),
        },
    ).fetchone()
    return VectorCount(row["chunks"] - row["embedded"], row["chunks"])


def put(connection: sqlite3.Connection, model: str, vectors: Sequence[SignedVector]) -> None:
    """Store vectors of this model in place of what their chunks had; those of deleted chunks are skipped.

    Raises ProviderFailed where the model's vectors are not all of one length.
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


def copy(connection: sqlite3.Connection, origin_key: int, document_key: int, ordinal: int, count: int) -> None:
    """Give `count` chunks of a hidden copy, from this ordinal on, the vectors that the origin has now."""
    origin = KeyRange.of_chunks(origin_key, ordinal, count)
    parameters = {**origin.parameters(), "shift": document_key - origin_key << ORDINAL_BITS}
    connection.execute(
        """
        INSERT INTO vectors (chunk_key, model_key, vector)
        SELECT chunk_key + :shift, model_key, vector FROM vectors WHERE chunk_key BETWEEN :first AND :last
        """,
        parameters,
    )
    connection.execute(
        """
        INSERT INTO signs (chunk_key, model_key, signs)
        SELECT chunk_key + :shift, model_key, signs FROM signs WHERE chunk_key BETWEEN :first AND :last
        """,
        parameters,
    )


def count_copied(connection: sqlite3.Connection, origin: sqlite3.Row, document_key: int) -> None:
    """Record how many vectors a copy has of the model in its origin's row; the origin may have received more."""
    if origin["model_key"] is not None:
        _count(connection, document_key, origin["model_key"])


def delete(connection: sqlite3.Connection, keys: KeyRange) -> None:
    """Remove the vectors of these chunks, whatever their model."""
    connection.execute("DELETE FROM vectors WHERE chunk_key BETWEEN :first AND :last", keys.parameters())
    connection.execute("DELETE FROM signs WHERE chunk_key BETWEEN :first AND :last", keys.parameters())


def drop(database: Database, keep_model: str | None) -> None:
    """Remove the vectors of every other model, in transactions of their own. What a crash leaves goes the next time."""
    keep_key = database.write(lambda connection: _disown(connection, keep_model))
    after: int | None = -1
    while after is not None:
        last = after
        after = database.write(lambda connection: _delete_others(connection, keep_key, last))  # noqa: B023 - run at once


def _find_key(connection: sqlite3.Connection, name: str) -> int | None:
    """The key of a chunk that is shown, or None."""
    source_id, generation, ordinal = parse_chunk_id(name)
    stored = documents.find(connection, source_id)
    if stored is None or stored["generation"] != generation or ordinal >= stored["chunks"]:
        return None
    return int(stored["document_key"]) << ORDINAL_BITS | ordinal


def _count(connection: sqlite3.Connection, document_key: int, model_key: int) -> None:
    """Record how many vectors of this model the document has, and that they changed."""
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
    """Forget every model but the one that is kept, and the documents' counts. Returns the key of the kept one."""
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
    """Delete a slice of the other models' vectors after this key. Returns the last key, or None at the end."""
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
