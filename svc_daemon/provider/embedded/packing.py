"""Converts a document to rows and postings before the write transaction, to keep the transaction short."""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from svc_daemon.core.search.naming import name_terms, names_of
from svc_daemon.core.text.languages import guess_language
from svc_daemon.core.text.terms import index_terms
from svc_daemon.provider.contract import IndexDocument
from svc_daemon.provider.embedded.postings import Posting
from svc_daemon.provider.embedded.schema import MAX_ORDINAL, ORDINAL_BITS
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

#: Stands between title, headings and text in a chunk's words, so that no phrase goes from one to the other.
BARRIER = " \x1e "


class ChunkRow(NamedTuple):
    """A row of the table `chunks` without its key."""

    char_start: int
    char_end: int
    page: int | None
    line_start: int | None
    line_end: int | None
    #: Each ended by `HEADING_END`.
    headings: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedDocument:
    """A document, converted to the values that an index stores."""

    source_id: str
    generation: int
    title: str
    #: The title in the text, which may be empty, and the tags, each ended by `HEADING_END`.
    names: str
    #: See `core.text.terms`.
    language: str
    #: Ids of the buckets, sorted and without duplicates.
    bucket_ids: tuple[str, ...]
    #: The compressed pieces of the text.
    pieces: tuple[bytes, ...]
    #: The chunks; a row's position is its ordinal.
    chunk_rows: tuple[ChunkRow, ...]

    @property
    def characters(self) -> int:
        """Number of indexed characters."""
        return sum(len(row.headings) + len(row.text) for row in self.chunk_rows)

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
        names=pack_names((document.own_title, *document.tags)),
        language=guess_language(text),
        bucket_ids=distinct(document.bucket_ids),
        pieces=tuple(zlib.compress(text[start : start + PIECE_CHARACTERS].encode(), ZLIB_LEVEL) for start in starts),
        chunk_rows=tuple(
            ChunkRow(
                chunk.char_start,
                chunk.char_end,
                chunk.page,
                chunk.line_start,
                chunk.line_end,
                pack_names(chunk.headings),
                storable(chunk.text),
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


#: Postings that are rebuilt are committed after this many chunks.
COMMIT_CHUNKS = 5_000


def in_batches(missing: Sequence[int], wanted: Mapping[int, int]) -> Iterator[list[int]]:
    """Split these documents into batches of about `COMMIT_CHUNKS` chunks."""
    batch, chunks = list[int](), 0
    for number in missing:
        batch.append(number)
        chunks += wanted.get(number, 0)
        if chunks >= COMMIT_CHUNKS:
            yield batch
            batch, chunks = [], 0
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


def pack_names(names: Iterable[str]) -> str:
    """Join headings, or names, to one string."""
    return "".join(storable(name).replace(HEADING_END, " ") + HEADING_END for name in names)


def unpack_names(packed: str) -> tuple[str, ...]:
    return tuple(packed.split(HEADING_END)[:-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """What all postings of a document have in common."""

    #: The document's number in the postings.
    posted_as: int
    title: str
    names: str
    language: str
    bucket_ids: Sequence[str]

    def postings(self, ordinal: int, rows: Iterable[ChunkRow]) -> Iterator[Posting]:
        """Yield the postings of chunks; the first one has this ordinal."""
        own_title, *tags = unpack_names(self.names) or ("",)
        names = (*names_of(self.title, own_title), *tags)
        name = " ".join(term for each in names for term in name_terms(each, self.language))
        title, buckets = index_terms(self.title, self.language), " ".join(self.bucket_ids)
        for number, row in enumerate(rows, start=ordinal):
            above = index_terms(row.headings.replace(HEADING_END, "\n"), self.language)
            text = index_terms(row.text, self.language)
            yield Posting(
                key=self.posted_as << ORDINAL_BITS | number,
                buckets=buckets,
                words=BARRIER.join(filter(None, (title.words, above.words, text.words))),
                forms=" ".join(filter(None, (title.forms, above.forms, text.forms))),
                name=name,
                called="" if number else name,
            )
