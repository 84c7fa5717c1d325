"""Converts a document to rows before the write transaction, to keep the transaction short."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from svc_daemon.core.text.words import cut_unspaced
from svc_daemon.provider.contract import IndexDocument
from svc_daemon.provider.embedded.schema import MAX_ORDINAL
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.provider.texts import distinct, storable

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
    return "".join(zlib.decompress(piece).decode() for piece in pieces)


def unpack_headings(packed: str) -> tuple[str, ...]:
    return tuple(packed.split(HEADING_END)[:-1])


def pack_unspaced(*texts: str) -> str:
    """Return the words in scripts without spaces, separated by spaces. FTS5 can't split such texts into words."""
    return " ".join(piece for text in texts for piece in cut_unspaced(storable(text)))
