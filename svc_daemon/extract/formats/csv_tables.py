"""CSV and TSV: the original lines as rows, under a heading made of the column names.

The lines stay as they are, so that places are right; the columns' names are the heading of every chunk of rows,
because a row far down says nothing without them.
"""

import csv
import re

from svc_daemon.core.documents import Document
from svc_daemon.extract.builders import HEADING_CHARACTERS, LineDocument
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.texts import decode

_DELIMITERS = ",;\t|"
_NUMBER = re.compile(r"[-+]?[\d.,:/ %]+")


def read(given: Given) -> Document:
    text, warnings = decode(given.data)
    document = LineDocument(text)
    first = _first_line(document)
    header = column_heading(_cells(document.lines[first]))
    if header:
        document.add_heading(1, header, first, first)
        first += 1
    if first < len(document.lines):
        document.add("row", first, len(document.lines) - 1)
    return document.finish(warnings=warnings)


def column_heading(cells: list[str]) -> str | None:
    """The heading that a table's first row makes; None where it holds data rather than names."""
    names = [" ".join(cell.split()) for cell in cells]
    is_header = len(names) > 1 and all(names) and not any(_NUMBER.fullmatch(name) for name in names)
    heading = ", ".join(names)
    return heading if is_header and len(heading) <= HEADING_CHARACTERS else None


def _first_line(document: LineDocument) -> int:
    return next((number for number, line in enumerate(document.lines) if line.strip()), 0)


def _cells(line: str) -> list[str]:
    """Cells of one line, by the delimiter that it has most of."""
    delimiter = max(_DELIMITERS, key=line.count)
    # A quote that goes on beyond the line is no header; csv refuses fields over 128 KB.
    if line.count('"') % 2 or len(line) > csv.field_size_limit():
        return []
    return next(csv.reader([line], delimiter=delimiter), [])
