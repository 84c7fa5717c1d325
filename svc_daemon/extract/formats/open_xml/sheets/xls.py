"""XLS and XLSB: each sheet becomes a page, headed by its name and column names. Each row becomes a line.

calamine reads both, but not the formats of their numbers. XLSB is therefore written without percent or currency, and
what `biff` reads of XLS is added.
"""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from io import BytesIO
from itertools import chain, islice

import python_calamine

from svc_daemon.core.text.chunking import Document
from svc_daemon.core.text.container_types import MAGIC
from svc_daemon.extract import documents
from svc_daemon.extract.archives import check_archive
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.open_xml.number_digits import general
from svc_daemon.extract.formats.open_xml.sheets import xml_books
from svc_daemon.extract.formats.open_xml.sheets.biff import SheetExtras, read_extras
from svc_daemon.extract.formats.open_xml.sheets.cells import SheetRow
from svc_daemon.extract.formats.open_xml.sheets.rows import SheetWriter

Cell = int | float | str | bool | time | date | datetime | timedelta
#: What calamine's own faults raise, which it doesn't export.
_PANIC = "PanicException"


def read(given: Given) -> Document:
    """Read a spreadsheet. Raises ExtractionFailed if it is damaged, encrypted or over the limits."""
    if given.data.lstrip(b"\xef\xbb\xbf\r\n\t ").startswith(b"<"):
        return xml_books.read(given)
    if given.data.startswith(b"PK"):
        check_archive(given.data, given.limits)
    try:
        return _read_book(given.data, given.limits.output_bytes)
    except python_calamine.PasswordError as error:
        raise documents.encrypted() from error
    except (python_calamine.CalamineError, OSError) as error:
        raise documents.unreadable("The spreadsheet is damaged: it can't be opened.") from error
    except BaseException as error:
        if type(error).__name__ == _PANIC:
            raise documents.unreadable("The spreadsheet can't be read; save it as XLSX.") from error
        raise


def _read_book(data: bytes, most_characters: int) -> Document:
    flow = FlowDocument()
    printed = set[tuple[str, str]]()
    with python_calamine.load_workbook(BytesIO(data)) as workbook:
        extras = read_extras(data) if data.startswith(MAGIC) else {}
        for number, facts in enumerate(workbook.sheets_metadata, 1):
            flow.page = number
            beside = extras.get(facts.name, SheetExtras())
            sheet = workbook.get_sheet_by_index(number - 1)
            rows = _filled_rows(sheet, beside)
            first = [*islice(rows, 1)]
            new = [each for each in beside.printed if each not in printed]
            if not (first or beside.comments or beside.texts or new):
                continue
            flow.headings.clear()
            flow.add_heading(1, facts.name)
            if facts.visible != python_calamine.SheetVisibleEnum.Visible:
                flow.note_part("hidden_sheets")
            merged = {(top + 1, left): bottom + 1 for (top, left), (bottom, _) in sheet.merged_cell_ranges or ()}
            SheetWriter(flow, sorted(beside.comments), merged, most_characters).add_rows(chain(first, rows))
            flow.add_all("paragraph", beside.texts)
            for kind, text in new:
                flow.add("paragraph", text)
                flow.note_part(kind)
            printed.update(new)
        return flow.finish(pages=len(workbook.sheet_names))


def _filled_rows(sheet: python_calamine.CalamineSheet, beside: SheetExtras) -> Iterator[SheetRow]:
    top, left = sheet.start or (0, 0)
    shows = beside.shows
    for number, row in enumerate(sheet.iter_rows(), top):
        cells = []
        for column, cell in enumerate(row, left):
            is_number = isinstance(cell, int | float) and not isinstance(cell, bool)
            show = shows.get((number, column)) if is_number else None
            if text := show(float(str(cell))) if show else _cell_text(cell):
                cells.append((column, text))
        if cells:
            yield SheetRow(number + 1, cells, is_hidden=False)


def _cell_text(cell: Cell) -> str:
    """Format a cell: numbers with at most fifteen digits, dates without midnight, times without needless seconds."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return general(cell)
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date().isoformat()
    if isinstance(cell, datetime | time) and not (cell.second or cell.microsecond):
        return cell.isoformat(timespec="minutes").replace("T", " ")
    if isinstance(cell, timedelta):
        minutes, seconds = divmod(int(cell.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return str(cell)
