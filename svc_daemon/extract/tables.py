"""Tables: the names of their columns, and the texts of rows whose cells span others, every one in its own column."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from svc_daemon.core.answers.lines import are_heads, is_form

#: Longer headings become paragraphs, because every chunk repeats its headings.
HEADING_CHARACTERS = 200
#: So many rows show whether the first one has the names of the columns.
TRIED_ROWS = 50

#: A longer cell is not written again in the rows that it spans.
REPEATED_CHARACTERS = 300
#: Tables have at most so many columns; cells beyond them follow without a column of their own.
COLUMNS = 1000

_NUMBER = re.compile(r"[-+]?[\d.,:/ %]+")


def column_heading(cells: Sequence[str]) -> str | None:
    """Join the first row's cells to a heading. Returns None if the cells are data, not names.

    The first column may have no name, and neither may columns after the last name.
    """
    names = [" ".join(cell.split()) for cell in cells]
    while names and not names[-1]:
        names.pop()
    is_header = len(names) > 1 and all(names[1:]) and not any(_NUMBER.fullmatch(name) for name in names)
    heading = ", ".join(names)
    return heading if is_header and len(heading) <= HEADING_CHARACTERS else None


def heading_of(rows: Sequence[Sequence[str]]) -> str:
    """Return the names of a table's columns, as a heading, if its first row has them; empty otherwise."""
    heading = column_heading(rows[0]) if len(rows) > 1 and not is_form(rows) else None
    return heading if heading and are_heads(rows, is_aligned=False) else ""


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

    def lay_out(self, cells: Iterable[TableCell]) -> list[str]:
        """Return the texts of the next row, from the first column to the last."""
        texts: list[str] = []
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
