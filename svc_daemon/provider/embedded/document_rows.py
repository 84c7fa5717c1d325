"""The steps of writing and removing documents, each within the caller's transaction."""

import sqlite3
from collections.abc import Iterable, Sequence

from svc_daemon.provider.embedded import documents, embeddings
from svc_daemon.provider.embedded.packing import SLICE_CHUNKS, ChunkRow, PackedDocument, Wording
from svc_daemon.provider.embedded.schema import KeyRange, overwriting

#: With more chunks than this, writing all rows and postings again would take too long.
RENEW_MOST = 5_000
#: With more free pages than this, 200 MB, overwriting them would take too long.
OVERWRITE_MOST_PAGES = 50_000
#: A larger index is written again if more than this share of its chunks was removed, or the first of them was removed
#: this many seconds ago.
REMOVED_SHARE, REMOVED_S = 0.1, 86_400


def reserve_numbers(connection: sqlite3.Connection, count: int) -> range:
    """Return numbers that no document has ever had in the postings, and never gets again."""
    (last,) = connection.execute(
        "UPDATE totals SET last_key = last_key + :count RETURNING last_key", {"count": count}
    ).fetchone()
    return range(last - count + 1, last + 1)


def find_last_number(connection: sqlite3.Connection) -> int:
    """Return the highest number that a document has ever had in the postings."""
    (last,) = connection.execute("SELECT last_key FROM totals").fetchone()
    return int(last)


def create(connection: sqlite3.Connection, document: PackedDocument, posted_as: int, *, is_hidden: bool) -> int:
    """Create the document's row and memberships. Returns the document's key, the highest in the index."""
    cursor = connection.execute(
        """
        INSERT INTO documents (source_id, generation, title, chunks, pieces, hidden, posted_as, names, language)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            document.source_id,
            document.generation,
            document.title,
            len(document.chunk_rows),
            len(document.pieces),
            is_hidden,
            posted_as,
            document.names,
            document.language,
        ),
    )
    key = int(cursor.lastrowid or 0)
    documents.create_buckets(connection, [(key, document.bucket_ids, 0 if is_hidden else len(document.chunk_rows))])
    return key


def create_shown(connection: sqlite3.Connection, packed: Sequence[tuple[int, PackedDocument]]) -> None:
    """Create documents that are visible to searches, each given with its number in the postings.

    Their sources must have no other visible document.
    """
    created = [(create(connection, document, number, is_hidden=False), document) for number, document in packed]
    add_pieces(connection, [(key, *piece) for key, document in created for piece in enumerate(document.pieces)])
    for key, document in created:
        add_chunks(connection, key, 0, document.chunk_rows)
    _count(connection, sum(len(document.chunk_rows) for _, document in packed))


def add_pieces(connection: sqlite3.Connection, pieces: Sequence[tuple[int, int, bytes]]) -> None:
    """Store pieces of texts. Each is given as the document's key, its position and the compressed text."""
    connection.executemany("INSERT INTO texts (document_key, piece, text_zlib) VALUES (?, ?, ?)", pieces)


def add_chunks(connection: sqlite3.Connection, document_key: int, ordinal: int, rows: Sequence[ChunkRow]) -> None:
    """Store chunks of the document; the first one has this ordinal."""
    keys = KeyRange.of_chunks(document_key, ordinal, len(rows))
    connection.executemany(
        """
        INSERT INTO chunks (chunk_key, char_start, char_end, page, line_start, line_end, headings, text)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [(key, *row) for key, row in enumerate(rows, start=keys.first)],
    )


def show(connection: sqlite3.Connection, source_id: str, document_key: int) -> int | None:
    """Make the document visible to searches instead of the source's earlier one, whose key is returned, if any."""
    hidden = hide(connection, documents.find(connection, source_id))
    _set_hidden(connection, document_key, False)
    (chunks,) = connection.execute(
        "SELECT chunks FROM documents WHERE document_key = :key", {"key": document_key}
    ).fetchone()
    documents.count_in(connection, document_key, chunks)
    _count(connection, chunks)
    return hidden


def reword(connection: sqlite3.Connection, stored: sqlite3.Row, wording: Wording) -> None:
    """Give a document the title, names and buckets that its postings already have under a new number."""
    key = stored["document_key"]
    _note_removed(connection, [stored])
    connection.execute(
        "UPDATE documents SET title = :title, names = :names, posted_as = :posted_as WHERE document_key = :key",
        {"title": wording.title, "names": wording.names, "posted_as": wording.posted_as, "key": key},
    )
    documents.delete_buckets(connection, key)
    documents.create_buckets(connection, [(key, wording.bucket_ids, stored["chunks"])])
    _count(connection, 0)


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
    with overwriting(connection):
        for key in document_keys:
            _delete_chunks(connection, KeyRange.of_document(key))
        connection.executemany("DELETE FROM texts WHERE document_key = ?", [(key,) for key in document_keys])
    for key in document_keys:
        remove_row(connection, key)


def remove_last_chunks(connection: sqlite3.Connection, document_key: int) -> bool:
    """Remove the last chunks of a hidden document, up to `SLICE_CHUNKS`. Returns False if there were none."""
    every = KeyRange.of_document(document_key)
    (last,) = connection.execute(
        "SELECT max(chunk_key) FROM chunks WHERE chunk_key BETWEEN :first AND :last", every.parameters()
    ).fetchone()
    if last is None:
        return False
    with overwriting(connection):
        _delete_chunks(connection, KeyRange(max(every.first, last - SLICE_CHUNKS + 1), last))
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
    stored = connection.execute("SELECT * FROM documents WHERE document_key = :key", {"key": document_key}).fetchall()
    _note_removed(connection, stored)
    documents.delete_buckets(connection, document_key)
    connection.execute("DELETE FROM documents WHERE document_key = :key", {"key": document_key})


def _note_removed(connection: sqlite3.Connection, stored: Sequence[sqlite3.Row]) -> None:
    """Record that the postings of these documents are to be removed."""
    note_garbage(connection, [row["posted_as"] for row in stored], sum(row["chunks"] for row in stored))


def note_garbage(connection: sqlite3.Connection, numbers: Iterable[int], chunks: int) -> None:
    """Record that postings under these numbers, which no document has, are to be removed."""
    connection.executemany(
        "INSERT OR IGNORE INTO removed_postings (posted_as) VALUES (?)", [(number,) for number in numbers]
    )
    connection.execute(
        "UPDATE totals SET removed = removed + :chunks, removed_at = coalesce(removed_at, julianday())",
        {"chunks": chunks},
    )


def list_garbage(connection: sqlite3.Connection) -> list[int]:
    """List the numbers whose postings are to be removed."""
    return [number for (number,) in connection.execute("SELECT posted_as FROM removed_postings")]


def count_garbage(connection: sqlite3.Connection) -> int:
    (count,) = connection.execute("SELECT count(*) FROM removed_postings").fetchone()
    return int(count)


def forget_garbage(connection: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Record that the postings under these numbers are removed."""
    connection.executemany("DELETE FROM removed_postings WHERE posted_as = ?", [(number,) for number in numbers])


def is_purge_due(connection: sqlite3.Connection) -> bool:
    """Whether so many documents were removed since the last purge, or so long ago, that it is time for one."""
    totals = connection.execute(
        "SELECT chunks, removed, (julianday() - removed_at) * 86400 AS age_s FROM totals"
    ).fetchone()
    is_small = totals["chunks"] <= RENEW_MOST
    is_late = totals["removed"] > REMOVED_SHARE * totals["chunks"] or (totals["age_s"] or 0.0) >= REMOVED_S
    return bool(totals["removed"] and (is_small or is_late))


def purge(connection: sqlite3.Connection) -> None:
    """Overwrite the text that removed documents have left in unused parts of pages."""
    (chunks,) = connection.execute("SELECT chunks FROM totals").fetchone()
    (pages,) = connection.execute("PRAGMA freelist_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    with overwriting(connection):
        if pages <= OVERWRITE_MOST_PAGES:
            # A blob of this size takes all free pages. Deleting it overwrites them.
            connection.execute(
                "INSERT INTO texts (document_key, piece, text_zlib) VALUES (-1, 0, zeroblob(:size))",
                {"size": (pages + 1) * page_bytes},
            )
            connection.execute("DELETE FROM texts WHERE document_key = -1")
        # Where SQLite has moved a row to another page, the old page may still have its bytes, so write all pages again.
        for table in ("documents", "texts", "chunks") if chunks <= RENEW_MOST else ():
            connection.execute(f"CREATE TEMP TABLE moved AS SELECT * FROM {table}")  # noqa: S608 - our own names
            connection.execute(f"DELETE FROM {table}")  # noqa: S608
            connection.execute(f"INSERT INTO {table} SELECT * FROM moved")  # noqa: S608
            connection.execute("DROP TABLE moved")


def find_postings(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the numbers of the folder of postings that is in use, and of the one that is being built; 0 is none."""
    row = connection.execute("SELECT postings, building FROM totals").fetchone()
    return row["postings"], row["building"]


def name_postings(connection: sqlite3.Connection, postings: int, building: int, removed: int | None = None) -> None:
    """Record which folders of postings are in use and being built; `removed`, if given, is the new count of chunks."""
    connection.execute(
        "UPDATE totals SET postings = :postings, building = :building", {"postings": postings, "building": building}
    )
    if removed is not None:
        connection.execute(
            "UPDATE totals SET removed = :removed, removed_at = iif(:removed > 0, julianday(), NULL)",
            {"removed": removed},
        )


def begin_building(connection: sqlite3.Connection) -> tuple[int, bool]:
    """Return the number of the folder to build, and whether it is a new one."""
    postings, building = find_postings(connection)
    if building:
        return building, False
    name_postings(connection, postings, postings + 1)
    return postings + 1, True


def end_building(connection: sqlite3.Connection, number: int, removed: int) -> None:
    """Record that the postings in this folder are in use, and that so many chunks in them are removed ones."""
    name_postings(connection, number, 0, removed)
    forget_garbage(connection, list_garbage(connection))


def list_hidden(connection: sqlite3.Connection) -> list[int]:
    """List the keys of documents that are hidden from searches."""
    rows = connection.execute("SELECT document_key FROM documents WHERE hidden = 1 ORDER BY document_key")
    return [row["document_key"] for row in rows]


def _delete_chunks(connection: sqlite3.Connection, keys: KeyRange) -> None:
    connection.execute("DELETE FROM chunks WHERE chunk_key BETWEEN :first AND :last", keys.parameters())
    embeddings.delete(connection, keys)


def _set_hidden(connection: sqlite3.Connection, document_key: int, hidden: bool) -> None:
    connection.execute(
        "UPDATE documents SET hidden = :hidden WHERE document_key = :key", {"hidden": hidden, "key": document_key}
    )


def _count(connection: sqlite3.Connection, chunks: int) -> None:
    """Add to the number of chunks that searches find. The new revision invalidates all cached counts."""
    connection.execute("UPDATE totals SET revision = revision + 1, chunks = chunks + :chunks", {"chunks": chunks})
