"""What PDFium misses between the characters of a page: lines that it breaks or joins wrongly, and exponents."""

import re
from collections.abc import Callable
from itertools import pairwise

from pypdfium2 import raw

from svc_daemon.extract.formats.pdf.layout import Boxes

_BREAK = re.compile(r"(?<=\S)\r\n(?= ?\S)")
_SLASH = re.compile(r"\s*[/\u2044]")
_DIGITS = re.compile(r"\d+(?:[-\u2212\u2013]?\d+)")
#: How much of its height a character is at least raised above those before it, and how near it stands.
_RAISED, _NEAR = 0.25, 0.25

_Edit = tuple[int, int, str]


def mend(textpage: object, text: str) -> str:
    """Return the text of a page with each character on the line on which it is, and with `^` before exponents."""
    has_breaks, has_digits = _BREAK.search(text), _DIGITS.search(text)
    if not (has_breaks or has_digits) or raw.FPDFText_CountChars(textpage) != len(text):
        return text
    get = Boxes(raw.FPDFText_GetCharBox, "lrbt").get
    edits = [_join_line(lambda at: get(textpage, at), found) for found in _BREAK.finditer(text)]
    edits += [_part_digits(lambda at: get(textpage, at), found) for found in _DIGITS.finditer(text)]
    pieces, end = [], 0
    for start, stop, replacement in sorted(filter(None, edits)):
        pieces += [text[end:start], replacement]
        end = stop
    return "".join([*pieces, text[end:]])


_Box = Callable[[int], tuple[float, float, float, float]]


def _join_line(box: _Box, found: re.Match[str]) -> _Edit | None:
    """Return what stands instead of a break, if the next character is beside the last one."""
    is_blank = found.string[found.end()] == " "
    _, bottom, right, top = box(found.start() - 1)
    left, low, _, high = box(found.end() + is_blank)
    height = max(top - bottom, high - low)
    if left < right - 0.1 * height or min(top, high) <= max(bottom, low):
        return None
    is_near = abs(bottom - low) > _RAISED * height and left - right < _NEAR * height
    is_joined = is_near and (high - low < top - bottom or not found.string[found.end()].isalnum())
    return found.start(), found.end(), "" if is_blank or is_joined else " "


def _part_digits(box: _Box, found: re.Match[str]) -> _Edit | None:
    """Return where an exponent begins in digits, or those of another line."""
    first, last = box(found.start()), box(found.end() - 1)
    height = first[3] - first[1]
    if abs(last[1] - first[1]) <= _RAISED * height:
        return None
    places = [box(at) for at in range(found.start(), found.end())]
    for at, (before, after) in enumerate(pairwise(places), found.start() + 1):
        is_below = after[3] < before[1] and after[0] < first[0] + height
        # The digits of a number that is turned stand above each other, too.
        if is_below and abs(places[1][1] - first[1]) <= _RAISED * height:
            return at, at, "\n"
        if last[1] - before[1] > _RAISED * height and after[1] - before[1] > _RAISED * height:
            is_raised = before[3] > after[1] and last[3] > before[3] and found.string[at - 1].isdigit()
            # In 3 1/2, the numerator is raised.
            sign = " " if _SLASH.match(found.string, found.end()) else "^"
            return (at, at, sign) if is_raised else None
    return None
