"""The lines of a text in a language of documentation, marked one by one, and made a document."""

import re
from itertools import pairwise

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract.builders import LineDocument, find_header_title, fit

#: What a line is; a blank line ends a paragraph or an item.
BLANK, TEXT, CODE, ROW, ITEM = "", "paragraph", "code", "row", "item"
#: Longer headings become paragraphs anyway, and patterns are slow on them.
_PATTERN_CHARACTERS = 1000
#: So many ends that don't come are looked for; a text with more would be read again and again.
_MOST_MISSED = 100


def without(marks: re.Pattern[str], title: str, shown: str = "") -> str:
    """Return a heading without its marks, or with what is shown of them."""
    return marks.sub(shown, title) if len(title) < _PATTERN_CHARACTERS else title


class MarkedLines:
    """Lines that a reader changes to what is seen of them, and marks with what they are."""

    def __init__(self, text: str) -> None:
        self.lines = fit(text).split("\n")
        self._given = self.lines[:]
        self.kinds = [TEXT if line.strip() else BLANK for line in self.lines]
        #: The title that the text declares; the first heading otherwise.
        self.title: str | None = None
        #: By the index of its first line: level, title and last line of a heading.
        self._headings: dict[int, tuple[int, str, int]] = {}
        self._hidden: list[tuple[str, str, int]] = []
        #: For each pattern, the line from which it was looked for, and the first line that matches, or the last one.
        self._found: dict[str, tuple[int, int]] = {}
        self._missed = 0

    def mark(self, kind: str, first: int, last: int) -> None:
        """Mark the lines `first` to `last`, inclusive."""
        self.kinds[first : last + 1] = [kind] * (last + 1 - first)

    def add_heading(self, level: int, title: str, first: int, last: int) -> None:
        """Make lines a heading."""
        self.mark(BLANK, first, last)
        self._headings[first] = level, title, last

    def hide(self, first: int, last: int, reason: str = "comment") -> None:
        """Leave out lines that nobody sees."""
        self._hidden.append(("\n".join(self.lines[first : last + 1]), reason, first + 1))
        self.lines[first : last + 1] = [""] * (last + 1 - first)
        self.mark(BLANK, first, last)

    def hide_end(self, number: int, column: int) -> None:
        """Leave out the end of a line, which is a comment."""
        self._hidden.append((self.lines[number][column:], "comment", number + 1))
        self.lines[number] = self.lines[number][:column].rstrip()
        if not self.lines[number]:
            self.kinds[number] = BLANK

    def find(self, pattern: re.Pattern[str], first: int) -> int:
        """Return the index of the first line from `first` on that matches wholly; the last line if none does.

        What was found, or is missing, is not searched again, so that the whole takes linear time. So `first` may not be
        before that of an earlier search, and lines behind it may not change.
        """
        begun, end = self._found.get(pattern.pattern, (0, -1))
        last = len(self.lines) - 1
        if begun <= first <= end or self._missed > _MOST_MISSED:
            return end if first <= end else last
        found = next((number for number in range(first, last + 1) if pattern.fullmatch(self.lines[number])), None)
        self._missed += found is None
        self._found[pattern.pattern] = first, last if found is None else found
        return last if found is None else found

    def end_of_indented(self, first: int, column: int = 0) -> int:
        """Return the index of the last line from `first` on that is indented more than a column, or blank."""
        last = first - 1
        for number in range(first, len(self.lines)):
            line = self.lines[number]
            if line.strip():
                if len(line) - len(line.lstrip()) <= column:
                    break
                last = number
        return last

    def finish(self, warnings: tuple[str, ...]) -> Document:
        """Make each run of lines of one kind a block. An item has the text after it."""
        document = LineDocument("\n".join(self.lines))
        declared = self.title or find_header_title(self._given)
        for words, reason, line in self._hidden:
            document.hide(words, reason, line=line)
        begun, kinds = 0, self.kinds
        starts = [
            number
            for number, (before, kind) in enumerate(pairwise(["", *kinds]))
            if number in self._headings or kind == ITEM or (kind != before and not (kind == TEXT and before == ITEM))
        ]
        for begun, end in pairwise([*starts, len(kinds)]):
            if begun in self._headings:
                level, title, last = self._headings[begun]
                document.add_heading(level, title, begun, last)
            elif kinds[begun]:
                document.add(kinds[begun], begun, end - 1)
        return document.finish(title=declared or document.headings.first, warnings=warnings)
