"""Documents as extraction makes them, and the chunks that they are cut into, each with its place in the original.

A section is a run of blocks on one page under one heading path; a chunk never leaves its section. Inside a section
the text is one span, and each cut is the best place in a window behind the minimum size: the end of a block, else of
a line (code, rows) or a sentence (prose), else a space. Each window is looked at once, so the time is linear, also
for one endless line.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One paragraph, heading, list item, table row or piece of code, in reading order.

    `text` is exactly `document.text[char_start:char_end]`.
    """

    #: `heading`, `paragraph`, `item`, `row` or `code`.
    kind: str
    text: str
    #: Offsets in the extracted text, in characters; the end is exclusive.
    char_start: int
    char_end: int
    #: The path of headings above, outermost first; a heading's own block carries its path with itself last.
    headings: tuple[str, ...] = ()
    #: Page (or slide, or sheet) from 1; None where the format has none.
    page: int | None = None
    #: Lines of the original from 1, both inclusive; None where the format has no lines.
    line_start: int | None = None
    line_end: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The whole extracted text and its blocks."""

    text: str
    blocks: tuple[Block, ...]
    #: The document's own title, where it has one.
    title: str | None = None
    #: Pages in all; None where the format has none.
    pages: int | None = None
    #: Pages, from 1, on which no text was found.
    pages_without_text: tuple[int, ...] = ()
    #: BCP 47 code, where the document declares one.
    language: str | None = None
    #: Sentences for the user about what could not be read.
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What search finds: a piece of one page under one heading path, with its place in the original.

    `text` is exactly `document.text[char_start:char_end]`.
    """

    #: Position in the document, from 0.
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
    """What the caged child hands back for one stored file."""

    #: The media type that the bytes turned out to have.
    content_type: str
    text: str
    chunks: tuple[Chunk, ...]
    title: str | None = None
    pages: int | None = None
    pages_without_text: tuple[int, ...] = ()
    language: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkingOptions:
    """Sizes of chunks, in characters."""

    #: A cut is made as near to this size as its window allows.
    target: int = 1000
    #: No chunk is cut shorter; only a section's last one may be.
    min: int = 800
    #: No chunk is longer.
    max: int = 1100
    #: How much of a chunk's end the next one in the same section repeats.
    overlap: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.min <= self.target <= self.max:
            raise ValueError("Chunk sizes must be 1 <= min <= target <= max.")
        # A repeat of half a chunk or more would let chunks multiply.
        if not 0 <= self.overlap <= self.min // 2:
            raise ValueError("The overlap of chunks must be 0 to half of the smallest chunk.")


_LINE_END = re.compile(r"\n")
_SENTENCE_END = re.compile(r"[.!?…][\"'»”’)\]]*(?=\s)|[。！？]|\n(?=\n)")  # noqa: RUF001
_SPACE = re.compile(r"\s")
_LINE_KINDS = frozenset({"code", "row"})


def chunk_document(document: Document, options: ChunkingOptions) -> tuple[Chunk, ...]:
    """Chunks of a document in reading order.

    Every character that is not white space is in a chunk; a heading is at least in the heading path of one.
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
            headings=piece.section[0].headings,
            page=piece.section[0].page,
            line_start=piece.line_start,
            line_end=piece.line_end,
        )
        for ordinal, piece in enumerate(pieces)
    )


def _sections(blocks: Sequence[Block]) -> Iterator[tuple[Block, ...]]:
    """Runs of blocks that may share a chunk; a heading comes alone, and only where no later section carries it."""
    runs = [tuple(run) for _, run in groupby(enumerate(blocks), key=_section_key)]
    for position, run in enumerate(runs):
        section = tuple(block for _, block in run)
        if section[0].kind != "heading" or not _is_carried(section[0], runs, position):
            yield section


def _section_key(numbered: tuple[int, Block]) -> tuple[object, ...]:
    number, block = numbered
    return (number,) if block.kind == "heading" else (block.headings, block.page)


def _is_carried(heading: Block, runs: Sequence[tuple[tuple[int, Block], ...]], position: int) -> bool:
    """What follows a heading is under it, or it has nothing under it at all."""
    if position + 1 == len(runs):
        return False
    following = runs[position + 1][0][1].headings
    return following[: len(heading.headings)] == heading.headings and (
        len(following) > len(heading.headings) or runs[position + 1][0][1].kind != "heading"
    )


@dataclass(frozen=True, slots=True)
class _Piece:
    section: tuple[Block, ...]
    start: int
    end: int
    line_start: int | None
    line_end: int | None


class _Cutter:
    """Cuts one section, moving forward through its blocks and lines."""

    def __init__(self, text: str, section: tuple[Block, ...], options: ChunkingOptions) -> None:
        self._text = text
        self._section = section
        self._options = options
        self._end = self._trimmed_end(section[0].char_start, section[-1].char_end)
        self._lines = _LineCursor(text, section)
        self._ahead = 0

    def cut(self) -> Iterator[_Piece]:
        start = self._skip_space(self._section[0].char_start)
        while start < self._end:
            cut = self._next_cut(start)
            end = self._trimmed_end(start, cut)
            yield _Piece(self._section, start, end, self._lines.line_at(start), self._lines.line_at(end - 1))
            start = self._skip_space(cut if cut >= self._end else self._overlapped(start, cut))

    def _next_cut(self, start: int) -> int:
        rest = self._end - start
        if rest <= self._options.max:
            return self._end
        # Near the end a small first part leaves a last one that is worth finding.
        aim = self._options.target if rest >= self._options.max + self._options.min else self._options.min
        return self._best_cut(start + self._options.min, start + self._options.max, start + aim)

    def _best_cut(self, low: int, high: int, aim: int) -> int:
        ends = self._block_ends(low, high)
        if ends:
            return min(ends, key=lambda end: abs(end - aim))
        for pattern in self._cut_patterns():
            found = [match.end() for match in pattern.finditer(self._text, low - 1, high)]
            if found:
                return min(found, key=lambda end: abs(end - aim))
        return high

    def _block_ends(self, low: int, high: int) -> list[int]:
        """Ends of blocks in the window; leaves `_ahead` at the block in which the window starts."""
        while self._section[self._ahead].char_end < low:
            self._ahead += 1
        ends = []
        for position in range(self._ahead, len(self._section)):
            if self._section[position].char_end > high:
                break
            ends.append(self._section[position].char_end)
        return ends

    def _cut_patterns(self) -> tuple[re.Pattern[str], ...]:
        if self._section[self._ahead].kind in _LINE_KINDS:
            return (_LINE_END, _SENTENCE_END, _SPACE)
        return (_SENTENCE_END, _LINE_END, _SPACE)

    def _overlapped(self, start: int, cut: int) -> int:
        """Where the next chunk starts: the first word within the overlap before the cut."""
        if not self._options.overlap:
            return cut
        space = _SPACE.search(self._text, max(start + 1, cut - self._options.overlap), cut)
        return space.end() if space else cut

    def _skip_space(self, start: int) -> int:
        while start < self._end and self._text[start].isspace():
            start += 1
        return start

    def _trimmed_end(self, start: int, end: int) -> int:
        while end > start and self._text[end - 1].isspace():
            end -= 1
        return end


class _LineCursor:
    """Line of an offset, for offsets that mostly grow: it counts line ends only from where it stood."""

    def __init__(self, text: str, section: tuple[Block, ...]) -> None:
        self._text = text
        self._section = section
        self._block = 0
        self._offset = section[0].char_start
        self._line = section[0].line_start

    def line_at(self, offset: int) -> int | None:
        self._enter(offset)
        if self._line is None:
            return None
        if offset >= self._offset:
            self._line += self._text.count("\n", self._offset, offset)
        else:
            self._line -= self._text.count("\n", offset, self._offset)
        self._offset = offset
        last = self._section[self._block].line_end
        return self._line if last is None else min(self._line, last)

    def _enter(self, offset: int) -> None:
        """Stand in the block that holds the offset, at its own first line when it is another one."""
        before = self._block
        while self._block + 1 < len(self._section) and self._section[self._block + 1].char_start <= offset:
            self._block += 1
        while self._block and self._section[self._block].char_start > offset:
            self._block -= 1
        if self._block != before:
            self._offset = self._section[self._block].char_start
            self._line = self._section[self._block].line_start
