"""Putting a document together: its text, its blocks with their offsets, and the path of headings above each."""

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate

from svc_daemon.core.text.chunking import Block, Document

#: A longer heading is no heading; the path is repeated with every chunk below it.
HEADING_CHARACTERS = 200
#: Where titles are cut: the title may be the first paragraph of a file that has no other.
TITLE_CHARACTERS = 1000
#: Runs of pages that a warning names, so that a document with a thousand gaps gets a short one.
RUNS_NAMED = 50

#: Controls, lone surrogates and non-characters, which neither databases nor JSON readers take.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def fit(text: str) -> str:
    """`text` with LF line ends, and a space for each character that can't be stored; the lines stay the same."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNFIT.sub(" ", text) if _UNFIT.search(text) else text


def one_line(text: str) -> str:
    """`text` with every run of white space as one space."""
    return " ".join(text.split())


def pages_named(numbers: Sequence[int]) -> str:
    """`Page 4`, or `Pages 1-3, 7` for 1, 2, 3, 7; the numbers ascend."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    named = ", ".join("-".join(map(str, run)) for run in runs[:RUNS_NAMED])
    return f"Page{'s' if len(numbers) > 1 else ''} {named}{' and more' if len(runs) > RUNS_NAMED else ''}"


class HeadingPath:
    """The headings above a place, outermost first."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []
        self.path: tuple[str, ...] = ()

    def clear(self) -> None:
        """Forget the headings: what follows is below none."""
        self._open, self.path = [], ()

    def enter(self, level: int, title: str) -> None:
        """A heading of this level ends those of its own level and of deeper ones."""
        self._open = [*((depth, above) for depth, above in self._open if depth < level), (level, title)]
        self.path = tuple(above for _, above in self._open)


class LineDocument:
    """A document that keeps its original text and marks spans of its lines as blocks."""

    def __init__(self, text: str) -> None:
        self.text = fit(text)
        #: Lines without their line ends.
        self.lines = self.text.split("\n")
        self.headings = HeadingPath()
        self._starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        self._blocks: list[Block] = []

    def add(self, kind: str, first: int, last: int) -> None:
        """Mark lines `first` to `last` (from 0, both inclusive) as one block, less its blank last lines."""
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
        """Mark a heading; one without words or too long for a path is a paragraph."""
        title = one_line(title)
        if not title or len(title) > HEADING_CHARACTERS:
            self.add("paragraph", first, last)
            return
        self.headings.enter(level, title)
        self.add("heading", first, last)

    def add_paragraphs(self, kind: str, first: int, last: int) -> None:
        """Mark each run of lines between blank ones as a block."""
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
    """A document whose text is put together from pieces, in reading order."""

    def __init__(self) -> None:
        self.headings = HeadingPath()
        #: Page, slide or sheet of what is added next, from 1.
        self.page: int | None = None
        self._parts: list[str] = []
        self._blocks: list[Block] = []
        #: Characters so far.
        self.size = 0
        self._last_kind = ""

    @property
    def count(self) -> int:
        """Blocks so far."""
        return len(self._blocks)

    def add(self, kind: str, text: str) -> bool:
        """Append a block; False where the text is blank, and nothing is added."""
        text = fit(text).strip("\n ")
        if not text or text.isspace():
            return False
        # Items and rows follow each other on lines, everything else after a blank line.
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
        """Append a block for each text; False where all of them are blank."""
        added = [self.add(kind, text) for text in texts]
        return any(added)

    def add_heading(self, level: int, title: str) -> None:
        """Append a heading; one that is too long for a path is a paragraph."""
        title = one_line(fit(title))
        if len(title) > HEADING_CHARACTERS:
            self.add("paragraph", title)
        elif title:
            self.headings.enter(level, title)
            self.add("heading", title)

    def add_row(self, cells: Iterable[str]) -> bool:
        """Append a row of a table; False where all of its cells are blank."""
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
