"""Markdown: headings, paragraphs, list items, tables and code, as ranges of the original lines.

The lines are those of the file, and keep their markup, except for HTML.
"""

import html
import re

from svc_daemon.core.answers.lines import barred
from svc_daemon.core.text.chunking import Document
from svc_daemon.extract.builders import LineDocument
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.text.markdown_tags import clean
from svc_daemon.extract.formats.text.texts import decode
from svc_daemon.extract.tables import TRIED_ROWS, heading_of

_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
#: What follows backticks on the same line has none, since otherwise it is code within a line.
_FENCE = re.compile(r"([ \t]*)(`{3,}(?=[^`]*$)|~{3,})")
_ITEM = re.compile(r"([ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+)\S|[ \t]*(?:[-*+]|\d{1,9}[.)])\s*$")
_INDENT = re.compile(r"[ \t]*")
_TABLE_RULE = frozenset("|:- \t")
#: In a heading: code, which is kept as it is, or links, marks of emphasis, escaped characters, footnotes and anchors.
_INLINE = re.compile(
    r"(?P<ticks>`+)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)|!?\[(?P<link>[^\]]*)\](?:\([^)]*\)|\[[^\]]*\])|\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|\[\^[^\]]*\]|<(?P<address>(?:https?:|mailto:)[^<>\s]+)>|\{:?\s*[#.][^}]*\}|[*~]+(?=\S)|(?<=\S)[*~]+|(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)"
)
_PATTERN_CHARACTERS = 1000
_FRONT_KEY = re.compile(r"[\w\"'-][^:=]*[:=]|\[")
_FRONT_TITLE = re.compile(r"title\s*[:=]\s*(.+)", re.IGNORECASE)


def read(given: Given) -> Document:
    is_mdx = given.filename.lower().endswith((".mdx", ".mdx.gz"))
    return read_markdown(*decode(given.data, given.charset), is_mdx=is_mdx)


def read_markdown(text: str, warnings: tuple[str, ...] = (), *, is_mdx: bool = False) -> Document:
    """Split a Markdown text into blocks."""
    cleaned = clean(text, is_mdx=is_mdx)
    document = LineDocument(cleaned.text)
    for words, reason, line in cleaned.hidden:
        document.hide(words, reason, line=line)
    return _MarkdownReader(document, cleaned.code).read(warnings)


class _MarkdownReader:
    """Reads the lines in one pass. `_begun` is the index of the current block's first line, or None between blocks."""

    def __init__(self, document: LineDocument, code: frozenset[int]) -> None:
        self._document = document
        #: Indexes of lines that are code by their tags.
        self._code = code
        #: Column in which the text of the open list item begins; 0 outside of lists.
        self._column = 0
        self._lines = document.lines
        self._begun: int | None = None
        self._kind = "paragraph"
        self._title: str | None = None

    def read(self, warnings: tuple[str, ...]) -> Document:
        number = self._skip_front_matter()
        while number < len(self._lines):
            line = self._lines[number]
            fence = _FENCE.match(line) if "```" in line or "~~~" in line else None
            last = number - 1
            if number in self._code:
                last = next(end for end in range(number, len(self._lines) + 1) if end + 1 not in self._code)
            elif fence and len(fence[1].expandtabs(4)) < self._column + 4:
                last = self._find_fence_end(number, fence)
            if last >= number:
                self._close(number)
                self._document.add("code", number, last)
            else:
                self._take(number, line)
            number = max(last, number) + 1
        self._close(len(self._lines))
        return self._document.finish(title=self._title or self._document.headings.first, warnings=warnings)

    def _find_fence_end(self, number: int, fence: re.Match[str]) -> int:
        """Return the index of the last line of fenced code. In a list, it ends with its list item at the latest."""
        closing = re.compile(rf"[ \t]*{fence[2][0]}{{{len(fence[2])},}}[ \t]*")
        column = min(self._column, len(fence[1].expandtabs(4)))
        for end in range(number + 1, len(self._lines)):
            if closing.fullmatch(self._lines[end]):
                return end
            if column and self._lines[end].strip() and self._indent(end) < column:
                return end - 1
        return len(self._lines) - 1

    def _indent(self, number: int) -> int:
        found = _INDENT.match(self._lines[number])
        return len(found[0].expandtabs(4)) if found else 0

    def _skip_front_matter(self) -> int:
        """Make front matter between `---` or `+++` lines a block. Returns the index of the line after it."""
        mark = self._lines[0].rstrip()
        ends = {"---": ("---", "..."), "+++": ("+++",)}.get(mark, ())
        last = next((number for number in range(1, len(self._lines)) if self._lines[number].rstrip() in ends), 0)
        front = self._lines[1:last]
        # Otherwise it is text between two rules.
        if not any(map(_FRONT_KEY.match, front)):
            return 0
        titles = filter(None, map(_FRONT_TITLE.match, front))
        self._title = next((title[1].strip().strip("\"'") for title in titles), None) or None
        self._document.add("code", 0, last)
        return last + 1

    def _take(self, number: int, line: str) -> None:
        """Process a line outside fenced code."""
        if not line.strip():
            self._close(number)
        elif (
            self._begun is None
            and line[0] in " \t"
            and self._indent(number) >= self._column + 4
            and not _ITEM.match(line)
        ):
            self._begun, self._kind = number, "code"
        elif self._kind == "code" and self._begun is not None and self._indent(number) >= 4:
            return
        elif "#" in line[:4] and (heading := _HEADING.match(line)):
            self._close(number)
            words = line[heading.end() :].strip()
            bare = words.rstrip("#")
            # Remove closing `#` characters only after a space, so that the heading `C#` keeps its `#`.
            self._add_heading(len(heading[1]), bare if not bare or bare[-1].isspace() else words, number, number)
        elif self._is_underline(line):
            first, self._begun = self._begun or 0, None
            self._add_heading(1 if "=" in line else 2, " ".join(self._lines[first:number]), first, number)
        elif item := _ITEM.match(line):
            self._close(number)
            self._column = len((item[1] or f"{line.rstrip()} ").expandtabs(4))
            self._begun, self._kind = number, "item"
        elif self._begun is None or self._kind == "code":
            self._close(number)
            self._begun, self._kind = number, "paragraph"
            self._column = min(self._column, self._indent(number))
        elif self._kind == "paragraph" and number == self._begun + 1 and _TABLE_RULE.issuperset(line):
            # In a table, the second line has a hyphen, and the first line has a bar.
            self._kind = "row" if "-" in line and "|" in self._lines[number - 1] else "paragraph"

    def _is_underline(self, line: str) -> bool:
        """Return whether the line makes the open paragraph a heading. In a quotation, it would be a rule."""
        if self._kind != "paragraph" or line[-1] not in "=- \t" or self._begun is None or not _UNDERLINE.match(line):
            return False
        return not self._lines[self._begun].lstrip().startswith((">", "|"))

    def _add_heading(self, level: int, raw: str, first: int, last: int) -> None:
        # The patterns are slow on very long lines, which become paragraphs anyway.
        title = html.unescape(_INLINE.sub(_plain, raw)) if len(raw) < _PATTERN_CHARACTERS else raw
        title = title.strip()
        self._column = 0
        self._document.add_heading(level, title, first, last)
        if self._title is None and level == 1 and title:
            self._title = title

    def _close(self, number: int) -> None:
        """End the current block before this line."""
        if self._begun is not None and self._kind == "row":
            self.add_table(self._begun, number - 1)
        elif self._begun is not None:
            self._document.add(self._kind, self._begun, number - 1)
        self._begun = None

    def add_table(self, first: int, last: int) -> None:
        """Add the names of the columns and the line below them, and then the rows."""
        self._document.add("row", first, first + 1)
        tried = [self._lines[first], *self._lines[first + 2 : last + 1][:TRIED_ROWS]]
        if len(self._lines[first]) < _PATTERN_CHARACTERS:
            tried[0] = html.unescape(_INLINE.sub(_plain, tried[0]))
        self._document.add("row", first + 2, last, heading_of([barred(line) for line in tried]))


def _plain(mark: re.Match[str]) -> str:
    """Return what a reader sees of inline markup."""
    return next(filter(None, (mark["code"], mark["link"], mark["escaped"], mark["address"])), "").strip()
