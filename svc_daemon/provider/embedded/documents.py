"""Reads documents, their buckets and their counts, within the caller's transaction."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from svc_daemon.core.text.chunking import Chunk
from svc_daemon.core.text.languages import guess_language
from svc_daemon.provider.contract import (
    STATE_ACTIVE,
    DocumentState,
    ListedDocument,
    StoredChunk,
    StoredText,
    chunk_id,
    document_id,
)
from svc_daemon.provider.embedded.packing import ChunkRow, Wording, unpack_names, unpack_text
from svc_daemon.provider.embedded.schema import MAX_ORDINAL, ORDINAL_BITS, KeyRange
from svc_daemon.provider.errors import DocumentMissing
from svc_daemon.wire.light.parsing import parse_json

#: The language of a document is guessed from this many of its chunks.
SAMPLE_CHUNKS = 20
#: Maximum number of cached counts. When it is reached, the cache is emptied, so that it can't use up the memory.
MAX_COUNTS = 20_000


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


def find(connection: sqlite3.Connection, source_id: str) -> sqlite3.Row | None:
    """Return the row of the source's document that is visible to searches, or None."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM documents WHERE source_id = :source_id AND hidden = 0", {"source_id": source_id}
    ).fetchone()
    return row


def find_all(connection: sqlite3.Connection, source_ids: Sequence[str]) -> dict[str, sqlite3.Row]:
    """Map source ids to the rows of their documents that are visible to searches."""
    rows = connection.execute(
        "SELECT * FROM documents WHERE hidden = 0 AND source_id IN (SELECT value FROM json_each(:source_ids))",
        {"source_ids": json.dumps(source_ids)},
    )
    return {row["source_id"]: row for row in rows}


def get(connection: sqlite3.Connection, source_id: str, generation: int | None = None) -> sqlite3.Row:
    """Return the row of the source's document that is visible to searches.

    Raises DocumentMissing if there is none, or if `generation` is given and differs.
    """
    stored = find(connection, source_id)
    if stored is None or generation not in {None, stored["generation"]}:
        raise DocumentMissing(source_id, generation)
    return stored


def find_state(connection: sqlite3.Connection, source_id: str) -> DocumentState | None:
    """Read the state of the source's document; None if it isn't in the index."""
    stored = find(connection, source_id)
    if stored is None:
        return None
    return DocumentState(
        state=STATE_ACTIVE,
        document_id=document_id(source_id, stored["generation"]),
        generation=stored["generation"],
        chunks=stored["chunks"],
        bucket_ids=list_buckets(connection, stored["document_key"]),
    )


def find_text(connection: sqlite3.Connection, source_id: str) -> StoredText | None:
    """Read the source's text and chunks; None if the document isn't in the index."""
    stored = find(connection, source_id)
    if stored is None:
        return None
    return StoredText(
        generation=stored["generation"],
        title=stored["title"],
        text=unpack_text(_pieces(connection, stored["document_key"])),
        chunks=tuple(
            StoredChunk(chunk_id=chunk_id(source_id, stored["generation"], chunk.ordinal), chunk=chunk)
            for chunk in map(chunk_from_row, _chunk_rows(connection, stored["document_key"]))
        ),
    )


def read_wording(connection: sqlite3.Connection, stored: sqlite3.Row, **changes: Any) -> Wording:
    """Read what the postings of a stored document have in common, with these changes."""
    kept = {
        "posted_as": stored["posted_as"],
        "title": stored["title"],
        "names": stored["names"],
        "language": stored["language"],
        "bucket_ids": list_buckets(connection, stored["document_key"]),
    }
    return Wording(**{**kept, **changes})


def read_chunk_rows(connection: sqlite3.Connection, document_key: int, ordinal: int, count: int) -> list[ChunkRow]:
    """Read up to `count` chunks of a document, from `ordinal` on."""
    rows = connection.execute(
        """
        SELECT char_start, char_end, page, line_start, line_end, headings, text FROM chunks
        WHERE chunk_key BETWEEN :first AND :last ORDER BY chunk_key
        """,
        KeyRange.of_chunks(document_key, ordinal, count).parameters(),
    )
    return [ChunkRow(*row) for row in rows]


def find_by_number(connection: sqlite3.Connection, number: int) -> sqlite3.Row | None:
    """Return the row of the visible document with this number in the postings, or None."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM documents WHERE posted_as = :number AND hidden = 0", {"number": number}
    ).fetchone()
    return row


def find_by_numbers(connection: sqlite3.Connection, numbers: Iterable[int]) -> list[sqlite3.Row]:
    """Return the rows of the visible documents with these numbers in the postings."""
    return connection.execute(
        "SELECT * FROM documents WHERE hidden = 0 AND posted_as IN (SELECT value FROM json_each(:numbers))",
        {"numbers": json.dumps(list(numbers))},
    ).fetchall()


def read_words(connection: sqlite3.Connection, chunk_keys: Sequence[int]) -> dict[int, str]:
    """Read the titles, headings and texts of chunks, by their keys."""
    rows = connection.execute(
        """
        SELECT c.chunk_key, d.title || ' ' || c.headings || ' ' || c.text AS words FROM chunks AS c
        JOIN documents AS d ON d.document_key = c.chunk_key >> :ordinal_bits
        WHERE c.chunk_key IN (SELECT value FROM json_each(:keys))
        """,
        {"keys": json.dumps(list(chunk_keys)), "ordinal_bits": ORDINAL_BITS},
    )
    return {row["chunk_key"]: row["words"] for row in rows}


def find_out_language(connection: sqlite3.Connection, number: int) -> sqlite3.Row | None:
    """Guess a document's language from its first chunks, and return its row; None if it is gone."""
    stored = find_by_number(connection, number)
    if stored is None:
        return None
    rows = read_chunk_rows(connection, stored["document_key"], 0, SAMPLE_CHUNKS)
    connection.execute(
        "UPDATE documents SET language = :language WHERE document_key = :key",
        {"language": guess_language(" ".join(row.text for row in rows)), "key": stored["document_key"]},
    )
    return find_by_number(connection, number)


def find_posted(connection: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, int]:
    """Map numbers of documents in the postings to their keys, without hidden documents and unknown numbers."""
    (listed,) = connection.execute(
        """
        SELECT json_group_array(json_array(posted_as, document_key)) FROM documents
        WHERE hidden = 0 AND posted_as IN (SELECT value FROM json_each(:numbers))
        """,
        {"numbers": json.dumps(list(numbers))},
    ).fetchone()
    return dict(parse_json(listed))


def count_posted(connection: sqlite3.Connection) -> dict[int, int]:
    """Map the numbers that visible documents with chunks have in the postings to their numbers of chunks."""
    rows = connection.execute("SELECT posted_as, chunks FROM documents WHERE hidden = 0 AND chunks > 0")
    return dict(tuple(row) for row in rows)


def list_after(connection: sqlite3.Connection, source_id: str, limit: int) -> list[ListedDocument]:
    """List up to `limit` documents, ordered by source id, after this one."""
    rows = connection.execute(
        """
        SELECT document_key, source_id, generation, chunks FROM documents
        WHERE hidden = 0 AND source_id > :source_id ORDER BY source_id LIMIT :limit
        """,
        {"source_id": source_id, "limit": limit},
    ).fetchall()
    return [
        ListedDocument(
            row["source_id"],
            row["generation"],
            list_buckets(connection, row["document_key"]),
            row["chunks"],
        )
        for row in rows
    ]


def chunk_from_row(row: sqlite3.Row) -> Chunk:
    """Convert a row of `chunks` to a Chunk."""
    return Chunk(
        ordinal=row["chunk_key"] & MAX_ORDINAL,
        text=row["text"],
        char_start=row["char_start"],
        char_end=row["char_end"],
        headings=unpack_names(row["headings"]),
        page=row["page"],
        line_start=row["line_start"],
        line_end=row["line_end"],
    )


def _chunk_rows(connection: sqlite3.Connection, document_key: int) -> sqlite3.Cursor:
    return connection.execute(
        """
        SELECT chunk_key, char_start, char_end, page, line_start, line_end, headings, text FROM chunks
        WHERE chunk_key BETWEEN :first AND :last ORDER BY chunk_key
        """,
        KeyRange.of_document(document_key).parameters(),
    )


def _pieces(connection: sqlite3.Connection, document_key: int) -> list[bytes]:
    rows = connection.execute(
        "SELECT text_zlib FROM texts WHERE document_key = :key ORDER BY piece", {"key": document_key}
    )
    return [row["text_zlib"] for row in rows]


@dataclass(slots=True)
class Counts:
    """The counts of one revision of the index, which every change raises. Searches need them.

    No lock is needed: threads that count the same thing at the same time get the same number.
    """

    revision: int
    #: Number of chunks in the index.
    chunks: int
    #: The languages of the documents; None if not read yet.
    _languages: tuple[str, ...] | None = None
    _known: dict[tuple[str, str], int] = field(default_factory=dict)

    def get(self, kind: str, name: str, count: Callable[[], int]) -> int:
        """Return the count with this name; call `count` if it isn't cached."""
        known = self._known.get((kind, name))
        if known is None:
            if len(self._known) >= MAX_COUNTS:
                self._known.clear()
            known = self._known[(kind, name)] = count()
        return known

    def list_languages(self, connection: sqlite3.Connection) -> tuple[str, ...]:
        """List the languages of the index's documents."""
        if self._languages is None:
            found = connection.execute("SELECT DISTINCT language FROM documents WHERE language <> ''")
            self._languages = tuple(sorted(language for (language,) in found))
        return self._languages


class CountsCache:
    """The counts of an index's latest revision. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = Counts(revision=-1, chunks=0)

    def at(self, connection: sqlite3.Connection) -> Counts:
        """Return the counts for the revision of the index that this connection reads."""
        totals = connection.execute("SELECT revision, chunks FROM totals").fetchone()
        with self._lock:
            if self._latest.revision == totals["revision"]:
                return self._latest
            counts = Counts(revision=totals["revision"], chunks=totals["chunks"])
            if counts.revision > self._latest.revision:
                self._latest = counts
            return counts
