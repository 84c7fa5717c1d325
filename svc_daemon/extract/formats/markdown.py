"""Markdown: headings, paragraphs, list items, tables and code, as ranges of the original lines.

The text is kept with its markup, so that positions in the text are positions in the file. Inline markup is not parsed.
"""

import re

from svc_daemon.core.text.chunking import Document
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
    return read_markdown(*decode(given.data, given.charset))


def read_markdown(text: str, warnings: tuple[str, ...] = ()) -> Document:
    """Split a Markdown text into blocks."""
    return _MarkdownReader(LineDocument(text)).read(warnings)


class _MarkdownReader:
    """Reads the lines in one pass. `_begun` is the index of the current block's first line, or None between blocks."""

    def __init__(self, document: LineDocument) -> None:
        self._document = document
        self._lines = document.lines
        self._begun: int | None = None
        self._kind = "paragraph"
        self._title: str | None = None

    def read(self, warnings: tuple[str, ...]) -> Document:
        number = self._skip_front_matter()
        while number < len(self._lines):
            fence = _FENCE.match(self._lines[number])
            if fence:
                self._close(number)
                closing = re.compile(rf"\s*{fence[1][0]}{{{len(fence[1])},}}\s*")
                rest = range(number + 1, len(self._lines))
                last = next((end for end in rest if closing.fullmatch(self._lines[end])), len(self._lines) - 1)
                self._document.add("code", number, last)
                number = last
            else:
                self._take(number, self._lines[number])
            number += 1
        self._close(len(self._lines))
        return self._document.finish(title=self._title, warnings=warnings)

    def _skip_front_matter(self) -> int:
        """Make front matter between `---` or `+++` lines a block. Returns the index of the line after it."""
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

    def _take(self, number: int, line: str) -> None:
        """Process a line outside fenced code."""
        if not line.strip():
            self._close(number)
        elif heading := _HEADING.match(line):
            self._close(number)
            words = line[heading.end() :].strip()
            bare = words.rstrip("#")
            # Remove closing `#` characters only after a space, so that the heading `C#` keeps its `#`.
            self._add_heading(len(heading[1]), bare if not bare or bare[-1].isspace() else words, number, number)
        elif self._begun is not None and self._kind == "paragraph" and _UNDERLINE.match(line):
            first, self._begun = self._begun, None
            self._add_heading(1 if "=" in line else 2, " ".join(self._lines[first:number]), first, number)
        elif _ITEM.match(line):
            self._close(number)
            self._begun, self._kind = number, "item"
        elif self._begun is None:
            self._begun, self._kind = number, "paragraph"
        elif self._kind == "paragraph" and number == self._begun + 1 and _TABLE_RULE.issuperset(line):
            # In a table, the second line has a hyphen, and the first line has a bar.
            self._kind = "row" if "-" in line and "|" in self._lines[number - 1] else "paragraph"

    def _add_heading(self, level: int, raw: str, first: int, last: int) -> None:
        # The patterns are slow on very long lines, which become paragraphs anyway.
        title = _MARKS.sub("", _LINK.sub(r"\1", raw)) if len(raw) < _PATTERN_CHARACTERS else raw
        title = title.strip()
        self._document.add_heading(level, title, first, last)
        if self._title is None and level == 1 and title:
            self._title = title

    def _close(self, number: int) -> None:
        """End the current block before this line."""
        if self._begun is not None:
            self._document.add(self._kind, self._begun, number - 1)
        self._begun = None
