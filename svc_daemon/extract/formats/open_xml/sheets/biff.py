"""What calamine doesn't read of an XLS file: formats of numbers, comments, texts of shapes and charts, headers.

The file is a list of records: first those of the workbook, then those of each sheet, with its charts among them.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from svc_daemon.extract.builders import one_line
from svc_daemon.extract.documents import ExtractionFailed
from svc_daemon.extract.formats.old_office.ole import CompoundFile
from svc_daemon.extract.formats.old_office.rtf_words import code_page
from svc_daemon.extract.formats.open_xml.number_codes import BUILT_IN
from svc_daemon.extract.formats.open_xml.number_formats import Show, compile_format
from svc_daemon.extract.formats.open_xml.sheets.cells import column_letters
from svc_daemon.extract.formats.open_xml.sheets.notes import Comment, comment_on, printed_text

_BEGIN, _END, _SHEET, _CONTINUE, _CODE_PAGE, _DATE_MODE = 0x809, 0x0A, 0x85, 0x3C, 0x42, 0x22
_FORMAT, _LOOK, _OBJECT, _TEXT, _NOTE, _CHART_TEXT = 0x41E, 0xE0, 0x5D, 0x1B6, 0x1C, 0x100D
_PRINTED = {0x14: "headers", 0x15: "footers"}
#: Records of a cell with a number, and of several.
_NUMBERS, _ROW_OF_NUMBERS = frozenset({0x06, 0x203, 0x27E}), 0xBD
_NEW_VERSION, _IS_COMMENT = 0x600, 0x19


@dataclass
class SheetExtras:
    """What one sheet has beside the values of its cells."""

    #: How a number is shown, by row and column from 0.
    shows: dict[tuple[int, int], Show] = field(default_factory=dict)
    comments: list[Comment] = field(default_factory=list)
    #: Texts of shapes and titles of charts.
    texts: dict[str, None] = field(default_factory=dict)
    #: Kinds and texts of headers and footers.
    printed: dict[tuple[str, str], None] = field(default_factory=dict)


def read_extras(data: bytes) -> dict[str, SheetExtras]:
    """Return what is beside the values of the cells of each sheet, by its name; what is damaged is missing."""
    try:
        file = CompoundFile(data)
    except ExtractionFailed:
        return {}
    book = _Book(file.read("Workbook") or file.read("Book"))
    return {name: book.read_sheet(start) for name, start in book.sheets}


class _Book:
    def __init__(self, stream: bytes) -> None:
        self._stream = stream
        self.sheets: list[tuple[str, int]] = []
        self._is_new, self._codec = True, "cp1252"
        codes, looks, is_1904 = dict(BUILT_IN), list[int](), False
        for kind, body in self._records(0):
            if kind == _CODE_PAGE and len(body) > 1:
                self._codec = code_page(struct.unpack_from("<H", body)[0])
            elif kind == _DATE_MODE:
                is_1904 = body[:1] == b"\1"
            elif kind == _FORMAT and len(body) > 2:
                codes[struct.unpack_from("<H", body)[0]] = self._string(body[2:], 2 if self._is_new else 1)
            elif kind == _LOOK and len(body) > 3:
                looks.append(struct.unpack_from("<H", body, 2)[0])
            elif kind == _SHEET and len(body) > 6:
                self.sheets.append((self._string(body[6:], 1), struct.unpack_from("<I", body)[0]))
        shows = {
            number: compile_format(code, is_1904=is_1904)
            for number, code in codes.items()
            if code.strip() and code.lower() not in {"general", "@"}
        }
        #: By the number of a cell's look.
        self._shows = [shows.get(number) for number in looks]

    def _records(self, at: int) -> Iterator[tuple[int, bytes]]:
        """Yield the kinds and contents of records, to the end of the sheet or workbook that begins here."""
        depth = 0
        while at + 4 <= len(self._stream):
            kind, size = struct.unpack_from("<HH", self._stream, at)
            body = self._stream[at + 4 : at + 4 + size]
            at += 4 + size
            depth += (kind == _BEGIN) - (kind == _END)
            if kind == _BEGIN and len(body) > 1:
                self._is_new = struct.unpack_from("<H", body)[0] >= _NEW_VERSION
            if depth <= 0:
                return
            yield kind, body

    def _string(self, raw: bytes, length_bytes: int) -> str:
        """Return a string after its length, in two bytes a character if a flag says so."""
        count = int.from_bytes(raw[:length_bytes], "little")
        raw = raw[length_bytes:]
        if not self._is_new:
            return raw[:count].decode(self._codec, "replace")
        return _characters(raw, count)

    def read_sheet(self, start: int) -> SheetExtras:
        found, texts = SheetExtras(), dict[int, str]()
        is_comment, number, left = False, 0, 0
        for kind, body in self._records(start):
            if kind == _CONTINUE and left > 0:
                part = _characters(body, left)
                texts[number] += part
                left -= max(1, len(part))
                continue
            left = 0
            if kind in _NUMBERS or kind == _ROW_OF_NUMBERS:
                self._add_shows(found, kind, body)
            elif kind == _OBJECT and len(body) > 7:
                object_kind, number = struct.unpack_from("<HH", body, 4)
                is_comment = object_kind == _IS_COMMENT
            elif kind == _TEXT and len(body) > 11:
                # Only comments are asked for by their numbers.
                left, number = struct.unpack_from("<H", body, 10)[0], number if is_comment else -1 - len(texts)
                texts[number], is_comment = "", False
            else:
                self._add_other(found, kind, body, texts)
        found.texts |= dict.fromkeys(text for at, each in texts.items() if at < 0 and (text := one_line(each)))
        return found

    def _add_shows(self, found: SheetExtras, kind: int, body: bytes) -> None:
        """Note how the numbers in a record are shown."""
        if len(body) < 6:
            return
        row, column = struct.unpack_from("<HH", body)
        looks = range(4, len(body) - 2, 6) if kind == _ROW_OF_NUMBERS else (4,)
        for number, at in enumerate(looks, column):
            look = struct.unpack_from("<H", body, at)[0]
            if look < len(self._shows) and (show := self._shows[look]):
                found.shows[row, number] = show

    def _add_other(self, found: SheetExtras, kind: int, body: bytes, texts: dict[int, str]) -> None:
        if kind == _NOTE and len(body) > 8 and self._is_new:
            row, column, _, number = struct.unpack_from("<4H", body)
            found.comments += comment_on(
                f"{column_letters(column)}{row + 1}", self._string(body[8:], 2), texts.get(number, "")
            )
        elif kind == _CHART_TEXT and len(body) > 3:
            text = one_line(self._string(body[2:], 1))
            found.texts |= {text: None} if text else {}
        elif kind in _PRINTED and len(body) > 2:
            text = printed_text(self._string(body, 2 if self._is_new else 1))
            found.printed |= {(_PRINTED[kind], text): None} if text else {}


def _characters(raw: bytes, count: int) -> str:
    """Return at most so many characters after the flag that says whether each has two bytes."""
    if raw[:1] and raw[0] & 1:
        return raw[1 : 1 + 2 * count].decode("utf-16-le", "replace")
    return raw[1 : 1 + count].decode("latin-1")
