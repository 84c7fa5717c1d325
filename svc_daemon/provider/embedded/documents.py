"""The documents of an index: put, changed, removed, read back. Each function runs in its caller's transaction."""

import json
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from svc_daemon.core.documents import Chunk
from svc_daemon.provider.contract import (
    STATE_ACTIVE,
    DocumentState,
    IndexDocument,
    ListedDocument,
    StoredChunk,
    StoredText,
    chunk_id,
    document_id,
)
from svc_daemon.provider.embedded import memberships, postings
from svc_daemon.provider.embedded.schema import ORDINAL_BITS, key_range
from svc_daemon.provider.errors import DocumentMissing, ProviderFailed

#: The lowest level: the text is half the size for a tenth of a millisecond; more effort would save little more.
ZLIB_LEVEL = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedDocument:
    """A document as its rows will be, made before the writer is asked, so that the writer does only what it must."""

    source_id: str
    generation: int
    title: str
    text_zlib: bytes
    #: A row of `chunks` for each, without its key; the position is the ordinal.
    chunk_rows: tuple[tuple[object, ...], ...]


def pack(document: IndexDocument) -> PackedDocument:
    """Compress and encode. Raises ProviderFailed where there are more chunks than keys."""
    if len(document.chunks) >= 1 << ORDINAL_BITS:
        raise ProviderFailed(
            f"{document.source_id} has {len(document.chunks)} chunks; the index takes "
            f"{(1 << ORDINAL_BITS) - 1} of one document. Cut it into larger chunks.",
            retryable=False,
        )
    return PackedDocument(
        source_id=document.source_id,
        generation=document.generation,
        title=document.title,
        text_zlib=zlib.compress(document.text.encode(errors="surrogatepass"), ZLIB_LEVEL),
        chunk_rows=tuple(_chunk_row(chunk) for chunk in document.chunks),
    )


def put(connection: sqlite3.Connection, document: PackedDocument, bucket_ids: Sequence[str]) -> None:
    """Store and index the document, unless this generation or a later one is there."""
    stored = find(connection, document.source_id)
    if stored is not None and stored["generation"] >= document.generation:
        return
    if stored is not None:
        _remove(connection, stored)
    key = _create(connection, document)
    memberships.replace_buckets(connection, key, bucket_ids, len(document.chunk_rows))
    postings.add_postings(connection, key)
    postings.count_change(connection, added=len(document.chunk_rows), removed=0)


def is_in_buckets(connection: sqlite3.Connection, source_id: str, generation: int, bucket_ids: Sequence[str]) -> bool:
    """Whether the document's buckets are exactly these. Raises DocumentMissing."""
    stored = _get(connection, source_id, generation)
    return memberships.list_buckets(connection, stored["document_key"]) == memberships.distinct(bucket_ids)


def set_buckets(connection: sqlite3.Connection, source_id: str, generation: int, bucket_ids: Sequence[str]) -> None:
    """Make the buckets exactly these and index the chunks under them. Raises DocumentMissing."""
    stored = _get(connection, source_id, generation)
    key, chunks = stored["document_key"], stored["chunks"]
    postings.remove_postings(connection, key)
    memberships.replace_buckets(connection, key, bucket_ids, chunks)
    postings.add_postings(connection, key)
    postings.count_change(connection, added=chunks, removed=chunks)


def set_title(connection: sqlite3.Connection, source_id: str, title: str) -> None:
    """Change the title and index the chunks under it. Raises DocumentMissing."""
    stored = _get(connection, source_id)
    key, chunks = stored["document_key"], stored["chunks"]
    postings.remove_postings(connection, key)
    connection.execute("UPDATE documents SET title = :title WHERE document_key = :key", {"title": title, "key": key})
    postings.add_postings(connection, key)
    postings.count_change(connection, added=chunks, removed=chunks)


def has_title(connection: sqlite3.Connection, source_id: str, title: str) -> bool:
    """Whether the document has this title. Raises DocumentMissing."""
    return bool(_get(connection, source_id)["title"] == title)


def delete(connection: sqlite3.Connection, source_id: str) -> None:
    """Remove the document's rows and postings, if it is there."""
    stored = find(connection, source_id)
    if stored is None:
        return
    _remove(connection, stored)
    postings.clean_up(connection)


def find(connection: sqlite3.Connection, source_id: str) -> sqlite3.Row | None:
    """The document's row without its text, or None."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT document_key, source_id, generation, title, chunks FROM documents WHERE source_id = :source_id",
        {"source_id": source_id},
    ).fetchone()
    return row


def find_state(connection: sqlite3.Connection, source_id: str) -> DocumentState | None:
    stored = find(connection, source_id)
    if stored is None:
        return None
    return DocumentState(
        state=STATE_ACTIVE,
        document_id=document_id(source_id, stored["generation"]),
        generation=stored["generation"],
        chunks=stored["chunks"],
        bucket_ids=memberships.list_buckets(connection, stored["document_key"]),
    )


def find_text(connection: sqlite3.Connection, source_id: str) -> StoredText | None:
    stored = find(connection, source_id)
    if stored is None:
        return None
    (packed,) = connection.execute(
        "SELECT text_zlib FROM documents WHERE document_key = :key", {"key": stored["document_key"]}
    ).fetchone()
    return StoredText(
        generation=stored["generation"],
        title=stored["title"],
        text=zlib.decompress(packed).decode(errors="surrogatepass"),
        chunks=tuple(_stored_chunks(connection, stored)),
    )


def list_after(connection: sqlite3.Connection, source_id: str, limit: int) -> list[ListedDocument]:
    """Up to `limit` documents whose source id is behind this one, in order."""
    rows = connection.execute(
        """
        SELECT document_key, source_id, generation, chunks FROM documents
        WHERE source_id > :source_id ORDER BY source_id LIMIT :limit
        """,
        {"source_id": source_id, "limit": limit},
    ).fetchall()
    return [_listed(connection, row) for row in rows]


def chunk_from_row(row: sqlite3.Row) -> Chunk:
    """A chunk as it was put, from a row of `chunks`."""
    return Chunk(
        ordinal=row["chunk_key"] & (1 << ORDINAL_BITS) - 1,
        text=row["text"],
        char_start=row["char_start"],
        char_end=row["char_end"],
        headings=tuple(json.loads(row["headings"])),
        page=row["page"],
        line_start=row["line_start"],
        line_end=row["line_end"],
    )


def _get(connection: sqlite3.Connection, source_id: str, generation: int | None = None) -> sqlite3.Row:
    stored = find(connection, source_id)
    if stored is None or generation not in {None, stored["generation"]}:
        raise DocumentMissing(source_id, generation)
    return stored


def _create(connection: sqlite3.Connection, document: PackedDocument) -> int:
    (key,) = connection.execute(
        """
        INSERT INTO documents (source_id, generation, title, chunks, text_zlib)
        VALUES (?, ?, ?, ?, ?) RETURNING document_key
        """,
        (document.source_id, document.generation, document.title, len(document.chunk_rows), document.text_zlib),
    ).fetchall()[0]
    first = key << ORDINAL_BITS
    connection.executemany(
        """
        INSERT INTO chunks (chunk_key, char_start, char_end, page, line_start, line_end, headings, text)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [(first | ordinal, *row) for ordinal, row in enumerate(document.chunk_rows)],
    )
    return int(key)


def _remove(connection: sqlite3.Connection, stored: sqlite3.Row) -> None:
    key = stored["document_key"]
    # The postings first: they are taken out by what the other tables still say.
    postings.remove_postings(connection, key)
    memberships.delete_buckets(connection, key)
    connection.execute("DELETE FROM chunks WHERE chunk_key BETWEEN :first AND :last", key_range(key))
    connection.execute("DELETE FROM documents WHERE document_key = :key", {"key": key})
    postings.count_change(connection, added=0, removed=stored["chunks"])


def _stored_chunks(connection: sqlite3.Connection, stored: sqlite3.Row) -> Iterator[StoredChunk]:
    rows = connection.execute(
        "SELECT * FROM chunks WHERE chunk_key BETWEEN :first AND :last ORDER BY chunk_key",
        key_range(stored["document_key"]),
    )
    for row in rows:
        chunk = chunk_from_row(row)
        yield StoredChunk(chunk_id=chunk_id(stored["source_id"], stored["generation"], chunk.ordinal), chunk=chunk)


def _listed(connection: sqlite3.Connection, row: sqlite3.Row) -> ListedDocument:
    buckets = memberships.list_buckets(connection, row["document_key"])
    return ListedDocument(row["source_id"], row["generation"], buckets, row["chunks"])


def _chunk_row(chunk: Chunk) -> tuple[object, ...]:
    return (
        chunk.char_start,
        chunk.char_end,
        chunk.page,
        chunk.line_start,
        chunk.line_end,
        json.dumps(chunk.headings, ensure_ascii=False),
        chunk.text,
    )
