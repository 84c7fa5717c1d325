"""The cells of a worksheet, row by row, as text.

A sheet may have millions of cells, so their XML is not parsed into a tree: patterns find them, in a fifth of the time,
whatever prefix and quotes the file uses. A sheet costs what its filled cells cost, however far apart they are.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import unescape
from itertools import zip_longest
from types import MappingProxyType
from typing import NamedTuple

from svc_daemon.extract.builders import one_line, sub_closed
from svc_daemon.extract.formats.open_xml.number_digits import general
from svc_daemon.extract.formats.superscripts import BEGIN, END, write_exponents

#: A row's beginning, with its attributes.
_ROW = re.compile(rb"<(?:\w+:)?row(?=[\s/>])([^<>]*)>")
_ROW_NUMBER = re.compile(rb"""(?<!\S)r\s*=\s*["'](\d{1,8})["']""")
_ROWS_END = re.compile(rb"</(?:\w+:)?sheetData\s*>")
#: A cell: the letters of its column and the rest of its attributes, then a plain value or whatever else is in it. This
#: ends where another cell begins, as in all these patterns, so that elements without an end cost linear time.
_CELL = re.compile(
    rb"""<(?:\w+:)?c(?: r="([A-Z]+)\d+")?((?:\s[^<>]*?)?)(?:/>|>(?:<v>([^<]*)</v>|"""
    rb"""((?>(?:[^<]++|<(?!/?(?:\w+:)?c[\s/>]))*)))</(?:\w+:)?c>)"""
)
_ATTRIBUTE = re.compile(rb"""([\w:]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_VALUE = re.compile(rb"<(?:\w+:)?v(?:\s[^<>]*)?>([^<]*)</(?:\w+:)?v>")
_FORMULA = re.compile(rb"<(?:\w+:)?f(\s[^<>]*?)?(?:/>|>([^<]*)</(?:\w+:)?f>)")
#: Readings of Chinese characters stand beside the text that they belong to.
_READING = re.compile(
    rb"<(?:\w+:)?(?:rPh|phoneticPr)(?=[\s/>])(?:[^<]|<(?!(?:\w+:)?(?:rPh|phoneticPr)[\s/>]))*?(?:</(?:\w+:)?rPh>|/>)"
)
_TEXT = re.compile(rb"<(?:\w+:)?t(?:\s[^<>]*)?>([^<]*)<")
_STRING = re.compile(rb"<(?:\w+:)?si(?:\s[^<>]*)?(?:/>|>((?>(?:[^<]++|<(?!/?(?:\w+:)?si[\s/>]))*))</(?:\w+:)?si>)")
#: A run of a string that has looks of its own, and those that count here.
_RUN = re.compile(rb"<(?:\w+:)?r>(?>(?:[^<]|<(?!/?(?:\w+:)?r>))*)</(?:\w+:)?r>")
_STRIKE = re.compile(rb"""<(?:\w+:)?strike(?:\s+val\s*=\s*["'](?:1|true)["'])?\s*/>""")
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")
_COMMENT, _CDATA = re.compile(rb"<!--.*?-->", re.DOTALL), re.compile(rb"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_REFERENCE = re.compile(r"(\"[^\"]*\"|'[^']*')|(\$?)\b([A-Z]{1,3})(\$?)([1-9]\d{0,6})\b(?![(!\w])")
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d)(?::(\d\d(?:\.\d+)?))?Z?)?")
#: A number that is written as it is shown.
_SHORT = re.compile(rb"-?(?:0|[1-9]\d*)\.\d*[1-9]")
#: So many values of a kind of cells are remembered.
_VALUES = 5000
_XML = re.compile(rb"""\s*<\?xml[^>]*?encoding\s*=\s*["']([\w.-]+)""")


class SheetRow(NamedTuple):
    """A row that has text."""

    #: From 1.
    number: int
    #: Columns, from 0, and texts, in ascending order.
    cells: list[tuple[int, str]]
    is_hidden: bool


class _CellKind(NamedTuple):
    """What a cell's tag says beside its place."""

    style: int
    type_: bytes
    #: Whether it is a shared string that its format shows as it is.
    is_string: bool
    #: The texts of values that were shown before, since many cells have the same.
    values: dict[bytes, str]


class CellFormats(NamedTuple):
    """How cells show their values, by the number of their style."""

    numbers: Sequence[Callable[[float], str] | None] = ()
    texts: Mapping[int, Callable[[str], str]] = MappingProxyType({})
    #: Styles that write white on white.
    white: frozenset[int] = frozenset()
    #: Styles that put a line through the text.
    struck: frozenset[int] = frozenset()


def plain_xml(xml: bytes) -> bytes:
    """Return XML in UTF-8, without comments and with plain text instead of CDATA."""
    declared = _XML.match(xml)
    if xml.startswith((b"\xff\xfe", b"\xfe\xff")):
        xml = xml.decode("utf-16", "replace").encode()
    elif declared and declared[1].lower() not in {b"utf-8", b"us-ascii", b"utf8"}:
        try:
            xml = xml.decode(declared[1].decode(), "replace").encode()
        except LookupError:
            return xml
    if b"<!" in xml:
        xml = sub_closed(_COMMENT, b"-->", b"", xml)
        xml = sub_closed(_CDATA, b"]]>", lambda data: data[1].replace(b"&", b"&amp;").replace(b"<", b"&lt;"), xml)
    return xml


def text_of(xml: bytes, struck: list[str]) -> str:
    """Return the text of a string's XML on one line: of all its runs, without readings.

    Runs that are struck out are added to `struck`.
    """
    if b"rPh" in xml or b"phoneticPr" in xml:
        xml = _READING.sub(b"", xml)
    if b"strike" not in xml and b"superscript" not in xml:
        return cell_text(b"".join(_TEXT.findall(xml)))
    shown = _RUN.sub(lambda run: _shown_run(run[0], struck), xml)
    return write_exponents(cell_text(b"".join(_TEXT.findall(shown))))


def _shown_run(run: bytes, struck: list[str]) -> bytes:
    text = b"".join(_TEXT.findall(run))
    if _STRIKE.search(run):
        struck.append(cell_text(text))
        return b""
    return b"<t>%s</t>" % (f"{BEGIN}%s{END}".encode() % text if b"superscript" in run else text)


def cell_text(raw: bytes) -> str:
    """Decode text between tags, with white space as single spaces."""
    text = raw.decode("utf-8", "replace")
    if "&" in text:
        text = unescape(text)
    if "_x" in text:
        text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    return one_line(text)


def shared_strings(xml: bytes, struck: list[str]) -> list[str]:
    """Return the strings that cells refer to by their number. What is struck out in them is added to `struck`."""
    return [text_of(found[1] or b"", struck) for found in _STRING.finditer(plain_xml(xml))]


def column_number(letters: str) -> int:
    """Return the number of a column, from 0."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def column_letters(number: int) -> str:
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def attributes(raw: bytes) -> dict[str, str]:
    """Return the attributes in a tag."""
    return {
        name.decode("ascii", "replace"): unescape((double or single).decode("utf-8", "replace"))
        for name, double, single in _ATTRIBUTE.findall(raw)
    }


class SheetCells:
    """Reads the cells of one sheet."""

    def __init__(self, xml: bytes, strings: Sequence[str], formats: CellFormats) -> None:
        self.xml = plain_xml(xml)
        #: Numbers of cells that refer to a string that isn't there.
        self.lost = 0
        #: Texts that their formats don't show, with the reasons.
        self.unseen: list[tuple[str, str]] = []
        # White text may stand on the colours that these give.
        is_coloured = any(word in self.xml for word in (b"conditionalFormatting", b"tablePart", b"picture"))
        white = frozenset[int]() if is_coloured else formats.white
        self._unseen_styles = {**dict.fromkeys(white, "white text"), **dict.fromkeys(formats.struck, "struck out")}
        self._strings, self._formats = strings, formats
        #: The style and the type of a cell, by what its tag says beside its place.
        self._kinds: dict[bytes, _CellKind] = {}
        self._columns: dict[bytes, int] = {}
        self._shared: dict[str, tuple[str, int, int]] = {}

    def rows(self) -> Iterator[SheetRow]:
        """Yield the rows that have text."""
        closed = _ROWS_END.search(self.xml)
        last = closed.start() if closed else len(self.xml)
        begins = [*_ROW.finditer(self.xml, 0, last)]
        number = 0
        for begin, following in zip_longest(begins, begins[1:]):
            end = following.start() if following else last
            given = _ROW_NUMBER.search(begin[1])
            number = int(given[1]) if given else number + 1
            cells = self.cells_of(number, begin.end(), end)
            if cells:
                yield SheetRow(
                    number, cells, b"hidden" in begin[1] and attributes(begin[1]).get("hidden") in {"1", "true"}
                )

    def cells_of(self, row: int, start: int, end: int) -> list[tuple[int, str]]:
        """Return the cells of a row that have text. This runs for each cell, so it calls as little as it can."""
        cells, column, is_sorted = [], -1, True
        kinds, columns, strings, unseen = self._kinds, self._columns, self._strings, self._unseen_styles
        for place, rest, plain, other in _CELL.findall(self.xml, start, end):
            kind, before, letters = kinds.get(rest) if place else None, column, place
            if kind is None:
                kind, letters = self.read_tag(place, rest)
            known = columns.get(letters) if letters else column + 1
            if known is None:
                known = columns[letters] = column_number(letters.decode())
            column = known
            if not plain:
                text = self.other_text(kind, other, row, column) if other else ""
            elif kind.is_string and plain.isdigit() and int(plain) < len(strings):
                text = strings[int(plain)]
            elif (found := kind.values.get(plain)) is not None:
                text = found
            else:
                text = self._shown(kind, plain)
                if len(kind.values) < _VALUES:
                    kind.values[plain] = text
            if text and unseen and kind.style in unseen:
                self.unseen.append((text, unseen[kind.style]))
            elif text:
                cells.append((column, text))
                is_sorted = is_sorted and column > before
        return cells if is_sorted else sorted(dict(cells).items())

    def read_tag(self, letters: bytes, rest: bytes) -> tuple[_CellKind, bytes]:
        """Return the style and type of a cell, and the letters of its column."""
        tag = attributes(rest)
        given, type_ = tag.get("s", ""), tag.get("t", "n").encode()
        style = int(given) if given.isdecimal() and len(given) < 9 else 0
        kind = _CellKind(style, type_, type_ == b"s" and style not in self._formats.texts, {})
        if letters:
            self._kinds[rest] = kind
            return kind, letters
        return kind, b"".join(re.findall(rb"^\$?([A-Za-z]{1,3})\$?\d", tag.get("r", "").encode())).upper()

    def _shown(self, kind: _CellKind, raw: bytes) -> str:
        """Return a value as the sheet shows it."""
        style, type_ = kind.style, kind.type_
        if type_ == b"n":
            return self.number_text(style, raw)
        if type_ == b"s":
            try:
                text = self._strings[int(raw)]
            except (ValueError, IndexError):
                self.lost += 1
                return ""
        elif type_ == b"b":
            return {b"1": "TRUE", b"0": "FALSE"}.get(raw.strip(), cell_text(raw))
        elif type_ == b"d":
            found = _DATE.fullmatch(cell_text(raw).strip())
            text = " ".join(filter(None, found.groups()[:2])) if found else cell_text(raw)
        else:
            text = cell_text(raw)
        show = self._formats.texts.get(style)
        return self._noticed(text, show(text)) if show else text

    def number_text(self, style: int, raw: bytes) -> str:
        numbers = self._formats.numbers
        show = numbers[style] if style < len(numbers) else None
        if show is None and len(raw) < 16 and (raw.isdigit() or _SHORT.fullmatch(raw)):
            return raw.decode()
        try:
            if show is None:
                return general(float(raw))
            return show(float(raw)) or self._noticed(general(float(raw)), "")
        except (ValueError, ArithmeticError):
            return cell_text(raw).strip()

    def _noticed(self, text: str, shown: str) -> str:
        """Note a text that its format doesn't show."""
        if not shown and text:
            self.unseen.append((text, "number format that shows nothing"))
        return shown

    def other_text(self, kind: _CellKind, xml: bytes, row: int, column: int) -> str:
        """Return the text of a cell that has more than a value: a string of its own, or a formula."""
        formula = _FORMULA.search(xml)
        written = ""
        if formula:
            tag = attributes(formula[1] or b"")
            written = cell_text(formula[2] or b"")
            if tag.get("t") == "shared" and written:
                self._shared[tag.get("si", "")] = (written, row, column)
            elif tag.get("t") == "shared" and tag.get("si", "") in self._shared:
                first, first_row, first_column = self._shared[tag["si"]]
                written = moved_formula(first, row - first_row, column - first_column)
        if kind.type_ == b"inlineStr":
            struck: list[str] = []
            text = text_of(xml, struck)
            self.unseen += [(each, "struck out") for each in struck]
            if text or struck:
                return text
        value = _VALUE.search(xml)
        if value and value[1].strip():
            return self._shown(kind, value[1])
        # A formula whose result is an empty text shows nothing.
        return f"={written}" if written and not (value and kind.type_ == b"str") else ""


def moved_formula(formula: str, rows: int, columns: int) -> str:
    """Return a formula as it is in a cell so many rows and columns away, to which its references move."""

    def moved(found: re.Match[str]) -> str:
        quoted, fixed_column, letters, fixed_row, number = found.groups()
        if quoted:
            return quoted
        column = letters if fixed_column else column_letters(max(0, column_number(letters) + columns))
        row = number if fixed_row else max(1, int(number) + rows)
        return f"{fixed_column}{column}{fixed_row}{row}"

    return _REFERENCE.sub(moved, formula)
