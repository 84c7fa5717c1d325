"""Which buckets a document is in, as the index has it."""

import json
import sqlite3
from collections.abc import Iterable, Sequence


def list_buckets(connection: sqlite3.Connection, document_key: int) -> tuple[str, ...]:
    """The document's buckets, sorted."""
    rows = connection.execute(
        "SELECT bucket_id FROM memberships WHERE document_key = :document_key ORDER BY bucket_id",
        {"document_key": document_key},
    )
    return tuple(row["bucket_id"] for row in rows)


def replace_buckets(connection: sqlite3.Connection, document_key: int, bucket_ids: Iterable[str], chunks: int) -> None:
    """Make the document, which has this many chunks, a member of exactly these buckets."""
    delete_buckets(connection, document_key)
    connection.executemany(
        "INSERT INTO memberships (document_key, bucket_id, chunks) VALUES (?, ?, ?)",
        [(document_key, bucket_id, chunks) for bucket_id in distinct(bucket_ids)],
    )


def delete_buckets(connection: sqlite3.Connection, document_key: int) -> None:
    connection.execute("DELETE FROM memberships WHERE document_key = :key", {"key": document_key})


def is_member(connection: sqlite3.Connection, document_key: int, bucket_ids: Sequence[str]) -> bool:
    """Whether the document is in one of these buckets."""
    row = connection.execute(
        """
        SELECT 1 FROM memberships
        WHERE document_key = :key AND bucket_id IN (SELECT value FROM json_each(:bucket_ids)) LIMIT 1
        """,
        {"key": document_key, "bucket_ids": json.dumps(bucket_ids)},
    ).fetchone()
    return row is not None


def count_bucket_chunks(connection: sqlite3.Connection, bucket_id: str) -> int:
    """How many chunks the documents of a bucket have in all."""
    (chunks,) = connection.execute(
        "SELECT coalesce(sum(chunks), 0) FROM memberships WHERE bucket_id = :bucket_id", {"bucket_id": bucket_id}
    ).fetchone()
    return int(chunks)


def distinct(bucket_ids: Iterable[str]) -> tuple[str, ...]:
    """Each once, sorted: the form in which buckets are kept and compared."""
    return tuple(sorted(set(bucket_ids)))
