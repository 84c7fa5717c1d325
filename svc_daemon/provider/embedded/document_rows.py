"""The steps of writing and removing documents, each within the caller's transaction."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence

from svc_daemon.provider.embedded import documents, embeddings, packing
from svc_daemon.provider.embedded.packing import SLICE_CHUNKS, ChunkRow, PackedDocument, pack_unspaced
from svc_daemon.provider.embedded.schema import KeyRange, overwriting

#: With more chunks than this, writing all rows and postings anew would take too long.
RENEW_MOST = 5_000
#: With more free pages than this, 200 MB, overwriting them would take too long.
OVERWRITE_MOST_PAGES = 50_000

#: Returns whether a new document may replace the visible one. The argument is the visible document's row, or None.
MayReplace = Callable[[sqlite3.Row | None], bool]


def create(connection: sqlite3.Connection, document: PackedDocument, *, is_hidden: bool) -> int:
    """Create the document's row and memberships. Returns the document's key, the highest in the index."""
    key = _create_row(connection, document, is_hidden=is_hidden)
    # Chunks are indexed with their buckets, so create the memberships first.
    counted = 0 if is_hidden else len(document.chunk_rows)
    documents.create_buckets(connection, [(key, document.bucket_ids, counted)])
    return key


def _create_row(connection: sqlite3.Connection, document: PackedDocument, *, is_hidden: bool) -> int:
    cursor = connection.execute(
        """
        INSERT INTO documents (source_id, generation, title, title_unspaced, chunks, pieces, hidden)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        """,
        (
            document.source_id,
            document.generation,
            document.title,
            pack_unspaced(document.title),
            len(document.chunk_rows),
            len(document.pieces),
            is_hidden,
        ),
    )
    return int(cursor.lastrowid or 0)


def create_shown(connection: sqlite3.Connection, packed: Sequence[PackedDocument]) -> None:
    """Create documents that are visible to searches. Their sources must have no other visible document."""
    created = [(_create_row(connection, document, is_hidden=False), document) for document in packed]
    documents.create_buckets(connection, [(key, each.bucket_ids, len(each.chunk_rows)) for key, each in created])
    add_pieces(connection, [(key, *piece) for key, document in created for piece in enumerate(document.pieces)])
    ranges = [KeyRange.of_document(key) for key, _ in created]
    _insert_chunks(connection, [(keys, each.chunk_rows) for keys, (_, each) in zip(ranges, created, strict=True)])
    # Keys are consecutive, so the range has no other document's chunks.
    packing.add_postings(connection, KeyRange(ranges[0].first, ranges[-1].last))
    _count(connection, sum(len(document.chunk_rows) for document in packed))


def add_pieces(connection: sqlite3.Connection, pieces: Sequence[tuple[int, int, bytes]]) -> None:
    """Store pieces of texts. Each is given as the document's key, its position and the compressed text."""
    connection.executemany("INSERT INTO texts (document_key, piece, text_zlib) VALUES (?, ?, ?)", pieces)


def add_chunks(connection: sqlite3.Connection, document_key: int, ordinal: int, rows: Sequence[ChunkRow]) -> None:
    """Store and index chunks of the document; the first one has this ordinal."""
    keys = KeyRange.of_chunks(document_key, ordinal, len(rows))
    _insert_chunks(connection, [(keys, rows)])
    packing.add_postings(connection, keys)


def show(
    connection: sqlite3.Connection, source_id: str, document_key: int, may_replace: MayReplace, *, is_copy: bool = False
) -> int | None:
    """Make the document visible to searches, and hide the document that it replaces, if `may_replace` allows it.

    Returns the key of the document that the caller must remove: the replaced document or, if `may_replace` forbids it,
    `document_key`. None if there is nothing to remove.
    """
    shown = documents.find(connection, source_id)
    if not may_replace(shown):
        return document_key
    if is_copy and shown is not None:
        embeddings.count_copied(connection, shown, document_key)
    hidden = hide(connection, shown)
    _set_hidden(connection, document_key, False)
    (chunks,) = connection.execute(
        "SELECT chunks FROM documents WHERE document_key = :key", {"key": document_key}
    ).fetchone()
    documents.count_in(connection, document_key, chunks)
    _count(connection, chunks)
    return hidden


def hide(connection: sqlite3.Connection, shown: sqlite3.Row | None) -> int | None:
    """Hide the document from searches, and return its key. Does nothing for None."""
    if shown is None:
        return None
    key = int(shown["document_key"])
    _set_hidden(connection, key, True)
    documents.count_in(connection, key, 0)
    _count(connection, -shown["chunks"])
    return key


def remove_small(connection: sqlite3.Connection, document_keys: Sequence[int]) -> None:
    """Remove documents that searches don't see, and that are small enough for one transaction."""
    if not document_keys:
        return
    # Remove postings in the order of keys, because FTS5 starts a new segment if a key is lower than the one before.
    # Remove them before the chunks' rows, because FTS5 needs the texts in these rows to find the postings.
    ranges = [KeyRange.of_document(key) for key in sorted(document_keys)]
    chunks = sum(packing.remove_postings(connection, keys) for keys in ranges)
    with overwriting(connection):
        for keys in ranges:
            _delete_chunks(connection, keys)
        connection.executemany("DELETE FROM texts WHERE document_key = ?", [(key,) for key in document_keys])
    for key in document_keys:
        _delete_row(connection, key)
    packing.count_removed(connection, chunks)
    packing.clean_up(connection)


def remove_last_chunks(connection: sqlite3.Connection, document_key: int) -> bool:
    """Remove the last chunks of a hidden document, up to `SLICE_CHUNKS`. Returns False if there were none."""
    every = KeyRange.of_document(document_key)
    (last,) = connection.execute(
        "SELECT max(chunk_key) FROM chunks WHERE chunk_key BETWEEN :first AND :last", every.parameters()
    ).fetchone()
    if last is None:
        return False
    keys = KeyRange(max(every.first, last - SLICE_CHUNKS + 1), last)
    # Remove the postings before the chunks' rows, because FTS5 needs the texts in these rows to find the postings.
    packing.remove_postings(connection, keys)
    with overwriting(connection):
        _delete_chunks(connection, keys)
    packing.count_removed(connection, keys.last - keys.first + 1)
    return True


def remove_last_piece(connection: sqlite3.Connection, document_key: int) -> bool:
    """Remove the last piece of a hidden document's text. Returns False if there was none."""
    with overwriting(connection):
        rows = connection.execute(
            """
            DELETE FROM texts WHERE document_key = :key
                AND piece = (SELECT max(piece) FROM texts WHERE document_key = :key) RETURNING piece
            """,
            {"key": document_key},
        ).fetchall()
    return bool(rows)


def remove_row(connection: sqlite3.Connection, document_key: int) -> None:
    """Remove the row and memberships of a hidden document that has no chunks or text left."""
    _delete_row(connection, document_key)
    packing.clean_up(connection)


def is_purge_due(connection: sqlite3.Connection) -> bool:
    """Whether documents were removed since the last purge, and the index is small enough for one."""
    totals = connection.execute("SELECT chunks, removed FROM totals").fetchone()
    return bool(totals["removed"] and totals["chunks"] <= packing.REBUILD_MOST)


def purge(connection: sqlite3.Connection) -> None:
    """Overwrite what removed documents have left: words in the postings, and text in unused parts of pages."""
    (chunks,) = connection.execute("SELECT chunks FROM totals").fetchone()
    (pages,) = connection.execute("PRAGMA freelist_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    with overwriting(connection):
        if pages <= OVERWRITE_MOST_PAGES:
            # A blob of this size takes all free pages, such as those that FTS5 has freed. Deleting it overwrites them.
            connection.execute(
                "INSERT INTO texts (document_key, piece, text_zlib) VALUES (-1, 0, zeroblob(:size))",
                {"size": (pages + 1) * page_bytes},
            )
            connection.execute("DELETE FROM texts WHERE document_key = -1")
        # Where SQLite has moved a row to another page, the old page may still have its bytes, so write all pages anew.
        for table in ("documents", "texts", "chunks") if chunks <= RENEW_MOST else ():
            connection.execute(f"CREATE TEMP TABLE moved AS SELECT * FROM {table}")  # noqa: S608 - our own names
            connection.execute(f"DELETE FROM {table}")  # noqa: S608
            connection.execute(f"INSERT INTO {table} SELECT * FROM moved")  # noqa: S608
            connection.execute("DROP TABLE moved")
        packing.drop_removed_words(connection, anew=chunks <= RENEW_MOST)


def list_hidden(connection: sqlite3.Connection) -> list[int]:
    """List the keys of documents that are hidden from searches."""
    rows = connection.execute("SELECT document_key FROM documents WHERE hidden = 1 ORDER BY document_key")
    return [row["document_key"] for row in rows]


def _insert_chunks(connection: sqlite3.Connection, slices: Iterable[tuple[KeyRange, Sequence[ChunkRow]]]) -> None:
    connection.executemany(
        """
        INSERT INTO chunks (chunk_key, char_start, char_end, page, line_start, line_end, headings, text, unspaced)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [(key, *row) for keys, rows in slices for key, row in enumerate(rows, start=keys.first)],
    )


def _delete_chunks(connection: sqlite3.Connection, keys: KeyRange) -> None:
    connection.execute("DELETE FROM chunks WHERE chunk_key BETWEEN :first AND :last", keys.parameters())
    embeddings.delete(connection, keys)


def _delete_row(connection: sqlite3.Connection, document_key: int) -> None:
    documents.delete_buckets(connection, document_key)
    connection.execute("DELETE FROM documents WHERE document_key = :key", {"key": document_key})


def _set_hidden(connection: sqlite3.Connection, document_key: int, hidden: bool) -> None:
    connection.execute(
        "UPDATE documents SET hidden = :hidden WHERE document_key = :key", {"hidden": hidden, "key": document_key}
    )


def _count(connection: sqlite3.Connection, chunks: int) -> None:
    """Add to the number of chunks that searches find. The new revision invalidates all cached counts."""
    connection.execute("UPDATE totals SET revision = revision + 1, chunks = chunks + :chunks", {"chunks": chunks})
