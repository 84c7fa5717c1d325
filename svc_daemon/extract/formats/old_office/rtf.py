"""RTF: paragraphs, headings, lists, tables, headers, notes and comments in their order, in every code page."""

import re
from dataclasses import dataclass, field, replace

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract.builders import FlowDocument, one_line
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.old_office.rtf_words import (
    APART,
    CHARACTERS,
    CHARSETS,
    DESCRIBING,
    GROUP_WORDS,
    READ,
    SKIPPED,
    code_page,
    head_table,
)
from svc_daemon.extract.formats.superscripts import raised, write_exponents

_TOKEN = re.compile(
    rb"\\([A-Za-z]{1,32})(-?[0-9]{1,10})? ?|\\'([0-9A-Fa-f]{2})|\\([^A-Za-z])|([{}])|([^\\{}\r\n]+)|[\r\n]+|.",
    re.DOTALL,
)
_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
#: Text that is smaller, in half points, can't be read.
_TINY = 2
_SWITCHES = {"v": "is_hidden", "deleted": "is_deleted", "strike": "is_struck", "striked": "is_struck"}
#: Groups within groups are read to this depth.
_DEPTH = 10_000


@dataclass(slots=True)
class Group:
    """What holds until the end of a group."""

    is_skipped: bool = False
    #: Characters that follow a Unicode character for programs that don't know it.
    fallback: int = 1
    codec: str = ""
    is_deleted: bool = False
    is_white: bool = False
    is_backed: bool = False
    #: Whether the paragraph has a colour behind its text.
    is_shaded: bool = False
    is_tiny: bool = False
    is_hidden: bool = False
    is_struck: bool = False
    #: Whether the text is superscript.
    is_raised: bool = False
    #: The name of the group, if its text is apart.
    apart: str = ""

    @property
    def unseen(self) -> str:
        """Return why the text isn't seen, or an empty string."""
        if self.is_hidden:
            return "hidden"
        if self.is_white and not (self.is_backed or self.is_shaded):
            return "white text"
        if self.is_struck:
            return "struck out"
        return "text of size 0" if self.is_tiny else ""


@dataclass(slots=True)
class OpenParagraph:
    """A paragraph that is open, with the row of a table in which it is."""

    pieces: list[str] = field(default_factory=list)
    #: Blocks that follow the paragraph.
    after: list[tuple[str, str]] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    level: int = 0
    is_item: bool = False
    in_table: bool = False
    #: Whether it is in a shape or on a page that may be dark.
    on_colour: bool = False
    lines: list[str] = field(default_factory=list)


class RtfWalk:
    """Reads control words and text one after another, and adds blocks to `flow`."""

    def __init__(self, data: bytes, flow: FlowDocument) -> None:
        self.data = data
        self.flow = flow
        self.group = Group()
        self.groups: list[Group] = []
        self.places = [OpenParagraph()]
        self.fonts: dict[int, str] = {}
        self.styles: dict[int, int] = {}
        self.colors: list[tuple[int, int, int]] = []
        self.default, self.default_font = "cp1252", 0
        self.packed = bytearray()
        self.units: list[int] = []
        self.passed, self.is_starred = 0, False
        self.unseen: dict[str, list[str]] = {}
        self.author = self.title = self.merge = self.property = self.described = ""
        self.footers: list[str] = []
        self.seen: set[str] = set()
        #: How each cell of the row is merged: `""`, `across` or `down`; and the texts of the row above.
        self.merges: list[str] = []
        self.above: list[str] = []
        self.table = object()  # A paragraph ends it.

    def walk(self) -> None:
        """Read everything."""
        at = 0
        while token := _TOKEN.match(self.data, at):
            at = token.end()
            if token[1] == b"bin":
                at += max(0, int(token[2] or 0))
            elif token[1] is not None:
                self.control(token[1].decode("ascii"), None if token[2] is None else int(token[2]))
            elif token[3] is not None:
                self.add_bytes(bytes([int(token[3], 16)]))
            elif token[6] is not None:
                self.add_bytes(token[6])
            elif token[5] is not None:
                self.begin() if token[5] == b"{" else self.end()
            elif token[4] == b"*":
                self.is_starred = True
            elif token[4] is not None:
                self.control("par" if token[4] in b"\r\n" else token[4].decode("latin-1"), None)
        while len(self.places) > 1:
            self.end_apart("")
        self.finish()

    def finish(self) -> None:
        """Add what is still open at the end."""
        self.end_paragraph()
        if self.places[0].cells or self.places[0].lines:
            self.end_row()
        self.add_after(self.places[0])
        for footer in self.footers:
            self.flow.add("paragraph", footer)

    def begin(self) -> None:
        self.flush()
        self.is_starred, self.passed = False, 0
        if len(self.groups) < _DEPTH:
            self.groups.append(replace(self.group, apart=""))
            self.group, self.groups[-1] = self.groups[-1], self.group

    def end(self) -> None:
        self.flush()
        self.is_starred, self.passed = False, 0
        if not self.groups:
            return
        apart, self.group = self.group.apart, self.groups.pop()
        if apart:
            self.end_apart(apart)

    # ------------------------------------------------------------------ text

    def add_bytes(self, data: bytes) -> None:
        """Add characters in the code page of the font, without those that stand in for Unicode characters."""
        self.is_starred = False
        skipped = min(self.passed, len(data))
        self.passed -= skipped
        if not self.group.is_skipped and skipped < len(data):
            if self.units:
                self.flush()
            self.packed += data[skipped:]

    def add_unit(self, unit: int) -> None:
        """Add a unit of UTF-16. Its stand-in follows."""
        if self.packed:
            self.flush()
        if not self.group.is_skipped:
            self.units.append(unit % 0x10000)
        self.passed = self.group.fallback

    def flush(self) -> None:
        """Add what was collected to the open paragraph, or to what is hidden."""
        if not self.packed and not self.units:
            return
        text = self.packed.decode(self.group.codec or self.default, "replace")
        packed = b"".join(unit.to_bytes(2, "little") for unit in self.units)
        text += packed.decode("utf-16-le", "replace")
        self.packed.clear()
        self.units.clear()
        self.write(text)

    def write(self, text: str) -> None:
        place = self.places[-1]
        if self.group.is_skipped or self.group.is_deleted:
            return
        reason = self.group.unseen
        if reason and not (reason == "white text" and (place.in_table or place.on_colour)):
            self.unseen.setdefault(reason, []).append(text)
        else:
            place.pieces.append(raised(text) if self.group.is_raised else text)

    def end_paragraph(self) -> None:
        """Add the open paragraph, and what follows it."""
        self.flush()
        place = self.places[-1]
        text = write_exponents("".join(place.pieces)).strip()
        for reason, pieces in self.unseen.items():
            self.flow.hide("".join(pieces), reason)
        self.unseen.clear()
        if len(self.places) > 1 or place.in_table:
            place.lines.append(text)
        elif place.level:
            self.flow.add_heading(place.level, text)
        else:
            self.flow.add("item" if place.is_item else "paragraph", text)
        place.pieces.clear()
        place.is_item = False
        if len(self.places) == 1 and not place.in_table:
            self.add_after(place)
            self.table = object()

    def add_after(self, place: OpenParagraph) -> None:
        for kind, text in place.after:
            self.flow.add(kind, text)
        place.after.clear()

    def end_apart(self, name: str) -> None:
        """End a group whose text is apart, and put it in its place."""
        self.end_paragraph()
        ended = self.places.pop()
        text = "\n".join(filter(None, (*ended.lines, *ended.cells)))
        place = self.places[-1]
        place.after += ended.after
        if name in ("listtext", "pntext"):
            place.is_item = True
            place.pieces += [f"{text} "] if any(map(str.isalnum, text)) else []
        elif name == "atnauthor":
            self.author = one_line(text)
        elif name == "title":
            self.title = self.title or one_line(text)
        elif name in ("sn", "sv"):
            self.end_property(name, one_line(text))
        elif not text:
            pass
        elif name == "footnote":
            self.flow.note_part("notes")
            place.after.append(("paragraph", f"Note: {one_line(text)}"))
        elif name == "annotation":
            self.flow.note_part("comments")
            place.after.append(("paragraph", f"Comment{f' by {self.author}' if self.author else ''}: {one_line(text)}"))
        elif name.startswith(("header", "footer")):
            self.add_header(name[:6], text)
        else:
            place.after.append(("paragraph", text))

    def end_property(self, name: str, words: str) -> None:
        """Keep the name of a property, or add its words, which some programs write twice."""
        if name == "sn":
            self.property = words
        elif self.property in DESCRIBING and words not in ("", self.described):
            self.described = words
            self.flow.note_part("alt_texts")
            self.places[-1].pieces.append(f" {words} ")

    def add_header(self, kind: str, text: str) -> None:
        """Add a header at once, or keep a footer for the end; each once."""
        if text not in self.seen and any(map(str.isalpha, text)):
            self.seen.add(text)
            self.flow.note_part(f"{kind}s")
            if kind == "header":
                self.flow.add("paragraph", text)
            else:
                self.footers.append(text)

    # ------------------------------------------------------------------ control words

    def control(self, word: str, value: int | None) -> None:
        """Follow a control word."""
        starred, self.is_starred = self.is_starred, False
        if word == "u":
            self.add_unit(value or 0)
        elif self.passed and word not in GROUP_WORDS:
            self.passed -= 1
        elif word in APART and not self.group.apart:
            self.flush()
            self.group.apart = word
            self.places.append(OpenParagraph(on_colour=word == "shptxt" or self.places[0].on_colour))
        elif word in SKIPPED or (starred and word not in READ) or word.endswith("Pr"):
            self.flush()
            self.group.is_skipped = True
            self.places[0].on_colour |= word == "background"
        elif word in ("ud", "picprop"):
            self.group.is_skipped = False
        elif word in CHARACTERS:
            self.flush()
            self.write(CHARACTERS[word])
        elif not self.group.is_skipped or word in GROUP_WORDS:
            self.flush()
            self.format(word, value)

    def format(self, word: str, value: int | None) -> None:
        """Follow a control word that changes how text looks, or ends a paragraph, cell or row."""
        if word in GROUP_WORDS:
            self.set_group(word, value, is_on=value != 0)
        elif word in ("par", "sect", "page", "column"):
            self.end_paragraph()
        elif word == "cell":
            self.end_paragraph_of_cell()
        elif word == "row":
            self.end_row()
        elif word in ("clmrg", "clvmrg"):
            self.merge = word
        elif word == "cellx":
            self.merges.append(self.merge)
            self.merge = ""
        elif word == "trowd":
            self.merges.clear()
        else:
            self.set_paragraph(word, value or 0)

    def set_group(self, word: str, value: int | None, *, is_on: bool) -> None:
        group = self.group
        if word == "uc":
            group.fallback = max(0, min(value or 0, 100))
        elif word == "f":
            group.codec = self.fonts.get(value or 0, "")
        elif word in _SWITCHES:
            setattr(group, _SWITCHES[word], is_on)
        elif word in ("super", "sub", "nosupersub"):
            group.is_raised = word == "super" and is_on
        elif word == "cf":
            group.is_white = (value or 0) < len(self.colors) and self.colors[value or 0] == (255, 255, 255)
        elif word in ("highlight", "cb", "chcbpat", "chshdng"):
            group.is_backed = bool(value)
        elif word in ("cbpat", "shading"):
            group.is_shaded = bool(value)
        elif word == "fs":
            group.is_tiny = value is not None and value < _TINY
        else:
            group.is_hidden = group.is_deleted = group.is_white = group.is_backed = group.is_tiny = False
            group.is_struck = group.is_raised = False
            group.codec = self.fonts.get(self.default_font, "")

    def set_paragraph(self, word: str, value: int) -> None:
        place = self.places[-1]
        if word == "pard":
            place.level, place.in_table = 0, False
            self.group.is_backed = self.group.is_shaded = False
        elif word in ("intbl", "itap"):
            place.in_table = word == "intbl" or value > 0
        elif word == "outlinelevel":
            place.level = value + 1 if 0 <= value < 9 else 0
        elif word == "s":
            place.level = self.styles.get(value, 0)
        elif word == "deff":
            self.default_font = value
        elif word == "ansicpg":
            self.default = code_page(value)
        elif word in ("mac", "pc", "pca"):
            self.default = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}[word]

    def end_paragraph_of_cell(self) -> None:
        place = self.places[-1]
        place.in_table = True
        self.end_paragraph()
        place.cells.append(" ".join(filter(None, place.lines)))
        place.lines.clear()

    def end_row(self) -> None:
        """Add the row. A cell that is merged with the one above has its text too."""
        place = self.places[-1]
        cells, kinds = place.cells + place.lines, dict(enumerate(self.merges))
        texts = [
            self.above[at] if kinds.get(at) == "clvmrg" and at < len(self.above) else text
            for at, text in enumerate(cells)
        ]
        place.cells, place.lines, self.above = [], [], texts
        if len(self.places) > 1:
            place.lines.append(" | ".join(texts))
            return
        self.flow.add_row(texts, self.table)
        self.add_after(place)


_FONT = re.compile(rb"\\f(\d{1,6})(?!\d)([^{}]*?)(?=\\f\d|[{};])")
_CHARSET = re.compile(rb"\\(fcharset|cpg)(\d{1,5})")
_STYLE = re.compile(rb"\{\s*\\s(\d{1,5})(?!\d)((?:[^{}]|\{[^{}]*\})*)\}")
_COLOR = re.compile(rb"\\(?:red|green|blue)(\d{1,3})")


def read(given: Given) -> Document:
    """Read an RTF file. What is damaged costs itself."""
    data, flow = given.data, FlowDocument()
    walk = RtfWalk(data, flow)
    for number, rest in _FONT.findall(head_table(data, b"fonttbl")):
        for kind, value in _CHARSET.findall(rest):
            walk.fonts[int(number)] = CHARSETS.get(int(value), "") if kind == b"fcharset" else code_page(int(value))
    for color in head_table(data, b"colortbl").partition(b"colortbl")[2].split(b";"):
        red, green, blue = [*map(int, _COLOR.findall(color)), 0, 0, 0][:3]
        walk.colors.append((red, green, blue))
    for number, rest in _STYLE.findall(head_table(data, b"stylesheet")):
        if level := _HEADING.search(rest.decode("latin-1")):
            walk.styles[int(number)] = int(level[1])
    walk.walk()
    return flow.finish(title=walk.title or flow.headings.first)
