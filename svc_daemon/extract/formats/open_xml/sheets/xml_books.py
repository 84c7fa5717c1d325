"""Spreadsheets as Excel 2003 wrote them in XML, and other programs still do."""

from collections.abc import Iterator, Mapping

from lxml import etree

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.builders import FlowDocument, one_line
from svc_daemon.extract.formats import Given, xml_files
from svc_daemon.extract.formats.open_xml.number_formats import compile_format
from svc_daemon.extract.formats.open_xml.sheets.cells import SheetRow, column_letters
from svc_daemon.extract.formats.open_xml.sheets.notes import Comment
from svc_daemon.extract.formats.open_xml.sheets.rows import SheetWriter

_SPREADSHEET = "{urn:schemas-microsoft-com:office:spreadsheet}"
#: Formats that have a name instead of a code.
_CODES = {
    "Fixed": "0.00",
    "Standard": "#,##0.00",
    "Currency": "#,##0.00",
    "Euro Currency": "#,##0.00 €",
    "Percent": "0.00%",
    "Scientific": "0.00E+00",
}
#: Rows and columns of a sheet at most.
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384


def read(given: Given) -> Document:
    """Read each sheet as a page. Raises ExtractionFailed if the XML is damaged."""
    root = xml_files.parse(given.data, "The spreadsheet is damaged: its XML can't be read.")
    formats: dict[str, str] = {}
    for style in root.iter(f"{_SPREADSHEET}Style"):
        code = style.find(f"{_SPREADSHEET}NumberFormat")
        inherited = formats.get(style.get(f"{_SPREADSHEET}Parent") or "", "")
        name = "" if code is None else code.get(f"{_SPREADSHEET}Format") or ""
        formats[style.get(f"{_SPREADSHEET}ID") or ""] = _CODES.get(name, name) or inherited
    flow, pages = FlowDocument(), 0
    for pages, sheet in enumerate(root.iter(f"{_SPREADSHEET}Worksheet"), 1):
        flow.page = pages
        flow.headings.clear()
        merged: dict[tuple[int, int], int] = {}
        comments: list[Comment] = []
        rows = [*_rows(sheet, formats, merged, comments)]
        if rows or comments:
            flow.add_heading(1, sheet.get(f"{_SPREADSHEET}Name") or "")
            SheetWriter(flow, comments, merged, given.limits.output_bytes).add_rows(rows)
    return flow.finish(pages=pages)


def _rows(
    sheet: etree._Element, formats: Mapping[str, str], merged: dict[tuple[int, int], int], comments: list[Comment]
) -> Iterator[SheetRow]:
    """Yield the rows that have text, and note the last rows of merged cells, and the comments."""
    number = 0
    for row in sheet.iter(f"{_SPREADSHEET}Row"):
        number = _number(row, "Index", number + 1)
        cells: list[tuple[int, str]] = []
        column = -1
        for cell in row.iterchildren(f"{_SPREADSHEET}Cell"):
            column = _number(cell, "Index", column + 2) - 1
            data = cell.find(f"{_SPREADSHEET}Data")
            style = cell.get(f"{_SPREADSHEET}StyleID") or row.get(f"{_SPREADSHEET}StyleID") or ""
            if data is not None and (text := _text(data, formats.get(style, ""))):
                cells.append((column, text))
            if down := _number(cell, "MergeDown", 0):
                merged[number, column] = number + down
            if words := one_line("".join(cell.xpath("string(s:Comment/s:Data)", namespaces={"s": _SPREADSHEET[1:-1]}))):
                comments.append(Comment(number, column, f"Comment on {column_letters(column)}{number}: {words}"))
            column += _number(cell, "MergeAcross", 0)
        if number > _MOST_ROWS or column > _MOST_COLUMNS:
            raise documents.over_limit("The sheet has more rows or columns than Excel's.")
        if cells:
            yield SheetRow(number, cells, is_hidden=row.get(f"{_SPREADSHEET}Hidden") == "1")


def _text(data: etree._Element, code: str) -> str:
    """Return what a cell shows."""
    text = one_line("".join(data.itertext()))
    match data.get(f"{_SPREADSHEET}Type"):
        case "Number" if code and text:
            try:
                return compile_format(code)(float(text))
            except ValueError:
                return text
        case "DateTime":
            text = text.removeprefix("1899-12-31T")
            return text.removesuffix(".000").removesuffix(":00").removesuffix("T00:00").replace("T", " ")
        case "Boolean":
            return {"1": "TRUE", "0": "FALSE"}.get(text, text)
    return text


def _number(element: etree._Element, name: str, otherwise: int) -> int:
    """Return the number in an attribute; `otherwise` if it has none."""
    digits = element.get(f"{_SPREADSHEET}{name}") or ""
    return int(digits) if digits.isdecimal() and len(digits) < 9 else otherwise
