"""Converts a document to rows and postings before the write transaction, to keep the transaction short.

FTS5 only marks removed rows as deleted. So once most chunks have been removed, the postings are rebuilt from the view
`indexed_chunks`. FTS5's command `merge` with a negative number is not used: after repeated use, SQLite reports a
damaged index.
"""

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from svc_daemon.core.text.words import cut_unspaced
from svc_daemon.provider.contract import IndexDocument
from svc_daemon.provider.embedded.schema import MAX_ORDINAL, KeyRange
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.provider.ranked_chunks import distinct, storable

#: The fastest level of zlib's compression; higher levels save little more space.
ZLIB_LEVEL = 1
#: Maximum number of characters in one stored piece of a text.
PIECE_CHARACTERS = 1_000_000
#: Maximum number of chunks that one transaction writes or removes. It then takes about 30 ms, so that other writes
#: don't wait long.
SLICE_CHUNKS = 250

#: Maximum number of characters that one transaction indexes.
BATCH_CHARACTERS = 300_000

#: Ends each heading in a stored list of headings; readable text doesn't contain it.
HEADING_END = "\x1f"

#: A row of the table `chunks` without its key.
ChunkRow = tuple[int, int, int | None, int | None, int | None, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedDocument:
    """A document, converted to the values that an index stores."""

    source_id: str
    generation: int
    title: str
    #: Ids of the buckets, sorted and without duplicates.
    bucket_ids: tuple[str, ...]
    #: The compressed pieces of the text.
    pieces: tuple[bytes, ...]
    #: The chunks; a row's position is its ordinal.
    chunk_rows: tuple[ChunkRow, ...]

    @property
    def characters(self) -> int:
        """Number of indexed characters."""
        return sum(len(row[-3]) + len(row[-2]) + len(row[-1]) for row in self.chunk_rows)

    @property
    def is_large(self) -> bool:
        return is_large(len(self.chunk_rows), len(self.pieces))

    def slices(self) -> list[tuple[int, Sequence[ChunkRow]]]:
        """Split the chunk rows into slices, each with the ordinal of its first row."""
        starts = range(0, len(self.chunk_rows), SLICE_CHUNKS)
        return [(start, self.chunk_rows[start : start + SLICE_CHUNKS]) for start in starts]


def is_large(chunks: int, pieces: int) -> bool:
    """Whether a document of this size is too large for one transaction."""
    return chunks > SLICE_CHUNKS or pieces > 1


def pack(document: IndexDocument) -> PackedDocument:
    """Convert a document to rows. Raises ProviderFailed if it has too many chunks."""
    if len(document.chunks) > MAX_ORDINAL:
        raise ProviderFailed(
            f"{document.source_id} has {len(document.chunks)} chunks; the index takes {MAX_ORDINAL} of one document. "
            "Cut it into larger chunks.",
            retryable=False,
        )
    text = storable(document.text)
    starts = range(0, len(text), PIECE_CHARACTERS)
    return PackedDocument(
        source_id=document.source_id,
        generation=document.generation,
        title=storable(document.title),
        bucket_ids=distinct(document.bucket_ids),
        pieces=tuple(zlib.compress(text[start : start + PIECE_CHARACTERS].encode(), ZLIB_LEVEL) for start in starts),
        chunk_rows=tuple(
            (
                chunk.char_start,
                chunk.char_end,
                chunk.page,
                chunk.line_start,
                chunk.line_end,
                "".join(storable(heading).replace(HEADING_END, " ") + HEADING_END for heading in chunk.headings),
                storable(chunk.text),
                pack_unspaced(*chunk.headings, chunk.text),
            )
            for chunk in document.chunks
        ),
    )


def cut_batches(documents: Sequence[PackedDocument]) -> Iterator[list[PackedDocument]]:
    """Split documents, in order, into batches for one transaction each.

    A large document is a batch by itself.
    """
    batch: list[PackedDocument] = []
    size = 0
    for document in documents:
        if batch and (document.is_large or batch[0].is_large or size + document.characters > BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += document.characters
    if batch:
        yield batch


def unpack_text(pieces: Sequence[bytes]) -> str:
    """Join the pieces of a text. Raises zlib.error or UnicodeDecodeError if one is damaged, or unpacks to too much."""
    return "".join(map(_unpack_piece, pieces))


def _unpack_piece(piece: bytes) -> str:
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(piece, 4 * PIECE_CHARACTERS + 1)
    if not unpacker.eof or len(text) > 4 * PIECE_CHARACTERS:
        raise zlib.error("a piece is cut short, or unpacks to more than is ever packed")
    return text.decode()


def unpack_headings(packed: str) -> tuple[str, ...]:
    return tuple(packed.split(HEADING_END)[:-1])


def pack_unspaced(*texts: str) -> str:
    """Return the words in scripts without spaces, separated by spaces. FTS5 can't split such texts into words."""
    return " ".join(piece for text in texts for piece in cut_unspaced(storable(text)))


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
