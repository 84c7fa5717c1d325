"""XLSX: each sheet becomes a page, headed by its name and column names. Each row becomes a line, as it is shown."""

import posixpath
import re
from itertools import chain, islice
from typing import Any

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.open_xml.number_codes import BUILT_IN
from svc_daemon.extract.formats.open_xml.number_formats import Show, compile_format, text_format
from svc_daemon.extract.formats.open_xml.numbering import number_of
from svc_daemon.extract.formats.open_xml.packages import OfficePackage, is_on, open_package, qname
from svc_daemon.extract.formats.open_xml.sheets.cells import (
    CellFormats,
    SheetCells,
    attributes,
    column_number,
    shared_strings,
)
from svc_daemon.extract.formats.open_xml.sheets.notes import add_drawings, people_of, printed_texts, sheet_comments
from svc_daemon.extract.formats.open_xml.sheets.rows import SheetWriter

_MERGED = re.compile(rb"""<(?:\w+:)?mergeCell\s+ref\s*=\s*["']([A-Z]+)(\d+):([A-Z]+)(\d+)["']""")
_COLUMN = re.compile(rb"<(?:\w+:)?col(?=\s)([^<>]*)>")


def read(given: Given) -> Document:
    """Read an XLSX file or one of its variants. Raises ExtractionFailed if it is damaged or over the limits."""
    flow = FlowDocument()
    package = open_package(given, flow)
    main = package.main("xl", "workbook.xml")
    root = package.parse(main)
    sheets = [] if root is None else [*root.iter(qname("s:sheet"))]
    if not sheets:
        raise documents.unreadable("The spreadsheet is damaged: its list of sheets can't be read.")
    book = _Book(flow, package, main, root)
    book.most_characters = given.limits.output_bytes
    targets = [package.target(main, sheet) for sheet in sheets]
    # A sheet that names no part has one that no other sheet names.
    left = [
        part for part in package.below(posixpath.join(posixpath.dirname(main), "worksheets")) if part not in targets
    ]
    for number, (sheet, target) in enumerate(zip(sheets, targets, strict=True), 1):
        flow.page = number
        name = sheet.get("name") or ""
        part = target if target or not left else left.pop(0)
        if part is None:
            flow.warn(f"The sheet {name} is missing from the file.")
            continue
        if book.add_sheet(part, name) and (sheet.get("state") or "visible") != "visible":
            flow.note_part("hidden_sheets")
    return flow.finish(title=package.title(), pages=len(sheets))


class _Book:
    """A workbook whose sheets are added to a document."""

    def __init__(self, flow: FlowDocument, package: OfficePackage, main: str, root: Any) -> None:
        self._flow, self._package = flow, package
        self._people = people_of(package, main)
        properties = root.find(qname("s:workbookPr"))
        is_1904 = properties is not None and properties.get("date1904") in {"1", "true"}
        usual = posixpath.join(posixpath.dirname(main), "sharedstrings.xml")
        texts = package.related(main, "sharedStrings") or [usual] * package.has(usual)
        strings = [package.read(part) for part in texts]
        struck: list[str] = []
        self._strings = shared_strings(strings[0], struck) if strings and strings[0] else []
        for text in struck:
            flow.hide(text, "struck out")
        styles = [package.parse(part) for part in package.related(main, "styles")]
        has_styles = bool(styles) and styles[0] is not None
        self._formats = cell_formats(styles[0], is_1904=is_1904) if has_styles else CellFormats()
        #: No more text than this is read.
        self.most_characters = 0
        self._printed: set[tuple[str, str]] = set()

    def add_sheet(self, part: str, name: str) -> bool:
        """Add a sheet. Returns False if it is empty."""
        xml = self._package.read(part)
        if xml is None:
            return False
        flow = self._flow
        cells = SheetCells(xml, self._strings, self._formats)
        rows = cells.rows()
        first = [*islice(rows, 1)]
        comments = sheet_comments(self._package, part, self._people)
        printed = [each for each in printed_texts(cells.xml) if each not in self._printed]
        # A sheet's name alone is no text.
        if not (first or comments or printed or self._package.related(part, "drawing")):
            self._hide(cells)
            return False
        flow.headings.clear()
        flow.add_heading(1, name)
        merged = {
            (int(top), column_number(left.decode())): int(bottom)
            for left, top, _, bottom in _MERGED.findall(cells.xml)
            if int(top) < int(bottom)
        }
        writer = SheetWriter(flow, comments, merged, self.most_characters)
        writer.hidden_columns = [
            range(int(tag["min"]) - 1, int(tag["max"]))
            for tag in map(attributes, _COLUMN.findall(cells.xml))
            if tag.get("hidden") in {"1", "true"} and all(tag.get(end, "").isdecimal() for end in ("min", "max"))
        ]
        writer.add_rows(chain(first, rows))
        self._hide(cells)
        if cells.lost:
            flow.warn(f"{cells.lost} cells of the sheet {name} refer to a text that the file doesn't have.")
        add_drawings(flow, self._package, part)
        for kind, text in printed:
            flow.add("paragraph", text)
            flow.note_part(kind)
        self._printed.update(printed)
        return True

    def _hide(self, cells: SheetCells) -> None:
        for text, reason in cells.unseen:
            self._flow.hide(text, reason, page=self._flow.page)


#: Colours by their number, and the background's by its number in the theme, that are white in nearly every file.
_WHITE_INDEXES = frozenset({"1", "9"})


def cell_formats(root: Any, *, is_1904: bool) -> CellFormats:
    """Return the formats of the cells' styles, in their order."""
    codes = {**BUILT_IN}
    for each in root.iter(qname("s:numFmt")):
        codes[number_of(each.get("numFmtId"), -1)] = each.get("formatCode") or ""
    struck_fonts = {
        number for number, font in enumerate(_children(root, "fonts")) if is_on(font.find(qname("s:strike")), "val")
    }
    white_fonts = [_is_white(font.find(qname("s:color"))) for font in _children(root, "fonts")]
    bare_fills = {number for number, fill in enumerate(_children(root, "fills")) if _is_bare(fill)}
    numbers: list[Show | None] = []
    texts, white, struck = {}, [], []
    shows = {
        number: compile_format(code, is_1904=is_1904)
        for number, code in codes.items()
        if code.strip() and code.lower() not in {"general", "@"}
    }
    for style, each in enumerate(_children(root, "cellXfs")):
        number = number_of(each.get("numFmtId"), 0)
        numbers.append(shows.get(number))
        show_text = text_format(codes[number]) if number in shows else None
        if show_text:
            texts[style] = show_text
        font, fill = (number_of(each.get(name), -1) for name in ("fontId", "fillId"))
        if 0 <= font < len(white_fonts) and white_fonts[font] and (fill < 0 or fill in bare_fills):
            white.append(style)
        if font in struck_fonts:
            struck.append(style)
    return CellFormats(numbers, texts, frozenset(white), frozenset(struck))


def _children(root: Any, name: str) -> list[Any]:
    found = root.find(qname(f"s:{name}"))
    return [] if found is None else [*found]


def _is_white(colour: Any) -> bool:
    if colour is None or colour.get("tint"):
        return False
    return (
        (colour.get("rgb") or "").upper().endswith("FFFFFF")
        or colour.get("theme") == "0"
        or colour.get("indexed") in _WHITE_INDEXES
    )


def _is_bare(fill: Any) -> bool:
    """Whether a fill leaves the sheet white."""
    pattern = fill.find(qname("s:patternFill"))
    if pattern is None:
        return False
    kind = pattern.get("patternType") or "none"
    return kind == "none" or (kind == "solid" and _is_white(pattern.find(qname("s:fgColor"))))
