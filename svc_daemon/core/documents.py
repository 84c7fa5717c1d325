"""A document as text with places: what extraction yields, chunking cuts, and search points at."""

from dataclasses import dataclass


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
