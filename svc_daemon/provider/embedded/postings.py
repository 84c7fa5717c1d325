"""The postings of chunks: which words occur in which chunks.

FTS5 needs a row's exact text to remove the row, and then only marks it as deleted. It purges deleted rows as documents
are added, so an index that mostly shrinks would keep them. So once there are more removed chunks than remaining ones,
the postings are rebuilt from the view `indexed_chunks`. FTS5's own incremental merge of all segments (`merge` with a
negative number) is not used: it adds a level to its structure at each step, until SQLite 3.40 reports the index as
damaged.
"""

import sqlite3

from svc_daemon.provider.embedded.schema import KeyRange

#: Minimum number of removed chunks for a rebuild of the postings. Fewer chunks waste only about 300 KB.
LEAST_REMOVED = 500
#: Maximum number of remaining chunks for a rebuild of the postings, which blocks writes for up to a second. A larger
#: index keeps deleted rows until FTS5 purges them or until it has shrunk to this size.
REBUILD_MOST = 50_000

#: Selects the text to index of the chunks in a range of keys.
_CHUNKS = """
    SELECT chunk_key, title, headings, text, unspaced, buckets FROM indexed_chunks
    WHERE chunk_key BETWEEN :first AND :last
"""


def add_postings(connection: sqlite3.Connection, keys: KeyRange) -> None:
    """Add the words of these chunks to the index, from the text that the view `indexed_chunks` returns now."""
    # FTS5 writes a segment of postings for each such statement, so a batch of documents is one call.
    connection.execute(
        f"INSERT INTO chunk_index (rowid, title, headings, text, unspaced, buckets) {_CHUNKS} ORDER BY chunk_key",
        keys.parameters(),
    )


def remove_postings(connection: sqlite3.Connection, keys: KeyRange) -> int:
    """Remove the words of these chunks from the index. Returns the number of chunks.

    The view `indexed_chunks` must still return exactly the text that was indexed.
    """
    rows = connection.execute(_CHUNKS, keys.parameters()).fetchall()
    for row in rows:
        # Remove one row per statement: FTS5 writes an extra segment of postings after a statement that may remove more.
        connection.execute(
            """
            INSERT INTO chunk_index (chunk_index, rowid, title, headings, text, unspaced, buckets)
            VALUES ('delete', ?, ?, ?, ?, ?, ?)
            """,
            row,
        )
    return len(rows)


def count_removed(connection: sqlite3.Connection, chunks: int) -> None:
    """Add this number to the count of removed chunks."""
    connection.execute("UPDATE totals SET removed = removed + :chunks", {"chunks": chunks})


def clean_up(connection: sqlite3.Connection) -> None:
    """If there are enough removed chunks, rebuild the postings to free their space."""
    totals = connection.execute("SELECT chunks, removed FROM totals").fetchone()
    if connection.execute("SELECT 1 FROM documents LIMIT 1").fetchone() is None:
        _run(connection, "delete-all")
    elif totals["removed"] > max(LEAST_REMOVED, totals["chunks"]) and totals["chunks"] <= REBUILD_MOST:
        _run(connection, "rebuild")


def _run(connection: sqlite3.Connection, command: str) -> None:
    connection.execute("INSERT INTO chunk_index (chunk_index) VALUES (:command)", {"command": command})
    connection.execute("UPDATE totals SET removed = 0")
