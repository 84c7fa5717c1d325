"""XLS, XLSB and ODS: each sheet becomes a page, headed by its name and column names. Each row becomes a line."""

from datetime import date, datetime, time, timedelta
from io import BytesIO
from itertools import chain

import python_calamine

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.archives import check_archive
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.texts import column_heading

Cell = int | float | str | bool | time | date | datetime | timedelta


def read(given: Given) -> Document:
    """Read a spreadsheet. Raises ExtractionFailed if it is damaged, encrypted or over the limits."""
    if given.data.startswith(b"PK"):
        check_archive(given.data, given.limits)
    flow = FlowDocument()
    try:
        with python_calamine.load_workbook(BytesIO(given.data)) as workbook:
            for number, name in enumerate(workbook.sheet_names, 1):
                flow.page = number
                sheet = workbook.get_sheet_by_index(number - 1)
                rows = filter(any, ([_cell_text(cell) for cell in row] for row in sheet.iter_rows()))
                first = next(rows, None)
                if first is None:
                    continue
                flow.add_heading(1, name)
                header = column_heading([cell for cell in first if cell])
                if header:
                    flow.add_heading(2, header)
                for row in rows if header else chain([first], rows):
                    flow.add_row(row)
            return flow.finish(pages=len(workbook.sheet_names))
    except python_calamine.PasswordError as error:
        raise documents.encrypted() from error
    except python_calamine.CalamineError as error:
        raise documents.unreadable("The spreadsheet is damaged: it can't be opened.") from error


def _cell_text(cell: Cell) -> str:
    """Format a cell: whole numbers without a fraction, dates without midnight."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date().isoformat()
    return str(cell)
