"""XLSX: each sheet becomes a page, headed by its name and column names. Each row becomes a line, as it is shown."""

import re
from collections.abc import Iterable
from itertools import chain, islice
from typing import Any

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.texts import column_heading
from svc_daemon.extract.open_xml.packages import OfficePackage, open_package, qname
from svc_daemon.extract.open_xml.sheet_cells import (
    CellFormats,
    SheetCells,
    SheetRow,
    attributes,
    column_number,
    shared_strings,
)
from svc_daemon.extract.open_xml.sheet_notes import Comment, add_drawings, people_of, printed_texts, sheet_comments
from svc_daemon.extract.open_xml.sheet_styles import cell_formats
from svc_daemon.extract.tables import REPEATED_CHARACTERS

#: A longer run of empty cells within a row is written as one.
_GAP = 50
#: The first column of a sheet is that of its first rows.
_FIRST_ROWS = 100
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
    for number, sheet in enumerate(sheets, 1):
        flow.page = number
        part = package.target(main, sheet)
        name = sheet.get("name") or ""
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
        strings = [package.read(part) for part in package.related(main, "sharedStrings")]
        self._strings = shared_strings(strings[0]) if strings and strings[0] else []
        styles = [package.parse(part) for part in package.related(main, "styles")]
        has_styles = bool(styles) and styles[0] is not None
        self._formats = cell_formats(styles[0], is_1904=is_1904) if has_styles else CellFormats()
        self._printed: set[tuple[str, str]] = set()

    def add_sheet(self, part: str, name: str) -> bool:
        """Add a sheet. Returns False if it is empty."""
        xml = self._package.read(part)
        if xml is None:
            return False
        flow = self._flow
        cells = SheetCells(xml, self._strings, self._formats)
        rows = cells.rows()
        first_rows = [*islice(rows, _FIRST_ROWS)]
        comments = sheet_comments(self._package, part, self._people)
        printed = [each for each in printed_texts(cells.xml) if each not in self._printed]
        # A sheet's name alone is no text.
        if not (first_rows or comments or printed or self._package.related(part, "drawing")):
            return False
        flow.headings.clear()
        flow.add_heading(1, name)
        _RowWriter(flow, cells.xml, comments, first_rows).add_rows(chain(first_rows, rows))
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


class _RowWriter:
    """Writes the rows of a sheet, with what merged cells and comments say."""

    def __init__(self, flow: FlowDocument, xml: bytes, comments: list[Comment], first_rows: list[SheetRow]) -> None:
        self._flow = flow
        self._comments = [*reversed(comments)]
        self._base = min((row.cells[0][0] for row in first_rows), default=0)
        #: By their first cell: the last rows of merged cells that span several.
        self._merged = {
            (int(top), column_number(left.decode())): int(bottom)
            for left, top, _, bottom in _MERGED.findall(xml)
            if int(top) < int(bottom)
        }
        #: By column: the texts of merged cells that reach into the next rows, and their last rows.
        self._spanning: dict[int, tuple[str, int]] = {}
        self._hidden_columns = [
            range(int(tag["min"]) - 1, int(tag["max"]))
            for tag in map(attributes, _COLUMN.findall(xml))
            if tag.get("hidden") in {"1", "true"} and all(tag.get(end, "").isdecimal() for end in ("min", "max"))
        ]

    def add_rows(self, rows: Iterable[SheetRow]) -> None:
        hidden_rows, used = 0, set[int]()
        is_first = True
        for row in rows:
            self._add_comments(row.number)
            texts = self.texts_of(row)
            header = column_heading([text for text in texts if text]) if is_first else None
            is_first = False
            if header:
                self._flow.add_heading(2, header)
            else:
                self._flow.add_row(texts)
            hidden_rows += row.is_hidden
            if self._hidden_columns:
                used.update(column for column, _ in row.cells)
        self._add_comments(None)
        hidden_columns = sum(any(column in each for each in self._hidden_columns) for column in used)
        for kind, number in (("hidden_rows", hidden_rows), ("hidden_columns", hidden_columns)):
            if number:
                self._flow.note_part(kind, number)

    def texts_of(self, row: SheetRow) -> list[str]:
        """Return the texts of a row, each in its column."""
        cells = self.with_merged(row) if self._merged else row.cells
        texts: list[str] = []
        column = self._base
        for place, text in cells:
            gap = place - column
            if gap > 0:
                texts += [""] * (gap if gap <= _GAP else 1)
            texts.append(text)
            column = place + 1
        return texts

    def with_merged(self, row: SheetRow) -> list[tuple[int, str]]:
        """Return the cells of a row, with those that reach into it from above."""
        self._spanning = {column: each for column, each in self._spanning.items() if each[1] >= row.number}
        texts = {column: text for column, (text, _) in self._spanning.items()} | dict(row.cells)
        for column, text in row.cells:
            bottom = self._merged.get((row.number, column))
            if bottom and len(text) <= REPEATED_CHARACTERS:
                self._spanning[column] = (text, bottom)
        return sorted(texts.items())

    def _add_comments(self, before: int | None) -> None:
        """Add the comments on rows before the given one; all that are left if it is None."""
        while self._comments and (before is None or self._comments[-1].row < before):
            self._flow.add("paragraph", self._comments.pop().text)
            self._flow.note_part("comments")
