"""Writes the rows of a sheet into a document, each text in its column, with what merged cells and comments say."""

from collections.abc import Iterable, Mapping
from itertools import chain, islice

from svc_daemon.extract import documents
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats.open_xml.sheets.cells import SheetRow
from svc_daemon.extract.formats.open_xml.sheets.notes import Comment
from svc_daemon.extract.tables import REPEATED_CHARACTERS, NumberedRow, with_headings

#: A longer run of empty cells within a row is written as one.
_GAP = 50
#: The first column of a sheet is that of its first rows.
_FIRST_ROWS = 100


class SheetWriter:
    """Writes the rows of a sheet, with what merged cells and comments say."""

    def __init__(
        self,
        flow: FlowDocument,
        comments: Iterable[Comment],
        merged: Mapping[tuple[int, int], int],
        most_characters: int,
    ) -> None:
        self._flow, self._comments = flow, [*comments][::-1]
        self._most_characters = most_characters
        #: By their first cell (row and column): the last rows of merged cells that span several.
        self._merged = merged
        #: The first column, and those that the sheet hides.
        self._base = 0
        self.hidden_columns: list[range] = []
        #: By column: the texts of merged cells that reach into the next rows, and their last rows.
        self._spanning: dict[int, tuple[str, int]] = {}

    def add_rows(self, rows: Iterable[SheetRow]) -> None:
        rows = iter(rows)
        first_rows = [*islice(rows, _FIRST_ROWS)]
        self._base = min((row.cells[0][0] for row in first_rows), default=0)
        hidden_rows, used = 0, set[int]()
        numbered = (NumberedRow(row.number, self.texts_of(row), row) for row in chain(first_rows, rows))
        for (_, texts, row), header in with_headings(numbered):
            if self._flow.size > self._most_characters:
                # Many cells may refer to the same long text.
                raise documents.over_limit(
                    f"The sheets hold more than {self._most_characters // 1024**2} million characters."
                )
            self._add_comments(row.number)
            if header:
                self._flow.add_heading(2, header)
            else:
                # The texts are on one line already, and the last isn't blank.
                self._flow.add("row", " | ".join(texts))
            hidden_rows += row.is_hidden
            if self.hidden_columns:
                used.update(column for column, _ in row.cells)
        self._add_comments(None)
        hidden_columns = sum(any(column in each for each in self.hidden_columns) for column in used)
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
