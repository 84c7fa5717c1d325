"""Values of cells in OpenDocument tables, for the cells that hold no text beside their value."""

import re

from lxml import etree

from svc_daemon.extract.formats.odf.styles import Styles, attribute, full

_CELL_STYLE, _STYLE = full("table:style-name"), full("text:style-name")
_PARAGRAPH, _TYPE, _FORMULA = full("text:p"), full("office:value-type"), full("table:formula")

_DURATION = re.compile(r"P(?:(\d+)D)?T?(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,]\d+)?S)?")


def count(value: str | None) -> int:
    """Return a count as an attribute gives it, at least 1."""
    return max(1, int(value)) if value and value.isdecimal() and len(value) < 9 else 1


def plain_text(cell: etree._Element, styles: Styles) -> str | None:
    """Return the text of a cell; None if it holds more than paragraphs of plain text, or what isn't seen."""
    if styles.look("table-cell", cell.get(_CELL_STYLE) or "").reason:
        return None
    texts: list[str] = []
    for child in cell:
        if child.tag != _PARAGRAPH or len(child) or styles.look("paragraph", child.get(_STYLE) or "").reason:
            return None
        texts.append(child.text or "")
    return " ".join(" ".join(texts).split()) if texts else ""


def cell_value(cell: etree._Element) -> str:
    """Return a cell's value as a sheet shows it by default; else its formula, or an empty string."""
    if cell.get(_TYPE) is None and cell.get(_FORMULA) is None:
        return ""
    if any("".join(paragraph.itertext()).strip() for paragraph in cell.iterchildren(_PARAGRAPH)):
        # What the cell shows of its value isn't seen.
        return ""
    kind, value = attribute(cell, "office:value-type"), attribute(cell, "office:value")
    shown = {
        "string": attribute(cell, "office:string-value"),
        "date": attribute(cell, "office:date-value").removesuffix("T00:00:00").replace("T", " "),
        "time": _clock(attribute(cell, "office:time-value")),
        "boolean": attribute(cell, "office:boolean-value").upper(),
        "percentage": f"{_plain(value, 100)}%" if value else "",
        "currency": f"{_plain(value)} {attribute(cell, 'office:currency')}".strip(),
    }.get(kind, _plain(value))
    formula = attribute(cell, "table:formula")
    return shown or formula.partition(":")[2] or formula


def _clock(duration: str) -> str:
    parts = _DURATION.fullmatch(duration)
    days, hours, minutes, seconds = (int(part or 0) for part in parts.groups()) if parts else (0, 0, 0, 0)
    return f"{days * 24 + hours:02}:{minutes:02}:{seconds:02}" if parts else duration


def _plain(value: str, times: int = 1) -> str:
    """Return a number without the noise of its binary form."""
    try:
        number = float(value) * times
    except ValueError:
        return value
    return f"{number:.12g}" if abs(number) < 1e15 else value
