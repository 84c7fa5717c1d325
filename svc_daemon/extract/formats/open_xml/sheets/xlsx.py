"""XLSX: each sheet becomes a page, headed by its name and column names. Each row becomes a line, as it is shown."""

import posixpath
import re
from itertools import chain, islice
from typing import Any

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.open_xml.packages import OfficePackage, open_package, qname
from svc_daemon.extract.formats.open_xml.sheets.cells import (
    CellFormats,
    SheetCells,
    attributes,
    column_number,
    shared_strings,
)
from svc_daemon.extract.formats.open_xml.sheets.notes import add_drawings, people_of, printed_texts, sheet_comments
from svc_daemon.extract.formats.open_xml.sheets.rows import SheetWriter
from svc_daemon.extract.formats.open_xml.sheets.styles import cell_formats

_MERGED = re.compile(rb"""<(?:\w+:)?mergeCell\s+ref\s*=\s*["']([A-Z]+)(\d+):([A-Z]+)(\d+)["']""")
_COLUMN = re.compile(rb"<(?:\w+:)?col(?=\s)([^>]*)>")


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
        self._strings = shared_strings(strings[0]) if strings and strings[0] else []
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
        for text, reason in cells.unseen:
            flow.hide(text, reason, page=flow.page)
        if cells.lost:
            flow.warn(f"{cells.lost} cells of the sheet {name} refer to a text that the file doesn't have.")
        add_drawings(flow, self._package, part)
        for kind, text in printed:
            flow.add("paragraph", text)
            flow.note_part(kind)
        self._printed.update(printed)
        return True
