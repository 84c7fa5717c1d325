"""Blocks of a page, and the rows of its tables.

Some tables only place the parts of a page; of these, the blocks follow one after another.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from svc_daemon.extract.builders import FlowDocument, one_line
from svc_daemon.extract.tables import COLUMNS, TableCell, TableLayout

#: Rows that span more are endless, as in HTML's own rules.
_MOST_ROWS = 65534
#: A cell of several blocks and more characters is a part of the page, unless the table has headings.
_CELL_CHARACTERS = 600


#: A cell that is alone in its row and has more characters is prose.
_PROSE_CHARACTERS = 200


class HtmlBlock(NamedTuple):
    """A block of a page."""

    #: `heading`, `paragraph`, `item`, `row` or `code`.
    kind: str
    text: str
    #: Level of a heading, from 1.
    level: int = 0
    #: The texts of a row, by column, and its table.
    cells: Sequence[str] = ()
    table: object = None
    #: Whether the block belongs to a menu of links.
    in_menu: bool = False
    #: How many links it has, if it has hardly any other text.
    links: int = 0

    def write(self, flow: FlowDocument) -> None:
        """Add the block to a document."""
        if self.kind == "heading":
            flow.add_heading(self.level, self.text)
        elif self.kind == "row":
            flow.add_row(self.cells, self.table)
        else:
            flow.add(self.kind, self.text)


class _Cell(NamedTuple):
    blocks: list[HtmlBlock]
    is_header: bool
    columns: int
    rows: int


class OpenTable:
    """A table that has begun, with its current row."""

    def __init__(self) -> None:
        self._layout = TableLayout()
        self._has_headers = False
        self._header: list[str] | None = None
        self._cells: list[_Cell] = []

    def begin_group(self) -> None:
        """Begin a group of rows, such as the table's head. Cells never span rows of the next group."""
        self._layout = TableLayout()

    def add_cell(self, blocks: list[HtmlBlock], tag: str, columns: str | None, rows: str | None) -> None:
        """Add a cell to the current row."""
        self._has_headers |= tag == "th"
        height = _number(rows, _MOST_ROWS)
        self._cells.append(_Cell(blocks, tag == "th", max(1, _number(columns, COLUMNS)), height or _MOST_ROWS))

    def end_row(self) -> Iterator[HtmlBlock]:
        """Yield the blocks of the current row: the row, or what its cells hold."""
        cells, self._cells = self._cells, []
        texts = self._layout.lay_out(
            TableCell(" ".join(one_line(block.text) for block in cell.blocks), cell.columns, cell.rows)
            for cell in cells
        )
        if self.is_of_parts(cells, texts):
            for cell in cells:
                yield from cell.blocks
        elif all(cell.is_header for cell in cells) and texts == self._header:
            # A header row that repeats is named once.
            return
        elif any(texts):
            if self._header is None and all(cell.is_header for cell in cells):
                self._header = texts
            inner = [block for cell in cells for block in cell.blocks]
            in_menu = any(block.in_menu for block in inner)
            links = sum(block.links for block in inner) if all(block.links for block in inner) else 0
            text = " ".join(filter(None, texts))
            yield HtmlBlock("row", text, cells=texts, table=self, in_menu=in_menu, links=links)

    def is_of_parts(self, cells: Sequence[_Cell], texts: Sequence[str]) -> bool:
        """Whether the cells are parts of the page, such as columns, rather than values."""
        if len(cells) == 1 and not self._has_headers and sum(map(bool, texts)) == 1 and texts[0]:
            return True
        filled = [cell for cell in cells if cell.blocks]
        several = [cell for cell in cells if len(cell.blocks) > 1]
        if any(block.kind == "heading" for cell in cells if not cell.is_header for block in cell.blocks):
            return True
        if any("\n" in block.text for cell in cells for block in cell.blocks if block.kind == "code"):
            return True
        if self._has_headers:
            return False
        if len(filled) == 1 and (several or len(filled[0].blocks[0].text) > _PROSE_CHARACTERS):
            return True
        return any(
            any(block.kind == "row" for block in cell.blocks)
            or sum(len(block.text) for block in cell.blocks) > _CELL_CHARACTERS
            for cell in several
        )


def _number(digits: str | None, most: int) -> int:
    """Return the number of rows or columns that a cell spans; 1 if it is not a number."""
    digits = (digits or "").strip()
    return min(int(digits[:6]), most) if digits.isascii() and digits.isdigit() else 1
