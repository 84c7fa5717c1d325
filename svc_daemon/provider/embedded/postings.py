"""The postings of chunks: which words occur where.

FTS5 removes a row by its exact text, and only marks it as deleted. Words and marks go away when
segments are merged, which adding documents does by itself; an index from which much was removed would keep the dead
weight. So once that is more than what is left, the postings are rebuilt from the view. FTS5's own way, a merge of
all segments in steps (`merge` with a negative number), adds a level to its structure at each step, and SQLite 3.40
comes to take the index for damaged.
"""

import sqlite3

from svc_daemon.provider.embedded.schema import KeyRange

#: Fewer removed chunks than this are not worth any work: some 300 KB.
LEAST_REMOVED = 500
#: The postings of more chunks than this are not rebuilt: the writer would be busy for more than a second. A larger
#: index keeps dead weight until merges reach it or until it has shrunk to this.
MOST_ANEW = 50_000


def add_postings(connection: sqlite3.Connection, keys: KeyRange) -> None:
    """Index these chunks as the view shows them now."""
    connection.execute(
        """
        INSERT INTO chunk_index (rowid, title, headings, text, unspaced, buckets)
        SELECT chunk_key, title, headings, text, unspaced, buckets FROM indexed_chunks
        WHERE chunk_key BETWEEN :first AND :last
        """,
        keys.parameters(),
    )


def remove_postings(connection: sqlite3.Connection, keys: KeyRange) -> None:
    """Take these chunks out. The view must still show them exactly as they were added."""
    connection.execute(
        """
        INSERT INTO chunk_index (chunk_index, rowid, title, headings, text, unspaced, buckets)
        SELECT 'delete', chunk_key, title, headings, text, unspaced, buckets FROM indexed_chunks
        WHERE chunk_key BETWEEN :first AND :last
        """,
        keys.parameters(),
    )


def count_removed(connection: sqlite3.Connection, chunks: int) -> None:
    """Record that so many chunks were taken out."""
    connection.execute("UPDATE totals SET removed = removed + :chunks", {"chunks": chunks})


def clean_up(connection: sqlite3.Connection) -> None:
    """Give back the room of removed chunks, where that is due."""
    totals = connection.execute("SELECT chunks, removed FROM totals").fetchone()
    if connection.execute("SELECT 1 FROM documents LIMIT 1").fetchone() is None:
        _run(connection, "delete-all")
    elif totals["removed"] > max(LEAST_REMOVED, totals["chunks"]) and totals["chunks"] <= MOST_ANEW:
        _run(connection, "rebuild")


def _run(connection: sqlite3.Connection, command: str) -> None:
    connection.execute("INSERT INTO chunk_index (chunk_index) VALUES (:command)", {"command": command})
    connection.execute("UPDATE totals SET removed = 0")
