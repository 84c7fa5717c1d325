"""Tables and lines for people. Everything from elsewhere is cleaned before it reaches a terminal."""

import re
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import Any

from svc_cli.console import Console, clean
from svc_daemon.wire.file_names import JOINERS

GAP = "  "
#: To how many columns the cells of a column are cut, and those of the last one; the second pair where the first is not
#: enough.
LEAST_COLUMNS = 16
LEAST_WIDTHS = ((LEAST_COLUMNS, 12), (8, 8))
_ID = re.compile(r"[a-z]{2,5}_\w{16,}", re.ASCII)
_STATE_COLOURS = {"ready": "green", "active": "green", "failed": "red", "conflict": "yellow"}


def table(console: Console, heads: Sequence[str], rows: Sequence[Sequence[Any]], *, fold: bool = False) -> str:
    """Columns under dim heads; on a terminal they are cut to fit, in a file nothing is cut.

    Ids are shortened first, to starts that still tell them apart; then the widest columns; the last column last. With
    `fold` the last one continues on the next line instead.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(width(line[column]) for line in [list(heads), *cells]) for column in range(len(heads))]
    room = console.width()
    if room is not None:
        _narrow(widths, cells, room - len(GAP) * (len(widths) - 1))
    shown = [cut(head, columns) for head, columns in zip(heads, widths, strict=True)]
    lines = [console.paint(_line(shown, widths), "dim")] if any(heads) else []
    for line in cells:
        first, *more = (textwrap.wrap(line[-1], widths[-1]) if fold else []) or [line[-1]]
        lines.append(_coloured(console, heads, [*line[:-1], first], widths))
        lines += [" " * (sum(widths[:-1]) + len(GAP) * (len(widths) - 1)) + each for each in more]
    return "\n".join(lines)


def _narrow(widths: list[int], cells: Sequence[Sequence[str]], room: int) -> None:
    """Take columns from the widths until they fit into the room, or can't be narrower."""
    *before, last = range(len(widths))
    filled = {column: [line[column] for line in cells if line[column]] for column in before}
    ids = [column for column in before if filled[column] and all(map(_ID.fullmatch, filled[column]))]
    for column in ids:
        widths[column] -= _spared(widths, room, widths[column] - _telling_width(filled[column]))
    others = [column for column in before if column not in ids]
    for least, least_last in LEAST_WIDTHS:
        while sum(widths) > room and max((widths[column] for column in others), default=0) > least:
            widths[max(others, key=widths.__getitem__)] -= 1
        widths[last] -= _spared(widths, room, widths[last] - least_last)


def _spared(widths: Sequence[int], room: int, most: int) -> int:
    """How many columns have to go, and may."""
    return max(0, min(sum(widths) - room, most))


def _telling_width(ids: Sequence[str]) -> int:
    """The least width, with its ellipsis, at which the starts of ids tell them apart."""
    distinct, longest = len(set(ids)), max(map(len, ids), default=0)
    return next(
        (size + 1 for size in range(LEAST_COLUMNS - 1, longest) if len({text[:size] for text in ids}) == distinct),
        longest,
    )


def fields(console: Console, pairs: Sequence[tuple[str, Any]]) -> str:
    """`name  value` lines; what is None or empty is left out."""
    shown = [(name, _cell(value)) for name, value in pairs if value not in (None, "", [], {})]
    longest = max((len(name) for name, _ in shown), default=0)
    return "\n".join(f"{console.paint(name.ljust(longest), 'dim')}{GAP}{value}" for name, value in shown)


def state_of(source: dict[str, Any]) -> str:
    """One word for where a source stands: `ready`, or its status, or the step after indexing."""
    if source.get("ready"):
        return "ready"
    return "syncing" if source.get("status") == "active" else str(source.get("status"))


def place_of(location: dict[str, Any]) -> str:
    """Where in its document a passage stands: page, or lines."""
    if location.get("page"):
        return f"page {location['page']}"
    first, last = location.get("line_start"), location.get("line_end")
    if not first:
        return ""
    return f"line {first}" if first == last or not last else f"lines {first}-{last}"


def size(size_bytes: int | None) -> str:
    """Bytes in a unit that reads at a glance."""
    if size_bytes is None:
        return ""
    amount = float(size_bytes)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1024 or unit == "GB":
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1024
    return ""


def duration(seconds: float) -> str:
    """Seconds as `12 s`, `3 min`, `2 h`, `5 d`."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def cut(text: str, columns: int) -> str:
    """Text shortened to so many columns, with an ellipsis."""
    if width(text) <= columns:
        return text
    kept, used = "", 0
    for character in text:
        used += width(character)
        if used > columns - 1:
            break
        kept += character
    return kept + "…"


def width(text: str) -> int:
    """Columns that a text takes on a terminal; wide characters take two, combining ones and joiners none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) or each in JOINERS else 2 if unicodedata.east_asian_width(each) in "WF" else 1
        for each in text
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(_cell(each) for each in value)
    return clean(str(value)).replace("\n", " ").replace("\t", " ")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return GAP.join(_pad(cell, columns) for cell, columns in zip(cells, widths, strict=True)).rstrip()


def _coloured(console: Console, heads: Sequence[str], cells: Sequence[str], widths: Sequence[int]) -> str:
    painted = []
    for head, cell, columns in zip(heads, cells, widths, strict=True):
        fitted = cut(cell, columns)
        colour = "red" if head == "failed" and cell != "0" else _STATE_COLOURS.get(fitted)
        padded = _pad(fitted, columns)
        painted.append(console.paint(padded, colour) if colour else padded)
    return GAP.join(painted).rstrip()


def _pad(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))
