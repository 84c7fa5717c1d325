"""Builds a document: its text, its blocks with their offsets, and the headings above each block."""

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate

from svc_daemon.core.text.chunking import Block, Document

#: Longer headings become paragraphs, because every chunk repeats its headings.
HEADING_CHARACTERS = 200
#: Longer titles are truncated, for example if a first paragraph becomes the title.
TITLE_CHARACTERS = 1000
#: Maximum number of page ranges in a warning.
RUNS_NAMED = 50

#: Control characters, surrogates and noncharacters. Databases or JSON parsers may refuse them.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_UNFIT_ASCII = bytes(code for code in range(128) if _UNFIT.match(chr(code)))


def fit(text: str) -> str:
    """Replace line ends with LF, and unstorable characters with spaces. The number of lines doesn't change."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    # This check is faster than the pattern below, and enough for most texts.
    if text.isascii() and len(text.encode().translate(None, _UNFIT_ASCII)) == len(text):
        return text
    return _UNFIT.sub(" ", text) if _UNFIT.search(text) else text


def one_line(text: str) -> str:
    """Replace each run of white space by a single space."""
    return " ".join(text.split())


def pages_named(numbers: Sequence[int]) -> str:
    """Format ascending page numbers as ranges, such as `Pages 1-3, 7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    named = ", ".join("-".join(map(str, run)) for run in runs[:RUNS_NAMED])
    return f"Page{'s' if len(numbers) > 1 else ''} {named}{' and more' if len(runs) > RUNS_NAMED else ''}"


class HeadingPath:
    """The headings above the current position, outermost first."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []
        self.path: tuple[str, ...] = ()

    def clear(self) -> None:
        """Remove all headings."""
        self._open, self.path = [], ()

    def enter(self, level: int, title: str) -> None:
        """Add a heading. It replaces the headings of the same or a deeper level."""
        self._open = [*((depth, above) for depth, above in self._open if depth < level), (level, title)]
        self.path = tuple(above for _, above in self._open)


class LineDocument:
    """Builds a document from its original text, with ranges of lines as blocks."""

    def __init__(self, text: str) -> None:
        self.text = fit(text)
        #: The lines, without their ends.
        self.lines = self.text.split("\n")
        self.headings = HeadingPath()
        self._starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        self._blocks: list[Block] = []

    def add(self, kind: str, first: int, last: int) -> None:
        """Make the lines `first` to `last` (from 0, inclusive) a block, without blank lines at its end."""
        while last > first and not self.lines[last].strip():
            last -= 1
        start, end = self._starts[first], self._starts[last + 1] - 1
        text = self.text[start:end]
        if not text or text.isspace():
            return
        self._blocks.append(
            Block(
                kind=kind,
                text=text,
                char_start=start,
                char_end=end,
                headings=self.headings.path,
                line_start=first + 1,
                line_end=last + 1,
            )
        )

    def add_heading(self, level: int, title: str, first: int, last: int) -> None:
        """Make these lines a heading, or a paragraph if the title is empty or too long."""
        title = one_line(title)
        if not title or len(title) > HEADING_CHARACTERS:
            self.add("paragraph", first, last)
            return
        self.headings.enter(level, title)
        self.add("heading", first, last)

    def add_paragraphs(self, kind: str, first: int, last: int) -> None:
        """Make each run of non-blank lines a block."""
        begun: int | None = None
        for number in range(first, last + 1):
            blank = not self.lines[number].strip()
            if blank and begun is not None:
                self.add(kind, begun, number - 1)
            begun = None if blank else number if begun is None else begun
        if begun is not None:
            self.add(kind, begun, last)

    def finish(self, *, title: str | None = None, warnings: Iterable[str] = ()) -> Document:
        return Document(text=self.text, blocks=tuple(self._blocks), title=_title(title), warnings=tuple(warnings))


class FlowDocument:
    """Builds a document from pieces of text in reading order."""

    def __init__(self) -> None:
        self.headings = HeadingPath()
        #: Page, slide or sheet of the next blocks, from 1.
        self.page: int | None = None
        self._parts: list[str] = []
        self._blocks: list[Block] = []
        #: Number of characters so far.
        self.size = 0
        self._last_kind = ""

    @property
    def count(self) -> int:
        """Return the number of blocks so far."""
        return len(self._blocks)

    def add(self, kind: str, text: str) -> bool:
        """Add a block. Returns False, and adds nothing, if the text is blank."""
        text = fit(text).strip("\n ")
        if not text or text.isspace():
            return False
        # Only items and rows follow each other without a blank line.
        is_next_line = kind == self._last_kind and kind in {"item", "row"}
        separator = "" if not self._parts else "\n" if is_next_line else "\n\n"
        start, self._last_kind = self.size + len(separator), kind
        self._parts += [separator, text]
        self.size = start + len(text)
        self._blocks.append(
            Block(
                kind=kind,
                text=text,
                char_start=start,
                char_end=self.size,
                headings=self.headings.path,
                page=self.page,
            )
        )
        return True

    def add_all(self, kind: str, texts: Iterable[str]) -> bool:
        """Add a block for each text. Returns False if all are blank."""
        added = [self.add(kind, text) for text in texts]
        return any(added)

    def add_heading(self, level: int, title: str) -> None:
        """Add a heading, or a paragraph if the title is too long."""
        title = one_line(fit(title))
        if len(title) > HEADING_CHARACTERS:
            self.add("paragraph", title)
        elif title:
            self.headings.enter(level, title)
            self.add("heading", title)

    def add_row(self, cells: Iterable[str]) -> bool:
        """Add a table row. Returns False if all cells are blank."""
        return self.add("row", " | ".join(one_line(cell) for cell in cells).strip("| "))

    def finish(
        self,
        *,
        title: str | None = None,
        pages: int | None = None,
        pages_without_text: Iterable[int] = (),
        language: str | None = None,
        warnings: Iterable[str] = (),
    ) -> Document:
        return Document(
            text="".join(self._parts),
            blocks=tuple(self._blocks),
            title=_title(title),
            pages=pages,
            pages_without_text=tuple(pages_without_text),
            language=language,
            warnings=tuple(warnings),
        )


def _title(words: str | None) -> str | None:
    return one_line(fit(words))[:TITLE_CHARACTERS].rstrip() or None if words else None
