"""reStructuredText, AsciiDoc and Org: headings, items, tables, code and comments by the rules of each language.

Of each language these are the few rules that show structure. docutils, which reads only the first of them, takes twenty
times as long, and includes files.
"""

import re
import unicodedata

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.text.line_marks import BLANK, CODE, ITEM, ROW, MarkedLines, without
from svc_daemon.extract.formats.text.texts import decode

#: In a heading: roles, the targets of references, and marks.
_RST_INLINE = re.compile(
    r"(?:(?<!\w):[\w:.+-]+:)?`([^`<]*?)(?:\s*<[^`>]*>)?`(?:_{1,2}|:[\w:]+:)?|\*+|`+|(?<=\w)_{1,2}(?!\w)|\|"
)
_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\(?(?:\d{1,4}|#|[a-zA-Z])[.)]|[ivxIVX]{1,5}[.)])[ \t]+\S")


def read_rst(given: Given) -> Document:
    """Read reStructuredText."""
    return _read(given, _RstReader)


def read_asciidoc(given: Given) -> Document:
    """Read AsciiDoc."""
    return _read(given, _AsciiDocReader)


def read_org(given: Given) -> Document:
    """Read an Org file."""
    return _read(given, _OrgReader)


def _read(given: Given, language: "type[_RstReader | _AsciiDocReader | _OrgReader]") -> Document:
    text, warnings = decode(given.data, given.charset)
    marked = MarkedLines(text)
    reader, number = language(marked), 0
    while number < len(marked.lines):
        number = max(number, reader.take(number, marked.lines[number])) + 1
    return marked.finish(warnings)


class _RstReader:
    _ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+[ \t]*")
    _EXPLICIT = re.compile(r"([ \t]*)\.\.(?:[ \t]+(?P<words>.*)|[ \t]*)")
    _NO_COMMENT = re.compile(r"\[|_|__ |\||[\w:.+-]+::")
    _CODE = re.compile(r"(?:code|code-block|sourcecode|highlight|parsed-literal|literalinclude|math|raw|graphviz)::")

    def __init__(self, marked: MarkedLines) -> None:
        self._marked = marked
        self._lines = marked.lines
        #: The characters of headings in the order of their levels, and whether a line is above the heading.
        self._styles: list[tuple[str, bool]] = []

    def take(self, number: int, line: str) -> int:
        """Mark what begins with this line. Returns the index of its last line."""
        if explicit := self._EXPLICIT.fullmatch(line):
            return self._take_explicit(number, explicit)
        if (last := self._take_heading(number)) is not None:
            return last
        if line.lstrip().startswith(">>> "):
            last = next(
                (end for end in range(number, len(self._lines)) if not self._lines[end].strip()), len(self._lines)
            )
            self._marked.mark(CODE, number, last - 1)
            return last - 1
        if _ITEM.match(line):
            self._marked.kinds[number] = ITEM
        if line.rstrip().endswith("::"):
            return self._take_code(number + 1, len(line) - len(line.lstrip()))
        return number

    def _take_code(self, first: int, column: int) -> int:
        last = self._marked.end_of_indented(first, column)
        while first < last and not self._lines[first].strip():
            first += 1
        if last >= first:
            self._marked.mark(CODE, first, last)
        return max(last, first - 1)

    def _take_explicit(self, number: int, explicit: re.Match[str]) -> int:
        words, column = explicit["words"] or "", len(explicit[1])
        if self._NO_COMMENT.match(words):
            if self._CODE.match(words):
                return self._take_code(number + 1, column)
            return number
        last = number
        # An empty comment, with a blank line after it, has no text.
        if words or (number + 1 < len(self._lines) and self._lines[number + 1].strip()):
            last = max(number, self._marked.end_of_indented(number + 1, column))
        self._marked.hide(number, last)
        return last

    def _take_heading(self, number: int) -> int | None:
        """Make an underlined line a heading, if this line begins one. Returns its last line, or None."""
        lines = [*self._lines[number : number + 3], "", ""]
        if number and self._lines[number - 1].strip() and self._marked.kinds[number - 1] != BLANK:
            return None
        is_over = bool(self._ADORNMENT.fullmatch(lines[0])) and lines[0].rstrip() == lines[2].rstrip()
        title, under = lines[1:3] if is_over else lines[:2]
        adornment = self._ADORNMENT.fullmatch(under)
        if (
            not adornment
            or not title.strip()
            or self._ADORNMENT.fullmatch(title)
            or (title[0].isspace() and not is_over)
        ):
            return None
        width = sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in title.strip())
        if len(under.rstrip()) < min(width, 4):
            return None
        style = (adornment[1], is_over)
        if style not in self._styles:
            self._styles.append(style)
        last = number + (2 if is_over else 1)
        self._marked.add_heading(self._styles.index(style) + 1, without(_RST_INLINE, title, r"\1"), number, last)
        return last


class _AsciiDocReader:
    _HEADING = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)")
    _UNDERLINE = re.compile(r"([=~^+-])\1+[ \t]*")
    _FENCE = re.compile(r"(-{4,}|\.{4,}|\+{4,}|```)[\w-]*[ \t]*")
    _COMMENT = re.compile(r"/{4,}[ \t]*")
    _ATTRIBUTE = re.compile(r"\[[\w\[#.%,\"'=&; -]*\]?\][ \t]*|:!?[\w-]+!?:(?:[ \t].*)?|(?:ifn?def|endif|ifeval)::.*")
    _ITEM = re.compile(r"[ \t]*(?:\*{1,5}|-|\.{1,5}|\d+\.|<\d+>)[ \t]+\S|\S.*::(?:[ \t].*)?")
    _ANCHOR = re.compile(r"\[\[[^\]]*\]\]|\[#[^\]]*\]|[*_`](?=\S)|(?<=\S)[*`]|(?<=\w)_(?!\w)")

    def __init__(self, marked: MarkedLines) -> None:
        self._marked = marked
        self._lines = marked.lines

    def take(self, number: int, line: str) -> int:
        """Mark what begins with this line. Returns the index of its last line."""
        if not line.strip():
            return number
        if self._COMMENT.fullmatch(line):
            last = self._marked.find(re.compile(rf"{line.rstrip()}[ \t]*"), number + 1)
            self._marked.hide(number, last)
            return last
        if line.startswith("//") and not line.startswith("///"):
            self._marked.hide(number, number)
        elif fence := self._FENCE.fullmatch(line):
            last = self._marked.find(re.compile(rf"{re.escape(fence[1])}[ \t]*"), number + 1)
            self._marked.mark(CODE, number, last)
            return last
        elif heading := self._HEADING.fullmatch(line):
            title, closed = heading[2].rstrip(" \t"), heading[2].rstrip(" \t").removesuffix(heading[1])
            title = closed if closed and closed[-1] in " \t" else title
            self._marked.add_heading(len(heading[1]), without(self._ANCHOR, title), number, number)
        elif self._ATTRIBUTE.fullmatch(line):
            self._marked.kinds[number] = CODE
        elif self._is_underlined(number):
            level = "=-~^+".index(self._lines[number + 1][0]) + 1
            self._marked.add_heading(level, without(self._ANCHOR, line), number, number + 1)
            return number + 1
        elif self._ITEM.fullmatch(line) or self._ITEM.match(line):
            self._marked.kinds[number] = ITEM
        elif line.startswith("|"):
            self._marked.kinds[number] = ROW
        return number

    def _is_underlined(self, number: int) -> bool:
        """Return whether the next line is the underline of a heading, which is about as long."""
        under = self._lines[number + 1] if number + 1 < len(self._lines) else ""
        is_first = not number or self._marked.kinds[number - 1] in {BLANK, CODE}
        is_long = abs(len(under.rstrip()) - len(self._lines[number].rstrip())) <= 2
        return is_first and is_long and bool(self._UNDERLINE.fullmatch(under)) and self._lines[number][0].isalnum()


class _OrgReader:
    _HEADING = re.compile(r"(\*+)[ \t]+(\S.*)")
    _STATE = re.compile(r"(?:TO[D]O|DONE|NEXT|WAITING|CANCELLED|CANCELED|HOLD)[ \t]+|\[#\w\][ \t]*|[ \t]+:[\w@#%:]+:$")
    _KEYWORD = re.compile(r"[ \t]*#\+(\w+)(?:\[[^\]]*\])?:[ \t]*(.*)")
    _BEGIN = re.compile(r"[ \t]*#\+begin_(\w+).*", re.IGNORECASE)
    _DRAWER = re.compile(r"[ \t]*:[\w-]+:[ \t]*")
    _DRAWER_END = re.compile(r"[ \t]*:end:[ \t]*", re.IGNORECASE)
    _COMMENT = re.compile(r"[ \t]*#(?:[ \t].*)?")
    _ITEM = re.compile(r"[ \t]*(?:[-+]|\d+[.)]|[ \t]\*)[ \t]+\S")
    _MARKS = re.compile(r"\[\[[^\]]*\]\[([^\]]*)\]\]|(?<!\w)[*/_=~+](?=\S)|(?<=\S)[*/_=~+](?!\w)")

    def __init__(self, marked: MarkedLines) -> None:
        self._marked = marked

    def take(self, number: int, line: str) -> int:
        """Mark what begins with this line. Returns the index of its last line."""
        if heading := self._HEADING.fullmatch(line):
            title = without(self._MARKS, without(self._STATE, heading[2]), r"\1")
            self._marked.add_heading(len(heading[1]), title, number, number)
        elif begin := self._BEGIN.fullmatch(line):
            return self._take_block(number, begin[1].lower())
        elif keyword := self._KEYWORD.fullmatch(line):
            self._marked.kinds[number] = CODE
            if keyword[1].lower() == "title":
                self._marked.title = keyword[2].strip() or None
        elif self._COMMENT.fullmatch(line):
            self._marked.hide(number, number)
        elif self._DRAWER.fullmatch(line) and not self._DRAWER_END.fullmatch(line):
            last = self._marked.find(self._DRAWER_END, number + 1)
            if self._DRAWER_END.fullmatch(self._marked.lines[last]):
                self._marked.mark(CODE, number, last)
                return last
        else:
            kinds = {"|": ROW, ":": CODE}
            self._marked.kinds[number] = (
                ITEM if self._ITEM.match(line) else kinds.get(line.lstrip()[:1], self._marked.kinds[number])
            )
        return number

    def _take_block(self, number: int, name: str) -> int:
        last = self._marked.find(re.compile(rf"[ \t]*#\+end_{name}[ \t]*", re.IGNORECASE), number + 1)
        if name == "comment":
            self._marked.hide(number, last)
        elif name in {"src", "example", "export", "verse"}:
            self._marked.mark(CODE, number, last)
        else:
            # Of a quotation or the like, only its marks aren't prose.
            self._marked.kinds[number] = self._marked.kinds[last] = CODE
            return number
        return last
