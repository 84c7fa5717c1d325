"""Renders tables and lines of text. Control characters in untrusted text are escaped."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any, Literal

from svc_cli.console import Console, clean, has_colour
from svc_cli.interrupts import shielded
from svc_daemon.wire.light.names import JOINERS

GAP = "  "
#: Minimum width of a column of ids.
LEAST_ID_COLUMNS = 16
#: Minimum widths of columns without ids. In each pair, the second number is for the last column of a table. The second
#: pair is used if the table is too wide with the first.
LEAST_WIDTHS = ((16, 12), (8, 8))
_ID = re.compile(r"[a-z]{2,5}_\w{16,}", re.ASCII)
_STATE_COLOURS = {"ready": "green", "active": "green", "failed": "red", "conflict": "yellow"}


def table(console: Console, heads: Sequence[str], rows: Sequence[Sequence[Any]], *, fold: bool = False) -> str:
    """Render a table with headings. Columns are truncated to fit the terminal, if there is one.

    With `fold`, the last column is wrapped instead.
    """
    lines = [list(heads), *([cell(value) for value in row] for row in rows)]
    columns = list(zip(*lines, strict=True))
    widths = [max(map(width, column)) for column in columns]
    room = console.width()
    if room is not None or has_colour(console.out, console.environ):
        return _draw(console, columns, widths if room is None else _fit(columns, widths, room), fold=fold)
    shown = lines if any(heads) else lines[1:]
    padded = (
        GAP.join(cell + " " * (most - width(cell)) for cell, most in zip(line, widths, strict=True)) for line in shown
    )
    return "\n".join(line.rstrip() for line in padded)


def _fit(columns: Sequence[Sequence[str]], natural: Sequence[int], room: int) -> list[int]:
    """Return column widths that fit into `room`, as far as the minimum widths allow.

    Columns of ids are shortened first, to prefixes that are still unique. The last column is shortened after the
    others.
    """
    widths, least_ids = list(natural), {}
    *before, last = range(len(columns))
    for number in before:
        ids = {cell for cell in columns[number][1:] if cell}
        if ids and all(map(_ID.fullmatch, ids)):
            sizes = range(LEAST_ID_COLUMNS, widths[number])
            # Room for the shortest prefixes that are still unique, and one column for the ellipsis.
            least_ids[number] = next(
                (size for size in sizes if len({each[: size - 1] for each in ids}) == len(ids)), widths[number]
            )
    others = [number for number in before if number not in least_ids]
    steps = [least_ids]
    for least, least_last in LEAST_WIDTHS:
        steps += [dict.fromkeys(others, least), {last: least_last}]
    room -= len(GAP) * len(before)
    for step in steps:
        while sum(widths) > room and (wide := [number for number in step if widths[number] > step[number]]):
            widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _draw(console: Console, columns: Sequence[Sequence[str]], widths: Sequence[int], *, fold: bool) -> str:
    """Draw a table with these column widths."""
    with shielded():
        # Importing rich takes 40 ms. Python may lose a KeyboardInterrupt during an import.
        from rich.console import Console as RichConsole
        from rich.table import Table
        from rich.text import Text

    grid = Table(
        box=None,
        pad_edge=False,
        padding=(0, len(GAP), 0, 0),
        show_header=any(column[0] for column in columns),
        header_style="dim",
    )
    for (head, *_), most in zip(columns, widths, strict=True):
        is_folded = fold and len(grid.columns) == len(columns) - 1
        grid.add_column(Text(head), width=most, no_wrap=not is_folded, overflow="fold" if is_folded else "ellipsis")
    for line in list(zip(*columns, strict=True))[1:]:
        styles = [
            "red" if column[0] == "failed" and cell != "0" else _STATE_COLOURS.get(cell, "")
            for column, cell in zip(columns, line, strict=True)
        ]
        grid.add_row(*map(Text, line, styles))
    colours: Literal["standard"] | None = "standard" if has_colour(console.out, console.environ) else None
    # On a dumb terminal, Rich ignores a width without a height.
    rich = RichConsole(
        file=StringIO(),
        width=sum(widths) + len(GAP) * len(widths),
        height=25,
        force_terminal=True,
        color_system=colours,
        no_color=False,
    )
    with rich.capture() as drawn:
        rich.print(grid)
    return "\n".join(line.rstrip() for line in drawn.get().rstrip("\n").split("\n"))


def fields(console: Console, pairs: Sequence[tuple[str, Any]]) -> str:
    """Render a line `name  value` for each pair whose value is not None or empty."""
    shown = [(name, cell(value)) for name, value in pairs if value not in (None, "", [], {})]
    longest = max((len(name) for name, _ in shown), default=0)
    return "\n".join(f"{console.paint(name.ljust(longest), 'dim')}{GAP}{value}" for name, value in shown)


def state_of(source: Mapping[str, Any]) -> str:
    """Return the state of a source in one word, such as `ready`."""
    if source.get("ready"):
        return "ready"
    return "syncing" if source.get("status") == "active" else str(source.get("status") or "unknown")


def certainty(confidence: float) -> str:
    """Format how certain recognised text is, rounded down: no scan is 100 % certain."""
    return f"{min(int(confidence * 100 + 1e-9), 99)}%"


def place_of(location: Mapping[str, Any]) -> str:
    """Describe where a passage is in its document, such as `page 3` or `lines 4-7`."""
    if location.get("page"):
        scanned = f" (scan, {certainty(location.get('confidence') or 0)} certain)" if location.get("ocr") else ""
        return f"page {location['page']}{scanned}"
    first, last = location.get("line_start"), location.get("line_end")
    if not first:
        return ""
    return f"line {first}" if first == last or not last else f"lines {first}-{last}"


def size(size_bytes: int | None) -> str:
    """Format a number of bytes with a suitable unit."""
    if size_bytes is None:
        return ""
    amount = float(size_bytes)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1024 or unit == "GB":
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1024
    return ""


def counted(number: int, noun: str) -> str:
    """Return the number with its noun, such as `1 file` or `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def duration(seconds: float) -> str:
    """Format seconds as `12 s`, `3 min`, `2 h` or `5 d`."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def scan_progress(progress: Mapping[str, Any]) -> str:
    """Describe how far a scan is, such as `12 of 40 pages recognised, 3 min left`."""
    left = progress.get("seconds_left")
    rest = "" if left is None else f", {duration(left)} left"
    return f"{progress['pages_done']} of {counted(progress['pages_total'], 'page')} recognised{rest}"


def cut(text: str, columns: int) -> str:
    """Truncate text to this number of columns, with an ellipsis if it is too long."""
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
    """Return the width of a text on a terminal, in columns."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) or each in JOINERS else 2 if unicodedata.east_asian_width(each) in "WF" else 1
        for each in text
    )


def cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(cell(each) for each in value)
    return clean(str(value)).replace("\n", " ").replace("\t", " ")
