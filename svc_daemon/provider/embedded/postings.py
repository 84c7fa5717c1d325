"""The postings of chunks: which words stand where.

FTS5 takes a row out by being told its exact text again, and only marks it as gone: words and marks go away when
segments are merged. Adding documents merges by itself; an index from which much was removed would keep the dead
weight, so each removal then pays for a piece of a full merge until it is done.
"""

import sqlite3

from svc_daemon.provider.embedded.schema import KeyRange

#: A full merge begins when this share of the chunks left has been removed since the last one.
REMOVED_SHARE = 0.5
#: Pages of 4 KB that one removal writes for a full merge under way: some 3 ms of work,
MERGE_PAGES = 16
#: and one more for as many chunks, which is more than they took, so that merging keeps ahead of removing.
CHUNKS_PER_MERGE_PAGE = 4


def add_postings(connection: sqlite3.Connection, keys: KeyRange) -> None:
    """Index these chunks as the view shows them now."""
    connection.execute(
        """
        INSERT INTO chunk_index (rowid, title, headings, text, buckets)
        SELECT chunk_key, title, headings, text, buckets FROM indexed_chunks
        WHERE chunk_key BETWEEN :first AND :last
        """,
        keys.parameters(),
    )


def remove_postings(connection: sqlite3.Connection, keys: KeyRange) -> None:
    """Take these chunks out. The view must still show them exactly as they were added."""
    connection.execute(
        """
        INSERT INTO chunk_index (chunk_index, rowid, title, headings, text, buckets)
        SELECT 'delete', chunk_key, title, headings, text, buckets FROM indexed_chunks
        WHERE chunk_key BETWEEN :first AND :last
        """,
        keys.parameters(),
    )


def clean_up(connection: sqlite3.Connection, removed: int) -> None:
    """Record that so many chunks were removed and give back their room, a piece at a time."""
    connection.execute("UPDATE totals SET removed = removed + :removed", {"removed": removed})
    totals = connection.execute("SELECT chunks, removed FROM totals").fetchone()
    if totals["removed"] <= REMOVED_SHARE * totals["chunks"]:
        return
    if _merge_piece(connection, MERGE_PAGES + removed // CHUNKS_PER_MERGE_PAGE):
        connection.execute("UPDATE totals SET removed = 0")


def clear_if_empty(connection: sqlite3.Connection) -> None:
    """Drop what is left of the postings once there is no document, not even a hidden one."""
    if connection.execute("SELECT 1 FROM documents LIMIT 1").fetchone() is None:
        connection.execute("INSERT INTO chunk_index (chunk_index) VALUES ('delete-all')")
        connection.execute("UPDATE totals SET removed = 0")


def _merge_piece(connection: sqlite3.Connection, pages: int) -> bool:
    """Whether the full merge is done: FTS5 shows it by changing less than two rows."""
    before = connection.total_changes
    # A negative number takes in all segments, as `optimize` does, but stops after that many pages.
    connection.execute("INSERT INTO chunk_index (chunk_index, rank) VALUES ('merge', ?)", (-pages,))
    return connection.total_changes - before < 2
