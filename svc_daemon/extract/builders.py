"""Builds a document: its text, its blocks with their offsets, and the headings above each block."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import AnyStr, TypedDict

from svc_daemon.core.text.chunking import Block, Document, HiddenText, RecognizedPage
from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.tables import HEADING_CHARACTERS, TRIED_ROWS, heading_of

#: Longer titles are truncated, for example if a first paragraph becomes the title.
TITLE_CHARACTERS = 1000
#: Below this confidence, a page that was recognised is named in a warning.
SURE = 0.85
#: Maximum number of page ranges in a warning.
RUNS_NAMED = 50
#: Warnings of a document at most; more are counted.
WARNINGS = 20
#: So many characters that no reader sees are kept, in so many pieces; all are counted.
HIDDEN_CHARACTERS, HIDDEN_PIECES = 100_000, 10_000

#: Control characters, surrogates and noncharacters. Databases or JSON parsers may refuse them.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_UNFIT_ASCII = bytes(code for code in range(128) if _UNFIT.match(chr(code)))
#: Characters without a width: soft hyphens, direction marks, joiners of words. They would cut a word for searches. The
#: joiners U+200C and U+200D stay, because they change how words and emoji look.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U000e0000-\U000e007f]+"
)
#: Letters that are never shown, except in the emoji of some flags: Unicode calls them tags.
_TAGS = re.compile("(?<!\U0001f3f4)[\U000e0020-\U000e007e]+")
_TAG_OFFSET = 0xE0000


def fit(text: str) -> str:
    """Replace line ends with LF, unstorable characters with spaces, and remove characters without a width.

    The number of lines doesn't change.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    # This check is faster than the patterns below, and enough for most texts.
    if text.isascii() and len(text.encode().translate(None, _UNFIT_ASCII)) == len(text):
        return text
    text = _UNFIT.sub(" ", text) if _UNFIT.search(text) else text
    return _UNSEEN.sub("", text) if _UNSEEN.search(text) else text


def one_line(text: str) -> str:
    """Replace each run of white space by a single space."""
    return " ".join(text.split())


def sub_closed(
    pattern: re.Pattern[AnyStr], closing: AnyStr, shown: AnyStr | Callable[[re.Match[AnyStr]], AnyStr], text: AnyStr
) -> AnyStr:
    """Replace what ends with a closing mark. Behind the last mark, each opening would be searched to the text's end."""
    end = text.rfind(closing) + len(closing) if closing in text else 0
    return pattern.sub(shown, text[:end]) + text[end:]


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


def page_warnings(document: Document, recognized: Mapping[int, RecognizedPage], limits: CageLimits) -> Iterator[str]:
    """Yield warnings about pages whose text was not found, or that was recognised without being sure."""
    problems: dict[str, list[int]] = {}
    for number in document.pages_without_text:
        problem = recognized[number].problem if number in recognized else ""
        problems.setdefault(problem, []).append(number)
    for problem, numbers in problems.items():
        have, were = ("has", "was") if len(numbers) == 1 else ("have", "were")
        if problem:
            yield f"{pages_named(numbers)} {were} not read: {problem}."
        elif limits.recognizer:
            yield f"{pages_named(numbers)} {have} no text and can't be found."
        else:
            needs = f"scanned images need text recognition first. {limits.unrecognized}".rstrip()
            yield f"{pages_named(numbers)} {have} no text and can't be found; {needs}"
    unsure = [int(page) for page, confidence in document.recognized_pages.items() if confidence < SURE]
    if unsure:
        were = "was" if len(unsure) == 1 else "were"
        yield f"{pages_named(unsure)} {were} recognised with a confidence below {SURE:.0%}; check with the original."


class HeadingPath:
    """The headings above the current position, outermost first."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []
        self.path: tuple[str, ...] = ()
        #: The document's first heading: the title of a document that has no other.
        self.first: str | None = None

    def clear(self) -> None:
        """End all headings."""
        self._open, self.path = [], ()

    def enter(self, level: int, title: str) -> None:
        """Add a heading. It replaces the headings of the same or a deeper level."""
        self.first = self.first or title
        self._open = [*((depth, above) for depth, above in self._open if depth < level), (level, title)]
        self.path = tuple(above for _, above in self._open)


class DocumentNotes:
    """What readers note about a document beside its text: hidden text, kinds of parts, and warnings."""

    def __init__(self) -> None:
        self._parts: Counter[str] = Counter()
        self._hidden: list[HiddenText] = []
        self._hidden_characters = 0
        #: A dictionary, because it keeps the order and finds a warning that is there already.
        self._warnings: dict[str, None] = {}

    def hide(self, text: str, reason: str, *, page: int | None = None, line: int | None = None) -> None:
        """Keep text apart that the reader doesn't see. `reason` says why, such as `display:none`."""
        text = one_line(fit(text))
        if not text:
            return
        room = max(0, HIDDEN_CHARACTERS - self._hidden_characters)
        self._hidden_characters += len(text)
        if room and len(self._hidden) < HIDDEN_PIECES:
            self._hidden.append(HiddenText(text[:room], reason, page, line))

    def hide_tags(self, text: str, *, page: int | None = None) -> None:
        """Keep apart what Unicode's tags spell, which `fit` removes."""
        if not text.isascii():
            for run in _TAGS.finditer(text):
                letters = "".join(chr(ord(letter) - _TAG_OFFSET) for letter in run[0])
                self.hide(letters, "characters without a width", page=page)

    def note_part(self, kind: str, number: int = 1) -> None:
        """Count a part that was read, such as `comments` or `charts`."""
        self._parts[kind] += number

    def warn(self, sentence: str) -> None:
        """Add a warning for the user, once."""
        self._warnings[sentence] = None

    def facts(self, warnings: Iterable[str]) -> "DocumentFacts":
        """Return what was noted as fields of a document, after the warnings given."""
        all_warnings = [*dict.fromkeys((*warnings, *self._warnings))]
        if len(all_warnings) > WARNINGS:
            more = len(all_warnings) - WARNINGS + 1
            all_warnings[WARNINGS - 1 :] = [f"There are {more} more warnings like these."]
        return {
            "warnings": tuple(all_warnings),
            "parts": dict(self._parts),
            "hidden": tuple(self._hidden),
            "hidden_characters": self._hidden_characters,
        }


class DocumentFacts(TypedDict):
    """The fields of a document that `DocumentNotes` fill."""

    warnings: tuple[str, ...]
    parts: Mapping[str, int]
    hidden: tuple[HiddenText, ...]
    hidden_characters: int


class LineDocument(DocumentNotes):
    """Builds a document from its original text, with ranges of lines as blocks."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.hide_tags(text)
        self.text = fit(text)
        #: The lines, without their ends.
        self.lines = self.text.split("\n")
        self.headings = HeadingPath()
        self._starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        self._blocks: list[Block] = []

    def add(self, kind: str, first: int, last: int, columns: str = "") -> None:
        """Make the lines `first` to `last` (from 0, inclusive) a block, without blank lines at its end.

        `columns` are the names of the columns of its rows.
        """
        if last < first:
            return
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
                columns=columns,
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
        return Document(text=self.text, blocks=tuple(self._blocks), title=_title(title), **self.facts(warnings))


class FlowDocument(DocumentNotes):
    """Builds a document from pieces of text in reading order."""

    def __init__(self) -> None:
        super().__init__()
        self.headings = HeadingPath()
        #: Page, slide or sheet of the next blocks, from 1.
        self.page: int | None = None
        self._pieces: list[str] = []
        self._blocks: list[Block] = []
        #: Number of characters so far.
        self.size = 0
        self._last_kind = ""
        #: The table of the last row, and of each table the first rows and the indexes of the blocks of all.
        self._table: object = None
        self._tables: dict[object, tuple[list[list[str]], list[int]]] = {}
        self._recognized: dict[str, float] = {}

    @property
    def count(self) -> int:
        """Return the number of blocks so far."""
        return len(self._blocks)

    def add(self, kind: str, text: str) -> bool:
        """Add a block. Returns False, and adds nothing, if the text is blank."""
        self.hide_tags(text, page=self.page)
        text = fit(text).strip("\n ")
        if not text or text.isspace():
            return False
        # Only items and rows follow each other without a blank line.
        is_next_line = kind == self._last_kind and kind in {"item", "row"}
        separator = "" if not self._pieces else "\n" if is_next_line else "\n\n"
        start, self._last_kind = self.size + len(separator), kind
        self._pieces += [separator, text]
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

    def add_recognized(self, page: RecognizedPage | None) -> bool:
        """Add what was recognised on the page. Returns False if it has no text."""
        if page is None or not self.add_all("paragraph", page.text.split("\n\n")):
            return False
        self._recognized[str(page.page)] = round(page.confidence, 3)
        return True

    def add_heading(self, level: int, title: str) -> None:
        """Add a heading, or a paragraph if the title is too long."""
        title = one_line(fit(title))
        if len(title) > HEADING_CHARACTERS:
            self.add("paragraph", title)
        elif title:
            self.headings.enter(level, title)
            self.add("heading", title)

    def add_document(self, document: Document, *, level: int = 0, name: str = "") -> None:
        """Add a document within this one, its headings this many levels lower, and its name before its warnings."""
        end = 0
        for block in document.blocks:
            # A blank line parts tables.
            self._last_kind = self._last_kind if block.char_start <= end + 1 else ""
            end = block.char_end
            if block.kind == "heading" and block.headings:
                self.add_heading(level + len(block.headings), block.headings[-1])
            elif self.add(block.kind, block.text):
                self._blocks[-1] = replace(self._blocks[-1], columns=block.columns)
        for hidden in document.hidden:
            self.hide(hidden.text, hidden.reason)
        for kind, number in document.parts.items():
            self.note_part(kind, number)
        for warning in document.warnings:
            self.warn(f"{name}: {warning}" if name else warning)

    def add_row(self, cells: Iterable[str], table: object = None) -> bool:
        """Add a table row, in which a blank cell keeps its column. Returns False if all cells are blank.

        A blank line is between rows of different tables. The rows of a table know the names of its columns.
        """
        texts = [one_line(cell) for cell in cells]
        while texts and not texts[-1]:
            texts.pop()
        if table is not self._table:
            self._last_kind, self._table = "", table
        is_added = self.add("row", " | ".join(texts))
        if is_added and table is not None:
            rows, places = self._tables.setdefault(table, ([], []))
            rows += [texts] if len(rows) < TRIED_ROWS else []
            places.append(len(self._blocks) - 1)
        return is_added

    def finish(
        self,
        *,
        title: str | None = None,
        pages: int | None = None,
        pages_without_text: Iterable[int] = (),
        pictured_pages: Iterable[int] = (),
        language: str | None = None,
        warnings: Iterable[str] = (),
    ) -> Document:
        for rows, places in self._tables.values():
            columns = heading_of(rows)
            # Notes and comments stand between the rows.
            for place in range(places[1], places[-1] + 1) if columns else ():
                self._blocks[place] = replace(self._blocks[place], columns=columns)
        return Document(
            text="".join(self._pieces),
            blocks=tuple(self._blocks),
            title=_title(title),
            pages=pages,
            pages_without_text=tuple(pages_without_text),
            pictured_pages=tuple(pictured_pages),
            recognized_pages=self._recognized,
            language=language,
            **self.facts(warnings),
        )


#: Most lines of a header, and a field of it: `Title: Harbours`, or `:Title: Harbours`.
_HEADER_LINES = 40
_FIELD = re.compile(r":?([A-Za-z][\w-]{0,40}):(?:\s+(.*))?")


def find_header_title(lines: Sequence[str]) -> str | None:
    """Return the title that a header of fields has, with which a text begins, as mails and proposals do."""
    fields: list[tuple[str, str]] = []
    for line in lines[:_HEADER_LINES]:
        field = _FIELD.fullmatch(line)
        if field:
            fields.append((field[1].lower(), field[2] or ""))
        elif fields and line[:1].isspace() and line.strip():
            fields[-1] = fields[-1][0], f"{fields[-1][1]} {line.strip()}"
        else:
            break
    return next((value.strip() for name, value in fields if name == "title"), None) if len(fields) > 1 else None


def _title(words: str | None) -> str | None:
    return one_line(fit(words))[:TITLE_CHARACTERS].rstrip() or None if words else None
