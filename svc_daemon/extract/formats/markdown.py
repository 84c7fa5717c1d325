"""Markdown: headings, paragraphs, list items, tables and code, as spans of the original lines.

The text stays as written, marks and all, so that a place in it is a place in the file. Lines are judged one by one
(CommonMark's block rules as far as they decide where a block ends); what is inside a block is not parsed.
"""

import re

from svc_daemon.core.documents import Document
from svc_daemon.extract.builders import LineDocument
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.texts import decode

_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
_TABLE_RULE = frozenset("|:- \t")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKS = re.compile(r"[*_`]+(?=\S)|(?<=\S)[*_`]+|<[^>]+>|\{#[^}]*\}")
_PATTERN_CHARACTERS = 1000
_FRONT_TITLE = re.compile(r"title\s*[:=]\s*(.+)", re.IGNORECASE)


def read(given: Given) -> Document:
    return read_markdown(*decode(given.data))


def read_markdown(text: str, warnings: tuple[str, ...] = ()) -> Document:
    """The blocks of a Markdown text."""
    return _Reader(LineDocument(text)).read(warnings)


class _Reader:
    """Goes through the lines once; `_begun` is the first line of the block that is still open."""

    def __init__(self, document: LineDocument) -> None:
        self._document = document
        self._lines = document.lines
        self._begun: int | None = None
        self._kind = "paragraph"
        self._title: str | None = None

    def read(self, warnings: tuple[str, ...]) -> Document:
        number = self._front_matter()
        while number < len(self._lines):
            number = self._take(number)
        self._close(len(self._lines))
        return self._document.finish(title=self._title, warnings=warnings)

    def _take(self, number: int) -> int:
        """Judge one line; gives the next line to look at."""
        line = self._lines[number]
        fence = _FENCE.match(line)
        if fence:
            return self._fenced(number, fence[1])
        if not line.strip():
            self._close(number)
        elif heading := _HEADING.match(line):
            self._close(number)
            self._heading(len(heading[1]), _without_closing(line[heading.end() :]), number, number)
        elif self._is_underline(line):
            self._underlined(number)
        else:
            self._text(number)
        return number + 1

    def _text(self, number: int) -> None:
        if _ITEM.match(self._lines[number]):
            self._close(number)
            self._open(number, "item")
        elif self._begun is None:
            self._open(number, "paragraph")
        elif self._kind == "paragraph" and number == self._begun + 1 and self._is_table(number):
            self._kind = "row"

    def _is_table(self, number: int) -> bool:
        line = self._lines[number]
        return "|" in self._lines[number - 1] and "-" in line and _TABLE_RULE.issuperset(line)

    def _is_underline(self, line: str) -> bool:
        return self._begun is not None and self._kind == "paragraph" and bool(_UNDERLINE.match(line))

    def _underlined(self, number: int) -> None:
        first = number - 1 if self._begun is None else self._begun
        self._begun = None
        level = 1 if "=" in self._lines[number] else 2
        self._heading(level, " ".join(self._lines[first:number]), first, number)

    def _heading(self, level: int, raw: str, first: int, last: int) -> None:
        # The patterns are not made for lines without end; a longer heading is none anyway.
        title = _MARKS.sub("", _LINK.sub(r"\1", raw)) if len(raw) < _PATTERN_CHARACTERS else raw
        title = title.strip()
        self._document.add_heading(level, title, first, last)
        if self._title is None and level == 1 and title:
            self._title = title

    def _fenced(self, number: int, fence: str) -> int:
        """Code up to the fence that closes it, or to the end of the file."""
        self._close(number)
        last = number + 1
        while last < len(self._lines) and not self._closes(self._lines[last], fence):
            last += 1
        last = min(last, len(self._lines) - 1)
        self._document.add("code", number, last)
        return last + 1

    @staticmethod
    def _closes(line: str, fence: str) -> bool:
        mark = line.strip()
        return len(mark) >= len(fence) and not mark.strip(fence[0])

    def _front_matter(self) -> int:
        """Metadata between two `---` (or `+++`) lines on top; gives the line behind it."""
        mark = self._lines[0].rstrip()
        if mark not in {"---", "+++"}:
            return 0
        for number in range(1, len(self._lines)):
            if self._lines[number].rstrip() == mark:
                self._document.add("code", 0, number)
                return number + 1
            if self._title is None and (title := _FRONT_TITLE.match(self._lines[number])):
                self._title = title[1].strip().strip("\"'") or None
        self._title = None
        return 0

    def _open(self, number: int, kind: str) -> None:
        self._begun, self._kind = number, kind

    def _close(self, number: int) -> None:
        """End the open block before this line."""
        if self._begun is not None:
            self._document.add(self._kind, self._begun, number - 1)
        self._begun = None


def _without_closing(heading: str) -> str:
    """The words of a heading without the `#` marks that may close it."""
    words = heading.strip()
    bare = words.rstrip("#")
    return bare if not bare or bare[-1].isspace() else words
