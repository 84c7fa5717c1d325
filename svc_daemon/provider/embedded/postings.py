"""The postings of chunks: which words stand where. Written for a whole document at a time.

FTS5 takes a row out by being told its exact text again, and only marks it as gone: words and marks go away when
segments are merged. Adding documents merges by itself; an index from which much was removed would keep the dead
weight, so each removal then pays for a piece of a full merge until it is done.
"""

import sqlite3

from svc_daemon.provider.embedded.schema import key_range

#: A full merge begins when this share of the chunks left has been removed since the last one.
REMOVED_SHARE = 0.5
#: Pages of 4 KB that one removal writes for a full merge under way: some 3 ms of work.
MERGE_PAGES = 16


def add_postings(connection: sqlite3.Connection, document_key: int) -> None:
    """Make the document's chunks findable, as the view shows them now."""
    connection.execute(
        """
        INSERT INTO chunk_index (rowid, title, headings, text, buckets)
        SELECT chunk_key, title, headings, text, buckets FROM indexed_chunks
        WHERE chunk_key BETWEEN :first AND :last
        """,
        key_range(document_key),
    )


def remove_postings(connection: sqlite3.Connection, document_key: int) -> None:
    """Take the document's chunks out. The view must still show them exactly as they were added."""
    connection.execute(
        """
        INSERT INTO chunk_index (chunk_index, rowid, title, headings, text, buckets)
        SELECT 'delete', chunk_key, title, headings, text, buckets FROM indexed_chunks
        WHERE chunk_key BETWEEN :first AND :last
        """,
        key_range(document_key),
    )


def count_change(connection: sqlite3.Connection, *, added: int, removed: int) -> None:
    """Record that this many chunks were added to the postings and this many taken out."""
    connection.execute(
        """
        UPDATE totals SET revision = revision + 1, chunks = chunks + :added - :removed, removed = removed + :removed
        """,
        {"added": added, "removed": removed},
    )


def clean_up(connection: sqlite3.Connection) -> None:
    """Give back the room of removed chunks: at once when none is left, else by a piece of a merge when it is due."""
    totals = connection.execute("SELECT chunks, removed FROM totals").fetchone()
    if totals["chunks"] == 0:
        connection.execute("INSERT INTO chunk_index (chunk_index) VALUES ('delete-all')")
        _forget_removed(connection)
    elif totals["removed"] > REMOVED_SHARE * totals["chunks"] and _merge_piece(connection):
        _forget_removed(connection)


def _merge_piece(connection: sqlite3.Connection) -> bool:
    """Whether the full merge is done: FTS5 shows it by changing less than two rows."""
    before = connection.total_changes
    # A negative number of pages takes in all segments, as `optimize` does, but stops after that many pages.
    connection.execute("INSERT INTO chunk_index (chunk_index, rank) VALUES ('merge', ?)", (-MERGE_PAGES,))
    return connection.total_changes - before < 2


def _forget_removed(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE totals SET removed = 0")
