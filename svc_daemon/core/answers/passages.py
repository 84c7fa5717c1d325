"""Passages: the pieces of sources that an answer may be based on, and where quotes are in the original documents."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from svc_daemon.core.text.chunking import Chunk
from svc_daemon.core.text.sentences import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of a source that the search found for the question."""

    chunk: Chunk
    #: The source's title, which may name the subject.
    title: str = ""
    #: The weight of each of the question's words that the passage contains; empty if only vectors matched.
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.chunk.text

    @property
    def context(self) -> str:
        """Return the title and the headings above the text."""
        return " ".join((self.title, *self.chunk.headings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A citation mark in an answer, and the text that it cites."""

    #: The number that the citation mark shows, from 1. Several marks may show the same number.
    number: int
    #: Index of the cited passage, from 0.
    passage: int
    #: The quoted part of the passage's text.
    span: Span
    #: Offset of the mark in the answer, in characters.
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotePlace:
    """The location of a quote in the original document."""

    page: int | None
    line_start: int | None
    line_end: int | None
    #: Offsets of the quote in the extracted text; the end is exclusive.
    char_start: int
    char_end: int
    headings: tuple[str, ...]


def quote_of(passage: Passage, span: Span) -> str:
    return passage.text[span.start : span.end]


def place_of(passage: Passage, span: Span) -> QuotePlace:
    """Return where a quote is in the original document.

    If the lines of the chunk's text differ from those of the original, the line range is that of the whole chunk.
    """
    chunk = passage.chunk
    line_start, line_end = chunk.line_start, chunk.line_end
    if line_start is not None and line_end is not None and chunk.text.count("\n") == line_end - line_start:
        line_end = line_start + chunk.text.count("\n", 0, span.end)
        line_start += chunk.text.count("\n", 0, span.start)
    return QuotePlace(
        page=chunk.page,
        line_start=line_start,
        line_end=line_end,
        char_start=chunk.char_start + span.start,
        char_end=chunk.char_start + span.end,
        headings=chunk.headings,
    )
