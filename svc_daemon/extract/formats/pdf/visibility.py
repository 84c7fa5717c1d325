"""Text on a PDF's page that nobody sees: never painted, white on white, of no size, off the page, in a hidden layer."""

import ctypes
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pypdfium2 import raw

#: Pages with more drawn objects are taken as they are.
_OBJECTS = 20_000
#: Groups of objects within groups are looked into to this depth.
_DEPTH = 5
_TEXT, _PATH, _IMAGE, _SHADING, _FORM = (
    raw.FPDF_PAGEOBJ_TEXT,
    raw.FPDF_PAGEOBJ_PATH,
    raw.FPDF_PAGEOBJ_IMAGE,
    raw.FPDF_PAGEOBJ_SHADING,
    raw.FPDF_PAGEOBJ_FORM,
)
#: Colours from this value on are as good as white.
_WHITE = 250
#: Longest side of the picture of a page that shows whether a layer is painted.
_PIXELS = 1000
#: Text below this size, in points, can't be read.
_TINY = 0.5

_OBJECT_STREAM = re.compile(rb"/ObjStm\b[^\0]{0,400}?stream\r?\n")
_PACKED_BYTES, _UNPACKED_BYTES = 4 * 1024**2, 16 * 1024**2

Box = tuple[float, float, float, float]


@dataclass
class _Page:
    """What was found on a page so far."""

    box: Box
    has_layers: bool
    unpainted: list[Any] = field(default_factory=list)
    white: list[tuple[Any, Box]] = field(default_factory=list)
    layered: list[tuple[Any, Box]] = field(default_factory=list)
    hidden: list[tuple[Any, str]] = field(default_factory=list)
    #: What may be behind white text.
    backgrounds: list[Any] = field(default_factory=list)
    has_image: bool = False


def may_have_layers(data: bytes) -> bool:
    """Whether a PDF declares layers, as far as its bytes show."""
    if b"/OCG" in data or b"/OCProperties" in data:
        return True
    for stream in _OBJECT_STREAM.finditer(data):
        try:
            unpacked = zlib.decompressobj().decompress(
                data[stream.end() : stream.end() + _PACKED_BYTES], _UNPACKED_BYTES
            )
        except zlib.error:
            # Encrypted, or packed another way.
            return True
        if b"/OCG" in unpacked:
            return True
    return False


def hidden_objects(page: Any, *, has_layers: bool) -> list[tuple[Any, str]]:
    """Return the objects with text that isn't seen, and why."""
    count = raw.FPDFPage_CountObjects(page)
    if count > _OBJECTS:
        return []
    found = _Page(page.get_bbox(), has_layers)
    for number in range(count):
        _look_at(found, raw.FPDFPage_GetObject(page, number), depth=0)
    if not found.has_image:
        found.hidden += [(each, "never painted") for each in found.unpainted]
    backgrounds = [_bounds(each) for each in found.backgrounds if not _is_white(each)] if found.white else []
    white = [
        (each, box)
        for each, box in found.white
        if not any(_overlap(box, background) for background in backgrounds if background)
    ]
    if white or found.layered:
        found.hidden += _blank(page, found.box, {"white text": white, "hidden layer": found.layered})
    return found.hidden


def _look_at(found: _Page, each: Any, *, depth: int) -> None:
    kind = raw.FPDFPageObj_GetType(each)
    if kind == _TEXT:
        _look_at_text(found, each, is_nested=depth > 0)
    elif kind == _IMAGE:
        found.has_image = True
        found.backgrounds.append(each)
    elif kind == _FORM:
        found.backgrounds.append(each)
        if depth == 0 and found.has_layers and _is_layered(each) and (box := _bounds(each)):
            found.layered.append((each, box))
        elif depth < _DEPTH:
            for number in range(min(raw.FPDFFormObj_CountObjects(each), _OBJECTS)):
                _look_at(found, raw.FPDFFormObj_GetObject(each, number), depth=depth + 1)
    elif kind in (_PATH, _SHADING):
        found.backgrounds.append(each)


def _look_at_text(found: _Page, each: Any, *, is_nested: bool) -> None:
    if raw.FPDFTextObj_GetTextRenderMode(each) == raw.FPDF_TEXTRENDERMODE_INVISIBLE:
        found.unpainted.append(each)
        return
    # Within a group, places are the group's own.
    box = None if is_nested else _bounds(each)
    if box is None:
        return
    left, bottom, right, top = found.box
    if box[2] < left or box[0] > right or box[3] < bottom or box[1] > top:
        found.hidden.append((each, "off the page"))
    elif box[3] - box[1] < _TINY and _size(each) < _TINY:
        found.hidden.append((each, "text of size 0"))
        return
    color = _color(each)
    if color is not None and color[3] == 0:
        found.unpainted.append(each)
    elif color is not None and color[0] >= _WHITE and min(color[:3]) >= _WHITE:
        found.white.append((each, box))
    elif found.has_layers and _is_layered(each):
        found.layered.append((each, box))


#: Numbers that PDFium writes its answers to, made once.
_SIDES = [ctypes.c_float() for _ in range(4)]
_SIDE_REFERENCES = [ctypes.byref(side) for side in _SIDES]
_COLOR = [ctypes.c_uint() for _ in range(4)]
_SIZE, _NAME = ctypes.byref(ctypes.c_ulong()), (raw.FPDF_WCHAR * 8)()
_COLOR_REFERENCES = [ctypes.byref(part) for part in _COLOR]


def _bounds(each: Any) -> Box | None:
    """Return left, bottom, right and top of an object; None if it has none."""
    if not raw.FPDFPageObj_GetBounds(each, *_SIDE_REFERENCES):
        return None
    left, bottom, right, top = _SIDES
    return left.value, bottom.value, right.value, top.value


def _color(each: Any) -> tuple[int, int, int, int] | None:
    """Return red, green, blue and opacity of an object's fill; None if it is a pattern."""
    if not raw.FPDFPageObj_GetFillColor(each, *_COLOR_REFERENCES):
        return None
    red, green, blue, opacity = _COLOR
    return red.value, green.value, blue.value, opacity.value


def _is_white(each: Any) -> bool:
    """Whether an object is a white area, which is no background for white text."""
    color = _color(each) if raw.FPDFPageObj_GetType(each) == _PATH else None
    return color is not None and min(color[:3]) >= _WHITE


def _size(text: Any) -> float:
    """Return the size of text on the page, in points."""
    size, matrix = ctypes.c_float(), raw.FS_MATRIX()
    raw.FPDFTextObj_GetFontSize(text, ctypes.byref(size))
    if not raw.FPDFPageObj_GetMatrix(text, ctypes.byref(matrix)):
        return float(size.value)
    return float(abs(size.value) * max(abs(matrix.a) + abs(matrix.b), abs(matrix.c) + abs(matrix.d)))


def _is_layered(each: Any) -> bool:
    """Whether an object belongs to a layer, which may be switched off."""
    marks = raw.FPDFPageObj_CountMarks(each)
    for number in range(min(marks, 8)):
        mark = raw.FPDFPageObj_GetMark(each, number)
        if raw.FPDFPageObjMark_GetName(mark, _NAME, 16, _SIZE) and bytes(_NAME).startswith(b"O\0C\0\0\0"):
            return True
    return False


def _overlap(box: Box, background: Box) -> bool:
    """Whether the middle of a box lies on a background."""
    across, up = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return background[0] <= across <= background[2] and background[1] <= up <= background[3]


def _blank(page: Any, paper: Box, kinds: dict[str, list[tuple[Any, Box]]]) -> Iterator[tuple[Any, str]]:
    """Yield the objects where the picture of the page has one colour, and why."""
    left, bottom, right, top = paper
    scale = _PIXELS / max(right - left, top - bottom, 1)
    rotation = page.get_rotation()
    page.set_rotation(0)
    bitmap = page.render(scale=scale, grayscale=True)
    page.set_rotation(rotation)
    pixels, stride = bytes(bitmap.buffer), bitmap.stride
    for reason, objects in kinds.items():
        for each, box in objects:
            columns = sorted(min(max(int((x - left) * scale), 0), bitmap.width - 1) for x in (box[0], box[2]))
            rows = range(*sorted(min(max(int((top - y) * scale), 0), bitmap.height) for y in (box[1], box[3])))
            lines = [pixels[row * stride + columns[0] : row * stride + columns[1] + 1] for row in rows]
            # Smaller boxes may lie between two dots.
            if len(lines) > 2 and columns[1] - columns[0] > 2 and max(map(max, lines)) - min(map(min, lines)) < 16:
                yield each, reason
    bitmap.close()


def text_of(each: Any, textpage: object) -> str:
    """Return the text of an object, or of all that is in a group."""
    if raw.FPDFPageObj_GetType(each) == _FORM:
        inner = (raw.FPDFFormObj_GetObject(each, at) for at in range(min(raw.FPDFFormObj_CountObjects(each), _OBJECTS)))
        return " ".join(text_of(one, textpage) for one in inner if raw.FPDFPageObj_GetType(one) == _TEXT)
    size = raw.FPDFTextObj_GetText(each, textpage, None, 0)
    buffer = (raw.FPDF_WCHAR * (size // 2 + 1))()
    raw.FPDFTextObj_GetText(each, textpage, buffer, size)
    return bytes(buffer)[: max(0, size - 2)].decode("utf-16-le", "replace")
