"""Formats of a workbook's cells: how numbers and texts are shown, and which styles write white on white."""

from typing import Any

from svc_daemon.extract.formats.open_xml.number_codes import BUILT_IN
from svc_daemon.extract.formats.open_xml.number_formats import Show, compile_format, text_format
from svc_daemon.extract.formats.open_xml.numbering import number_of
from svc_daemon.extract.formats.open_xml.packages import qname
from svc_daemon.extract.formats.open_xml.sheets.cells import CellFormats

#: Colours by their number, and the background's by its number in the theme, that are white in nearly every file.
_WHITE_INDEXES = frozenset({"1", "9"})


def cell_formats(root: Any, *, is_1904: bool) -> CellFormats:
    """Return the formats of the cells' styles, in their order."""
    codes = {**BUILT_IN}
    for each in root.iter(qname("s:numFmt")):
        codes[number_of(each.get("numFmtId"), -1)] = each.get("formatCode") or ""
    white_fonts = [_is_white(font.find(qname("s:color"))) for font in _children(root, "fonts")]
    bare_fills = {number for number, fill in enumerate(_children(root, "fills")) if _is_bare(fill)}
    numbers: list[Show | None] = []
    texts, white = {}, []
    shows = {
        number: compile_format(code, is_1904=is_1904)
        for number, code in codes.items()
        if code.strip() and code.lower() not in {"general", "@"}
    }
    for style, each in enumerate(_children(root, "cellXfs")):
        number = number_of(each.get("numFmtId"), 0)
        numbers.append(shows.get(number))
        show_text = text_format(codes[number]) if number in shows else None
        if show_text:
            texts[style] = show_text
        font, fill = (number_of(each.get(name), -1) for name in ("fontId", "fillId"))
        if 0 <= font < len(white_fonts) and white_fonts[font] and (fill < 0 or fill in bare_fills):
            white.append(style)
    return CellFormats(numbers, texts, frozenset(white))


def _children(root: Any, name: str) -> list[Any]:
    found = root.find(qname(f"s:{name}"))
    return [] if found is None else [*found]


def _is_white(colour: Any) -> bool:
    if colour is None or colour.get("tint"):
        return False
    return (
        (colour.get("rgb") or "").upper().endswith("FFFFFF")
        or colour.get("theme") == "0"
        or colour.get("indexed") in _WHITE_INDEXES
    )


def _is_bare(fill: Any) -> bool:
    """Whether a fill leaves the sheet white."""
    pattern = fill.find(qname("s:patternFill"))
    if pattern is None:
        return False
    kind = pattern.get("patternType") or "none"
    return kind == "none" or (kind == "solid" and _is_white(pattern.find(qname("s:fgColor"))))
