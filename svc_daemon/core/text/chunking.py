"""Extracted documents, and the chunks that they are split into, each with its location in the original.

A section is a run of blocks on one page under the same headings. A chunk stays within its section, and ends at the
best place between the minimum and maximum size: the end of a block, else of a line or sentence, else a space. A chunk
that begins within a table has the names of the columns as a heading, and ends with the table.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, takewhile, zip_longest
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    # Not at run time: the processes that read documents do without pydantic.
    from svc_daemon.wire.sources import StoredExtraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A paragraph, heading, list item, table row or piece of code.

    `text` is exactly `document.text[char_start:char_end]`.
    """

    #: `heading`, `paragraph`, `item`, `row` or `code`.
    kind: str
    text: str
    #: Offsets in the extracted text, in characters; the end is exclusive.
    char_start: int
    char_end: int
    #: The headings above the block, outermost first. For the block of a heading, they include the heading itself.
    headings: tuple[str, ...] = ()
    #: The names of the columns, of a row below them.
    columns: str = ""
    #: Page, slide or sheet, from 1; None if the format has none.
    page: int | None = None
    #: First and last line in the original, from 1; None if the format has no lines.
    line_start: int | None = None
    line_end: int | None = None


#: The version of the readers. It rises when documents are read better than before, so that stored ones are read again.
READER_VERSION = 6


class HiddenText(NamedTuple):
    """Text of a document that its reader doesn't see, so that no chunk has it."""

    text: str
    #: Why it isn't seen, such as `display:none` or `white text`.
    reason: str
    #: Page, slide or sheet, from 1; None if the format has none.
    page: int | None = None
    #: The line in the original, from 1; None if the format has no lines.
    line: int | None = None


class RecognizedPage(NamedTuple):
    """What was recognised on a page whose text is in pictures."""

    #: From 1.
    page: int
    #: Its paragraphs, with a blank line between them; empty if there are none, or none that can be trusted.
    text: str
    #: How certain the recogniser is of the text, 0 to 1.
    confidence: float = 0.0
    #: Why the page has no text, as a sentence that follows its number; empty if it was read.
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The whole extracted text and its blocks."""

    text: str
    blocks: tuple[Block, ...]
    #: The document's own title, if it has one.
    title: str | None = None
    #: Total number of pages; None if the format has none.
    pages: int | None = None
    #: Pages, from 1, on which no text was found.
    pages_without_text: tuple[int, ...] = ()
    #: Those of them whose text may be in pictures.
    pictured_pages: tuple[int, ...] = ()
    #: How certain the text of each page is that was recognised in pictures, 0 to 1, by its number.
    recognized_pages: Mapping[str, float] = field(default_factory=dict)
    #: BCP 47 code, if the document declares one.
    language: str | None = None
    #: Warnings for the user about parts that could not be read.
    warnings: tuple[str, ...] = ()
    #: How many of each kind of part were read, such as `comments`, `charts` or `hidden_sheets`.
    parts: Mapping[str, int] = field(default_factory=dict)
    #: What the reader doesn't see; the beginning of it if there is much.
    hidden: tuple[HiddenText, ...] = ()
    #: Number of characters that the reader doesn't see.
    hidden_characters: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a document that searches can find. It lies on one page, under the same headings.

    `text` is exactly `document.text[char_start:char_end]`.
    """

    #: Index of the chunk within the document, from 0.
    ordinal: int
    text: str
    char_start: int
    char_end: int
    headings: tuple[str, ...] = ()
    page: int | None = None
    line_start: int | None = None
    line_end: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The result of extracting one stored file."""

    #: The media type that was detected.
    content_type: str
    text: str
    chunks: tuple[Chunk, ...]
    title: str | None = None
    pages: int | None = None
    pages_without_text: tuple[int, ...] = ()
    recognized_pages: Mapping[str, float] = field(default_factory=dict)
    language: str | None = None
    warnings: tuple[str, ...] = ()
    parts: Mapping[str, int] = field(default_factory=dict)
    hidden: tuple[HiddenText, ...] = ()
    hidden_characters: int = 0

    @property
    def facts(self) -> "StoredExtraction":
        """Return what is stored of the extraction beside its text."""
        facts: StoredExtraction = {
            "characters": len(self.text),
            "pages": self.pages,
            "pages_without_text": list(self.pages_without_text),
            "chunks": len(self.chunks),
            "language": self.language,
            "title": self.title,
            "hidden": self.hidden_characters,
            "parts": dict(self.parts),
        }
        if self.recognized_pages:
            facts["recognized_pages"] = dict(self.recognized_pages)
        return facts


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkingOptions:
    """Sizes of chunks, in characters."""

    #: The preferred size of a chunk.
    target: int = 1000
    #: Minimum size; only the last chunk of a section or table may be smaller.
    min: int = 800
    #: Maximum size of a chunk.
    max: int = 1100
    #: How many characters of a chunk are repeated in the next chunk of the section.
    overlap: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.min <= self.target <= self.max:
            raise ValueError("Chunk sizes must be 1 <= min <= target <= max.")
        # A larger overlap would make many more chunks.
        if not 0 <= self.overlap <= self.min // 2:
            raise ValueError("The overlap of chunks must be 0 to half of the smallest chunk.")


_LINE_END = re.compile(r"\n")
_SENTENCE_END = re.compile(r"[.!?…][\"'»”’)\]]*(?=\s)|[。！？]|\n(?=\n)")  # noqa: RUF001
_SPACE = re.compile(r"\s")
_LINE_KINDS = frozenset({"code", "row"})


def chunk_document(document: Document, options: ChunkingOptions) -> tuple[Chunk, ...]:
    """Split a document into chunks, in reading order.

    No text is left out, except headings above a chunk's text, which are in the chunk's `headings`.
    """
    pieces = (
        piece for section in _sections(document.blocks) for piece in _Cutter(document.text, section, options).cut()
    )
    return tuple(
        Chunk(
            ordinal=ordinal,
            text=document.text[piece.start : piece.end],
            char_start=piece.start,
            char_end=piece.end,
            headings=piece.section[0].headings + piece.columns,
            page=piece.section[0].page,
            line_start=piece.line_start,
            line_end=piece.line_end,
        )
        for ordinal, piece in enumerate(pieces)
    )


def _sections(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Yield the blocks of each section, which may share a chunk.

    A heading with text below it is left out, since the chunks of that text have it in `headings`. Any other heading is
    a section of its own.
    """
    numbered = groupby(
        enumerate(blocks), key=lambda pair: pair[:1] if pair[1].kind == "heading" else (pair[1].headings, pair[1].page)
    )
    runs = [[block for _, block in run] for _, run in numbered]
    for section, following in zip_longest(runs, runs[1:]):
        heading = section[0]
        if heading.kind == "heading" and following:
            # If the next section is not below the heading, no later section is.
            below = following[0].headings
            depth = len(heading.headings)
            if below[:depth] == heading.headings and (len(below) > depth or following[0].kind != "heading"):
                continue
        yield section


@dataclass(frozen=True, slots=True)
class _Piece:
    section: Sequence[Block]
    start: int
    end: int
    line_start: int | None
    line_end: int | None
    #: The names of the columns, if it begins with a row below them.
    columns: tuple[str, ...] = ()


class _Cutter:
    """Splits one section into chunks, in a single pass."""

    def __init__(self, text: str, section: Sequence[Block], options: ChunkingOptions) -> None:
        self._text = text
        self._section = section
        self._options = options
        self._end = self._trimmed_end(section[0].char_start, section[-1].char_end)
        self._lines = _LineCursor(text, section)
        self._ahead = self._begun = 0

    def cut(self) -> Iterator[_Piece]:
        start = self._skip_space(self._section[0].char_start)
        while start < self._end:
            columns, cut = self.columns_at(start), self.next_cut(start)
            ended = self.end_of_table() if columns else self._end
            cut = min(cut, ended)
            end = self._trimmed_end(start, cut)
            lines = (self._lines.line_at(start), self._lines.line_at(end - 1))
            yield _Piece(self._section, start, end, *lines, (columns,) if columns else ())
            if cut < ended and self._options.overlap:
                # The next chunk begins with the first whole word of the overlap.
                space = _SPACE.search(self._text, max(start + 1, cut - self._options.overlap), cut)
                cut = space.end() if space else cut
            start = self._skip_space(cut)

    def columns_at(self, start: int) -> str:
        """Return the names of the columns of the row at an offset, which is not before that of the last call."""
        while self._section[self._begun].char_end <= start:
            self._begun += 1
        return self._section[self._begun].columns

    def end_of_table(self) -> int:
        """Return where the table ends whose row is at the offset of the last call of `columns_at`."""
        last, columns = self._begun, self._section[self._begun].columns
        most = self._section[last].char_start + self._options.max
        while last + 1 < len(self._section) and self._section[last].char_end < most:
            if self._section[last + 1].columns != columns:
                break
            last += 1
        return self._section[last].char_end

    def next_cut(self, start: int) -> int:
        rest = self._end - start
        if rest <= self._options.max:
            return self._end
        # Near the section's end, aim for the minimum size, so that enough text is left for the last chunk.
        aim = start + (self._options.target if rest >= self._options.max + self._options.min else self._options.min)
        low, high = start + self._options.min, start + self._options.max
        while self._section[self._ahead].char_end < low:
            self._ahead += 1
        places = takewhile(lambda place: self._section[place].char_end <= high, range(self._ahead, len(self._section)))
        fitting = list(places)
        # Better before or after a table than within it.
        apart = [place for place in fitting if not self._section[min(place + 1, len(self._section) - 1)].columns]
        ends = [self._section[place].char_end for place in apart or fitting]
        is_prose = self._section[self._ahead].kind not in _LINE_KINDS
        patterns = (_SENTENCE_END, _LINE_END, _SPACE) if is_prose else (_LINE_END, _SENTENCE_END, _SPACE)
        for pattern in patterns:
            ends = ends or [match.end() for match in pattern.finditer(self._text, low - 1, high)]
        return min(ends, key=lambda end: abs(end - aim), default=high)

    def _skip_space(self, start: int) -> int:
        while start < self._end and self._text[start].isspace():
            start += 1
        return start

    def _trimmed_end(self, start: int, end: int) -> int:
        while end > start and self._text[end - 1].isspace():
            end -= 1
        return end


class _LineCursor:
    """Finds the line of an offset by counting the line breaks since the previous offset."""

    def __init__(self, text: str, section: Sequence[Block]) -> None:
        self._text = text
        self._section = section
        self._block = 0
        self._offset = section[0].char_start
        self._line = section[0].line_start

    def line_at(self, offset: int) -> int | None:
        before = self._block
        while self._block + 1 < len(self._section) and self._section[self._block + 1].char_start <= offset:
            self._block += 1
        while self._block and self._section[self._block].char_start > offset:
            self._block -= 1
        block = self._section[self._block]
        if self._block != before:
            # The offset is in another block: start from that block's first line.
            self._offset, self._line = block.char_start, block.line_start
        if self._line is None:
            return None
        if offset >= self._offset:
            self._line += self._text.count("\n", self._offset, offset)
        else:
            self._line -= self._text.count("\n", offset, self._offset)
        self._offset = offset
        return self._line if block.line_end is None else min(self._line, block.line_end)
