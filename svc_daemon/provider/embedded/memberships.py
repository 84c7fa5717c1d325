"""Which documents of an index are in which buckets."""

import json
import sqlite3
from collections.abc import Iterable, Sequence

from svc_daemon.wire.parsing import parse_json


def list_buckets(connection: sqlite3.Connection, document_key: int) -> tuple[str, ...]:
    """List the document's buckets, sorted."""
    rows = connection.execute(
        "SELECT bucket_id FROM memberships WHERE document_key = :document_key ORDER BY bucket_id",
        {"document_key": document_key},
    )
    return tuple(row["bucket_id"] for row in rows)


def list_buckets_of_all(connection: sqlite3.Connection, document_keys: Iterable[int]) -> dict[int, tuple[str, ...]]:
    """Map the keys of documents to their sorted buckets."""
    (listed,) = connection.execute(
        """
        SELECT json_group_array(json_array(document_key, bucket_id)) FROM memberships
        WHERE document_key IN (SELECT value FROM json_each(:keys))
        """,
        {"keys": json.dumps(list(document_keys))},
    ).fetchone()
    buckets: dict[int, tuple[str, ...]] = {}
    for key, bucket_id in sorted(parse_json(listed)):
        buckets[key] = (*buckets.get(key, ()), bucket_id)
    return buckets


def create_buckets(connection: sqlite3.Connection, documents: Iterable[tuple[int, Sequence[str], int]]) -> None:
    """Add documents to buckets. Each tuple has a document's key, its buckets, and its number of searchable chunks."""
    connection.executemany(
        "INSERT INTO memberships (document_key, bucket_id, chunks) VALUES (?, ?, ?)",
        [(key, bucket_id, chunks) for key, bucket_ids, chunks in documents for bucket_id in bucket_ids],
    )


def count_in(connection: sqlite3.Connection, document_key: int, chunks: int) -> None:
    """Set how many chunks the document adds to its buckets' counts; 0 while searches don't find it."""
    connection.execute(
        "UPDATE memberships SET chunks = :chunks WHERE document_key = :key", {"chunks": chunks, "key": document_key}
    )


def delete_buckets(connection: sqlite3.Connection, document_key: int) -> None:
    connection.execute("DELETE FROM memberships WHERE document_key = :key", {"key": document_key})


def count_bucket_chunks(connection: sqlite3.Connection, bucket_id: str) -> int:
    """Count the bucket's chunks that searches find."""
    (chunks,) = connection.execute(
        "SELECT coalesce(sum(chunks), 0) FROM memberships WHERE bucket_id = :bucket_id", {"bucket_id": bucket_id}
    ).fetchone()
    return int(chunks)
