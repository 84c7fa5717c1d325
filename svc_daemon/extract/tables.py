"""Tables whose cells span rows and columns: each row's texts, every one in its own column."""

from collections.abc import Iterable
from typing import NamedTuple

#: A longer cell is not written again in the rows that it spans.
REPEATED_CHARACTERS = 300
#: Tables have at most so many columns; cells beyond them follow without a column of their own.
COLUMNS = 1000


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
