"""Tables: the names of their columns, and the texts of rows whose cells span others, every one in its own column."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import Generic, NamedTuple, TypeVar

from svc_daemon.core.answers.lines import are_heads, are_years, is_form, stacked_names

#: Longer headings become paragraphs, because every chunk repeats its headings.
HEADING_CHARACTERS = 200
#: So many rows show whether the first one has the names of the columns.
TRIED_ROWS = 50
#: So many rows of titles may stand above the names of the columns of a sheet.
_TITLES = 10

#: A longer cell is not written again in the rows that it spans.
REPEATED_CHARACTERS = 300
#: Tables have at most so many columns; cells beyond them follow without a column of their own.
COLUMNS = 1000

#: A quarter such as Q1, or a year, in the name of a column.
_SHORT = re.compile(r"\b(?:[^\W\d]{1,2}\d{1,2}|(?:19|20)\d\d)\b")
_NUMBER = re.compile(r"[-+]?[\d.,:/ %]+")


def column_heading(cells: Sequence[str]) -> str | None:
    """Join the first row's cells to a heading. Returns None if the cells are data, not names.

    The first column may have no name, and neither may columns after the last name. Names may be years.
    """
    names = [" ".join(cell.split()) for cell in cells]
    while names and not names[-1]:
        names.pop()
    is_header = len(names) > 1 and all(names[1:]) and not any(_NUMBER.fullmatch(name) for name in names)
    is_header = is_header or are_years(names)
    heading = ", ".join(names)
    return heading if is_header and len(heading) <= HEADING_CHARACTERS else None


def _stacked(rows: Sequence[Sequence[str]]) -> str:
    """Return the names of the columns if two rows have them, as a heading."""
    heading = ", ".join(" ".join(name.split()) for name in stacked_names(rows))
    return heading if len(heading) <= HEADING_CHARACTERS else ""


def heading_of(rows: Sequence[Sequence[str]]) -> str:
    """Return the names of a table's columns, as a heading, if its first row has them; empty otherwise.

    Of two columns, the second has figures below its name. Otherwise, the table may only place texts beside others.
    """
    if stacked := _stacked(rows):
        return stacked
    heading = column_heading(rows[0]) if len(rows) > 1 and not is_form(rows) else None
    figures = [any(map(str.isdigit, "".join(row[1:]))) for row in rows[1:]]
    is_plain = len(rows[0]) == 2 and 2 * sum(figures) < len(figures)
    return heading if heading and not is_plain and are_heads(rows, is_aligned=False) else ""


T = TypeVar("T")


class NumberedRow(NamedTuple, Generic[T]):
    """A row of a sheet that has text."""

    number: int
    texts: Sequence[str]
    #: What the row was made of.
    given: T


def with_headings(rows: Iterable[NumberedRow[T]]) -> Iterator[tuple[NumberedRow[T], str]]:
    """Yield each row of a sheet, with the names of the columns as a heading if it has those of a table.

    Another table begins after an empty row. Titles may stand above the first one.
    """
    rows = iter(rows)
    ahead = deque(islice(rows, TRIED_ROWS))
    before, titles, is_first, is_top = 0, _TITLES, True, True
    while ahead:
        row = ahead[0]
        titles = _TITLES if row.number > before + 1 else titles
        heading = ""
        if titles:
            heading = _sheet_heading(tables_in(ahead), is_first=is_first)
            is_top = is_top and not heading and not any(map(str.isdigit, "".join(row.texts)))
            titles = titles - 1 if not heading and (is_top or _width(row.texts) < 2) else 0
        before, is_first = row.number, False
        yield row, heading
        ahead.popleft()
        ahead.extend(islice(rows, 1))


def tables_in(rows: Iterable[NumberedRow[T]]) -> Iterator[list[Sequence[str]]]:
    """Yield the texts of the rows that no empty row parts."""
    for _, table in groupby(enumerate(rows), key=lambda pair: pair[1].number - pair[0]):
        yield [row.texts for _, row in table]


def _width(texts: Iterable[str]) -> int:
    """Return the number of cells that are not blank."""
    return sum(map(bool, texts))


def _sheet_heading(tables: Iterator[Sequence[Sequence[str]]], *, is_first: bool = False) -> str:
    """Return the names of the columns, as a heading, if the first row of the first table has them; empty otherwise.

    If it isn't the sheet's first row, it has no figures, and there are some below it. What is narrower than the next
    table, and has no column of figures, is none, but stands above it, such as a name and a value in each row.
    """
    rows = next(tables)
    if stacked := _stacked(rows):
        return stacked
    names = [*rows[0]]
    while names and not names[-1]:
        names.pop()
    is_header = column_heading(names) or column_heading([name for name in names if name])
    heading = ", ".join(names) if is_header else ""
    if len(heading) > HEADING_CHARACTERS:
        return ""
    if is_first:
        wide = max((_width(each[0]) for each in tables if _sheet_heading(iter([each]))), default=0)
        is_above = max(map(_width, rows)) < wide
        has_digit = {any(map(str.isdigit, "".join(row[1:]))) for row in rows[1:]}
        is_list = len(rows) > 2 and has_digit == {True}
        return "" if (is_above and not is_list) or (is_form(rows) and len(has_digit) > 1) else heading
    has_figures = any(map(str.isdigit, "".join(chain.from_iterable(rows[1:]))))
    is_named = are_years(rows[0]) or not any(map(str.isdigit, _SHORT.sub("", heading)))
    return heading if has_figures and is_named and heading_of(rows) else ""


class TableCell(NamedTuple):
    """A cell as it is written in its first row."""

    text: str
    #: Number of columns and rows that it spans, at least 1.
    columns: int = 1
    rows: int = 1


class TableLayout:
    """Lays out the rows of a table, one after another.

    A cell that spans rows counts in each of them. A cell that spans columns is written once, and the columns after it
    keep their places.
    """

    def __init__(self) -> None:
        #: By column: the text of a cell from a row above, and in how many more rows it counts.
        self._spanning: dict[int, tuple[str, int]] = {}
        #: Number of rows so far.
        self.rows = 0

    def lay_out(self, cells: Iterable[TableCell]) -> list[str]:
        """Return the texts of the next row, from the first column to the last."""
        texts: list[str] = []
        self.rows += 1
        for cell in cells:
            self._repeat(texts)
            width = max(1, min(cell.columns, COLUMNS - len(texts)))
            if cell.rows > 1:
                repeated = cell.text if len(cell.text) <= REPEATED_CHARACTERS else ""
                for column in range(len(texts), len(texts) + width):
                    self._spanning[column] = (repeated if column == len(texts) else "", cell.rows - 1)
            texts += [cell.text, *[""] * (width - 1)]
        self._repeat(texts)
        return texts

    def _repeat(self, texts: list[str]) -> None:
        """Add the cells from rows above that lie in the next columns."""
        while (above := self._spanning.pop(len(texts), None)) is not None:
            text, rows = above
            if rows > 1:
                self._spanning[len(texts)] = (text, rows - 1)
            texts.append(text)
