"""The postings of chunks: which words occur in which chunks.

FTS5 only marks removed rows as deleted. So once most chunks have been removed, the postings are rebuilt from the view
`indexed_chunks`. FTS5's command `merge` with a negative number is not used: after repeated use, SQLite reports a
damaged index.
"""

import sqlite3

from svc_daemon.provider.embedded.schema import KeyRange

#: If fewer chunks than this were removed, rebuilding the postings is not worth the time.
LEAST_REMOVED = 500
#: In an index with more chunks, rebuilding the postings would block writes for over a second.
REBUILD_MOST = 50_000

#: Selects the text to index for a range of chunks.
_CHUNKS = """
    SELECT chunk_key, title, headings, text, unspaced, buckets FROM indexed_chunks
    WHERE chunk_key BETWEEN :first AND :last
"""


def add_postings(connection: sqlite3.Connection, keys: KeyRange) -> None:
    """Add the words of these chunks to the index."""
    # Add all chunks with one statement, because FTS5 writes a segment for each statement.
    connection.execute(
        f"INSERT INTO chunk_index (rowid, title, headings, text, unspaced, buckets) {_CHUNKS} ORDER BY chunk_key",
        keys.parameters(),
    )


def remove_postings(connection: sqlite3.Connection, keys: KeyRange) -> int:
    """Remove the words of these chunks from the index. Returns the number of chunks.

    The view `indexed_chunks` must still return the text that was indexed.
    """
    rows = connection.execute(_CHUNKS, keys.parameters()).fetchall()
    for row in rows:
        # One statement for each row: FTS5 writes an extra segment after a statement that removes several.
        connection.execute(
            """
            INSERT INTO chunk_index (chunk_index, rowid, title, headings, text, unspaced, buckets)
            VALUES ('delete', ?, ?, ?, ?, ?, ?)
            """,
            row,
        )
    return len(rows)


def count_removed(connection: sqlite3.Connection, chunks: int) -> None:
    """Add to the number of removed chunks."""
    connection.execute("UPDATE totals SET removed = removed + :chunks", {"chunks": chunks})


def clean_up(connection: sqlite3.Connection) -> None:
    """Rebuild the postings if many chunks were removed, or clear them if no document is left.

    The number of removed chunks is then 1, so that the next purge overwrites the pages that this has freed.
    """
    totals = connection.execute("SELECT chunks, removed FROM totals").fetchone()
    if connection.execute("SELECT 1 FROM documents LIMIT 1").fetchone() is None:
        _run(connection, "delete-all", removed=1)
    elif totals["removed"] > max(LEAST_REMOVED, totals["chunks"]) and totals["chunks"] <= REBUILD_MOST:
        _run(connection, "rebuild", removed=1)


def drop_removed_words(connection: sqlite3.Connection, *, anew: bool) -> None:
    """Remove the words of removed chunks: write all postings `anew`, or merge them, which takes a fifth of the time."""
    _run(connection, "rebuild" if anew else "optimize", removed=0)


def _run(connection: sqlite3.Connection, command: str, *, removed: int) -> None:
    connection.execute("INSERT INTO chunk_index (chunk_index) VALUES (:command)", {"command": command})
    connection.execute("UPDATE totals SET removed = :removed", {"removed": removed})
