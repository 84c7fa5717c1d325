"""DOC, the files of Word 6 to 2003: text with headings and tables, notes, comments, headers and text boxes."""

import re
import struct
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.old_office.ole import CompoundFile
from svc_daemon.extract.formats.superscripts import raised, write_exponents

_WORD_97, _WORD_6 = 0xA5EC, 0xA5DC
_ENCRYPTED, _SECOND_TABLE, _COMPLEX = 0x100, 0x200, 4
#: Codecs of Word 6 by language.
_CODECS = {
    **dict.fromkeys((0x419, 0x422, 0x402, 0x423), "cp1251"),
    **dict.fromkeys((0x415, 0x405, 0x40E, 0x41B, 0x418, 0x424, 0x41A), "cp1250"),
    0x411: "cp932",
    0x804: "gbk",
    0x404: "cp950",
    0x412: "cp949",
    0x408: "cp1253",
    0x41F: "cp1254",
    0x40D: "cp1255",
    0x401: "cp1256",
}
#: Properties of text: deleted by a tracked change, hidden, with a line or two through it, and above or below the line.
_DELETED, _HIDDEN, _STRIKES, _PLACE = 0x0800, 0x083C, (0x0837, 0x2A53), 0x2A48
#: Properties of a paragraph: the end of a row, and within a table.
_ROW_END, _IN_TABLE = 0x2417, 0x2416
#: Values of paragraphs; smaller ones are levels of headings.
_ENDS_ROW, _CELL = 20, 10
#: Sizes of properties, by the bits that give them. Six is a length byte with as many bytes.
_OPERANDS = (1, 1, 2, 4, 2, 2, 0, 3)
_PAGE_BYTES = 512
_CHARACTERS = str.maketrans({"\x0b": "\n", "\x1e": "-", "\x1f": "", "\x01": "", "\x02": "", "\x05": "", "\x08": ""})
_TOKEN = re.compile("[\x07\x0c\r\x13-\x15]|[^\x07\x0c\r\x13-\x15]+")
#: The parts of the text, in their order. Macros have no text.
_PARTS = ("text", "notes", "headers", "macros", "comments", "notes", "boxes", "boxes")


class Piece(NamedTuple):
    """A run of text as it is stored: its first byte and its characters, each of one or two bytes."""

    offset: int
    text: str
    width: int


class Runs:
    """Values of ranges of the stored bytes."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._values: list[int] = []

    def add(self, start: int, end: int, value: int) -> None:
        if not self._starts or start >= self._starts[-1]:
            self._starts.append(start)
            self._ends.append(end)
            self._values.append(value)

    def at(self, offset: int) -> int:
        """Return the value at this byte, or 0."""
        number = bisect_right(self._starts, offset) - 1
        return self._values[number] if number >= 0 and offset < self._ends[number] else 0

    def seen(self, text: str, offset: int, width: int, flow: FlowDocument) -> list[str]:
        """Return what is seen of text that is stored from this byte on. Hidden text goes to `flow`, deleted nowhere."""
        if not self._starts:
            return [text]
        kinds = [self.at(offset + number * width) for number in range(len(text))]
        letters = [*zip(text, kinds, strict=True)]
        for bit, bits, reason in ((1, 3, "hidden"), (4, 7, "struck out")):
            flow.hide("".join(letter for letter, kind in letters if kind & bits == bit), reason)
        # The signs of notes have no text.
        return [raised(letter) if kind & 8 and letter >= " " else letter for letter, kind in letters if not kind & 7]


class WordFile:
    """The text of a DOC file, and what its formatting says."""

    def __init__(self, file: CompoundFile) -> None:
        self.stream = file.read("WordDocument")
        kind, version, language, flags = struct.unpack_from("<HH2xH2xH", self.stream)
        if kind not in (_WORD_97, _WORD_6):
            raise documents.unreadable("The file is damaged, or of a version of Word before 6.")
        if flags & _ENCRYPTED:
            raise documents.encrypted()
        self.is_new = version > 105
        self.codec = _CODECS.get(language, "cp1252")
        self.table = file.read("1Table" if flags & _SECOND_TABLE else "0Table") if self.is_new else self.stream
        #: Where the file says how many characters each part has, and where the lists of its runs are.
        counts, pieces, looks, paragraphs = (0x4C, 0x1A2, 0xFA, 0x102) if self.is_new else (0x34, 0x160, 0xB8, 0xC0)
        self.counts = struct.unpack_from("<8I", self.stream, counts)
        self.pieces = list(self.read_pieces(pieces, is_complex=self.is_new or bool(flags & _COMPLEX)))
        #: Bits for text that is hidden, deleted, struck or superscript, and for headings and the ends of rows.
        self.looks, self.paragraphs = Runs(), Runs()
        if self.is_new:
            self.read_runs(looks, self.looks, is_paragraphs=False)
            self.read_runs(paragraphs, self.paragraphs, is_paragraphs=True)

    def read_pieces(self, at: int, *, is_complex: bool) -> Iterator[Piece]:
        start, size = struct.unpack_from("<II", self.stream, at)
        if not is_complex or not size:
            first, last = struct.unpack_from("<II", self.stream, 24)
            yield Piece(first, self.stream[first:last].decode(self.codec, "replace"), 1)
            return
        packed = self.table[start : start + size]
        at = 0
        while packed[at : at + 1] == b"\x01":
            at += 3 + struct.unpack_from("<H", packed, at + 1)[0]
        count = (len(packed) - at - 9) // 12
        at += 5
        places = struct.unpack_from(f"<{count + 1}I", packed, at)
        for number in range(count):
            length = min(places[number + 1] - places[number], len(self.stream))
            offset = struct.unpack_from("<I", packed, at + 4 * (count + 1) + 8 * number + 2)[0]
            width = 1 if not self.is_new or offset & 0x40000000 else 2
            if self.is_new and width == 1:
                offset = (offset & 0x3FFFFFFF) // 2
            stored = self.stream[offset : offset + max(0, length) * width]
            codec = "utf-16-le" if width == 2 else self.codec if not self.is_new else "cp1252"
            yield Piece(offset, stored.decode(codec, "surrogatepass" if width == 2 else "replace"), width)

    def read_runs(self, at: int, runs: Runs, *, is_paragraphs: bool) -> None:
        start, size = struct.unpack_from("<II", self.stream, at)
        listed = self.table[start : start + size]
        count = (len(listed) - 4) // 8
        for number in range(max(0, count)):
            page = struct.unpack_from("<I", listed, 4 * (count + 1) + 4 * number)[0] & 0x3FFFFF
            packed = self.stream[page * _PAGE_BYTES : (page + 1) * _PAGE_BYTES]
            if len(packed) < _PAGE_BYTES:
                continue
            offsets = struct.unpack_from(f"<{min(packed[-1], 101) + 1}I", packed)
            for run, (first, last) in enumerate(pairwise(offsets)):
                place = 4 * len(offsets) + run * (13 if is_paragraphs else 1)
                value = (
                    _paragraph_value(packed, packed[place] * 2) if is_paragraphs else _look(packed, packed[place] * 2)
                )
                if value:
                    runs.add(first, last, value)


def _properties(packed: bytes) -> Iterator[tuple[int, int]]:
    """Yield each property with the first byte of its operand."""
    at = 0
    while at + 2 < len(packed):
        name = packed[at] | packed[at + 1] << 8
        yield name, packed[at + 2]
        size = _OPERANDS[name >> 13]
        at += 2 + (size or packed[at + 2] + 1)


def _look(packed: bytes, at: int) -> int:
    """Return 1 for hidden, 2 for deleted, 4 for struck and 8 for superscript text, or their sum."""
    found = dict(_properties(packed[at + 1 : at + 1 + packed[at]])) if at else {}
    is_struck = any(found.get(name) == 1 for name in _STRIKES)
    return (found.get(_HIDDEN) == 1) + 2 * (found.get(_DELETED) == 1) + 4 * is_struck + 8 * (found.get(_PLACE) == 1)


def _paragraph_value(packed: bytes, at: int) -> int:
    """Return the level of a heading, or -1 for the end of a row."""
    size = packed[at] * 2 - 1 if packed[at] else packed[at + 1] * 2
    start = at + 1 if packed[at] else at + 2
    properties = packed[start : start + size]
    if not at or len(properties) < 2:
        return 0
    found = dict(_properties(properties[2:]))
    if found.get(_ROW_END) == 1:
        return _ENDS_ROW
    style = properties[0] | properties[1] << 8
    return _CELL if found.get(_IN_TABLE) == 1 else style if 1 <= style <= 9 else 0


class TextParts:
    """Splits the text into its paragraphs and adds them to `flow`."""

    def __init__(self, word: WordFile, flow: FlowDocument) -> None:
        self.word = word
        self.flow = flow
        self.buffer: list[str] = []
        #: For each field that is open, whether its instruction is still read.
        self.fields: list[bool] = []
        self.lines: list[str] = []
        self.cells: list[str] = []
        self.seen: set[str] = set()
        self.was_cell = False
        #: The table that is read, or would be; any paragraph ends it.
        self.table = object()

    def add_all(self) -> None:
        """Add all parts one after another."""
        pieces = ((piece, token) for piece in self.word.pieces for token in _TOKEN.finditer(piece.text))
        number, left = 0, self.word.counts[0]
        for piece, token in pieces:
            text, offset = token[0], piece.offset + token.start() * piece.width
            while text:
                while left <= 0 and number < len(_PARTS) - 1:
                    self.end_part(_PARTS[number])
                    number += 1
                    left = self.word.counts[number]
                if left <= 0:
                    return
                now, text = text[:left], text[left:]
                left -= len(now)
                self.add(_PARTS[number], now, offset, piece.width)
                offset += len(now) * piece.width
        self.end_part(_PARTS[number])

    def add(self, part: str, text: str, offset: int, width: int) -> None:
        """Add text, or follow a mark."""
        if text == "\x13":
            self.fields.append(True)
        elif text == "\x14" and self.fields:
            self.fields[-1] = False
        elif text == "\x15" and self.fields:
            self.fields.pop()
        elif text in ("\r", "\x07", "\x0c"):
            self.end_paragraph(part, text, self.word.paragraphs.at(offset))
        elif not any(self.fields):
            self.buffer += self.word.looks.seen(text, offset, width, self.flow)

    def end_paragraph(self, part: str, mark: str, value: int) -> None:
        raw = "".join(self.buffer)
        text = write_exponents(raw.translate(_CHARACTERS)).strip()
        self.buffer.clear()
        if part != "text":
            # A sign is before each note and comment.
            self.lines += ["", text] if raw.startswith(("\x02", "\x05")) else [text]
        elif mark == "\x07":
            if value == _ENDS_ROW or (not self.word.is_new and self.was_cell and not text):
                self.flow.add_row(self.cells, self.table)
                self.cells.clear()
            else:
                self.cells.append(" ".join(filter(None, (*self.lines, text))))
                self.lines.clear()
        elif value == _CELL:
            self.lines.append(text)
        else:
            self.table = object()
            self.add_text(text, value)
        self.was_cell = mark == "\x07" and bool(self.cells)

    def add_text(self, text: str, value: int) -> None:
        if 1 <= value <= 9:
            self.flow.add_heading(value, text)
        else:
            self.flow.add("paragraph", text)

    def end_part(self, part: str) -> None:
        """Add what was collected of a part beside the text."""
        self.end_paragraph(part, "\r", 0)
        if part == "text" and self.cells:
            self.flow.add_row(self.cells, self.table)
        name = {"notes": "Note: ", "comments": "Comment: "}.get(part, "")
        pieces = "\n".join(self.lines).split("\n\n") if name else self.lines
        for text in pieces:
            words = text.strip()
            if words and words not in self.seen and (part != "headers" or any(map(str.isalpha, words))):
                self.seen.add(words)
                if part != "boxes":
                    self.flow.note_part(part)
                self.flow.add("paragraph", f"{name}{words}")
        self.lines.clear()
        self.fields.clear()


def read(given: Given) -> Document:
    """Read a DOC file. Raises ExtractionFailed if it is damaged, encrypted or too old."""
    flow = FlowDocument()
    try:
        TextParts(WordFile(CompoundFile(given.data)), flow).add_all()
    except (struct.error, IndexError) as error:
        raise documents.unreadable("The file is damaged: its text can't be found.") from error
    return flow.finish(title=flow.headings.first)
