"""Tables and lines for people. Everything from elsewhere is cleaned before it reaches a terminal."""

import unicodedata
from collections.abc import Sequence
from typing import Any

from svc_cli.console import Console, clean

GAP = "  "
_STATE_COLOURS = {"ready": "green", "active": "green", "failed": "red", "conflict": "yellow"}


def table(console: Console, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Columns under dim heads; on a terminal the last column is cut to fit, in a file nothing is cut."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(width(line[column]) for line in [list(heads), *cells]) for column in range(len(heads))]
    room = console.width()
    if room is not None:
        widths[-1] = min(widths[-1], max(12, room - sum(widths[:-1]) - len(GAP) * (len(widths) - 1)))
    lines = [console.paint(_line(heads, widths), "dim")] if any(heads) else []
    return "\n".join(lines + [_coloured(console, line, widths) for line in cells])


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
    """Columns that a text takes on a terminal; wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
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


def _coloured(console: Console, cells: Sequence[str], widths: Sequence[int]) -> str:
    fitted = [cut(cell, columns) for cell, columns in zip(cells, widths, strict=True)]
    padded = [_pad(cell, columns) for cell, columns in zip(fitted, widths, strict=True)]
    painted = [
        console.paint(text, _STATE_COLOURS[cell]) if cell in _STATE_COLOURS else text
        for cell, text in zip(fitted, padded, strict=True)
    ]
    return GAP.join(painted).rstrip()


def _pad(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))
