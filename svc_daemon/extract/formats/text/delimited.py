"""CSV and TSV: rows under a heading of the column names, with the line numbers of the file."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract.builders import LineDocument
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.text.texts import decode
from svc_daemon.extract.tables import NumberedRow, column_heading, with_headings

#: The separators of columns. Of two that fit equally well, the first is used: commas may be in numbers.
_DELIMITERS = "\t;|,"
#: The line that names the separator to Excel, and which it doesn't show.
_SEPARATOR_LINE = re.compile(r"\"?sep=(.)\"?\s*", re.IGNORECASE)
#: What a line without any text may have.
_NOTHING = f'{_DELIMITERS}" \r'
#: With as many lines without any text, they part no tables.
_MOST_GAPS = 1000
#: Number of lines from which the separator is found.
_TRIED_LINES = 40
#: A record with more lines has a quote that is never closed.
_RECORD_LINES = 1000
#: Rows that may have several lines are put into blocks of about this size, because chunks end at the ends of blocks.
_BLOCK_CHARACTERS = 200


class _Record(NamedTuple):
    first: int
    last: int
    cells: Sequence[str]

    @property
    def width(self) -> int:
        """Return the number of cells that aren't blank; 0 for a comment."""
        is_comment = bool(self.cells) and self.cells[0].lstrip().startswith("#")
        return 0 if is_comment else sum(map(bool, map(str.strip, self.cells)))


def read(given: Given) -> Document:
    """Read the rows under a heading of the column names.

    Every chunk repeats the heading, because a row means little without it.
    """
    text, warnings = decode(given.data, given.charset)
    document = LineDocument(text)
    separator = _SEPARATOR_LINE.fullmatch(document.lines[0])
    start = 1 if separator else 0
    delimiter = separator[1] if separator else _find_delimiter(document.lines)
    tables = _find_tables(document.lines, delimiter, start)
    if tables and tables[0][0].first <= start + _TRIED_LINES:
        document.add_paragraphs("paragraph", start, tables[0][0].first - 1)
        start = tables[0][0].first
    names: _Record | None = None
    for begun, heading in (*tables, (None, "")):
        end = begun.first if begun else len(document.lines)
        for first, last in _find_blocks(document, delimiter, names.last + 1 if names else start, end, names):
            document.add("row", first, last)
        if begun:
            document.add_heading(1, heading, begun.first, begun.last)
        names = begun
    return document.finish(warnings=warnings)


def _find_tables(lines: Sequence[str], delimiter: str, start: int) -> list[tuple[_Record, str]]:
    """Return the rows of names, each with its heading.

    Titles and comments may stand above the first table. They have one cell, and its rows have more.
    """
    head = list(islice(_read_records(lines, delimiter, start), _TRIED_LINES))
    is_wide = any(record.width > 1 for record in head)
    first = next((record for record in head if record.width > is_wide), _Record(start, start, []))
    # A single record of several lines is hardly a row of names.
    if first.first != first.last and len(head) == 1:
        return []
    records = _read_records(lines, delimiter, first.first)
    blank = sum(not line.strip(_NOTHING) for line in lines)
    # The last line ends with a line end. More are no gaps between tables.
    rows = _numbered(records if 1 < blank < _MOST_GAPS else islice(records, _TRIED_LINES))
    return [(row.given, heading) for row, heading in with_headings(rows) if heading and column_heading(row.texts)]


def _numbered(records: Iterable[_Record]) -> Iterator[NumberedRow[_Record]]:
    """Number the records, and leave out a number where blank lines are."""
    number, end = 0, -1
    for record in records:
        number += 1 if record.first <= end + 1 or not number else 2
        end = record.last
        yield NumberedRow(number, [*map(str.strip, record.cells)] if record.width else [], record)


def _find_delimiter(lines: Sequence[str]) -> str:
    """Return the separator by which most of the first records have equally many cells."""
    tried = list(islice(filter(str.strip, lines), _TRIED_LINES))
    head = "\n".join(tried)
    present = [delimiter for delimiter in _DELIMITERS if delimiter in head]
    if len(present) < 2:
        return present[0] if present else ","
    best, chosen = (0, 0), ","
    for delimiter in present:
        widths = [len(record.cells) for record in _read_records(tried, delimiter, 0)]
        counts = Counter(width for width in widths if width > 1)
        columns, times = max(counts.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
        if (times, columns) > best:
            best, chosen = (times, columns), delimiter
    return chosen


def _read_records(lines: Sequence[str], delimiter: str, start: int) -> Iterator[_Record]:
    """Yield the records that are not blank, with the indexes of their lines."""
    reader = csv.reader((f"{line}\n" for line in islice(lines, start, None)), delimiter=delimiter)
    first = start
    # What the csv module can't read is read line by line.
    with suppress(csv.Error):
        for cells in reader:
            last = start + reader.line_num - 1
            if last - first >= _RECORD_LINES:
                break
            if any(map(str.strip, cells)):
                yield _Record(first, last, cells)
            first = last + 1
    for number in range(first, len(lines)):
        if lines[number].strip():
            yield _Record(number, number, lines[number].split(delimiter))


def _find_blocks(
    document: LineDocument, delimiter: str, start: int, end: int, names: _Record | None
) -> Iterator[tuple[int, int]]:
    """Yield the first and last lines of blocks of rows before a line, which leave out repeated rows of names."""
    lines, heading = document.lines[:end], document.lines[names.first] if names else None
    if '"' not in document.text or not any(line.count('"') % 2 for line in lines):
        # All quotes are closed, so each line is a row.
        repeats = []
        if heading and document.text.count(heading) > 1:
            repeats = [number for number in range(start, len(lines)) if lines[number] == heading]
        for repeated in (*repeats, len(lines)):
            if start < repeated:
                yield start, repeated - 1
            start = repeated + 1
        return
    begin: int | None = None
    last, size = start, 0
    for record in _read_records(lines, delimiter, start):
        is_repeated = names is not None and record.cells == names.cells
        if begin is not None and (is_repeated or size > _BLOCK_CHARACTERS):
            yield begin, last
            begin, size = None, 0
        if not is_repeated:
            begin = record.first if begin is None else begin
            last, size = record.last, size + sum(map(len, record.cells))
    if begin is not None:
        yield begin, last
