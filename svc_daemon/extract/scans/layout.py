"""From the lines of a picture to the text of a page: its direction, columns, tables and paragraphs.

The recogniser finds lines in any order. Two columns would be read across, so the order is decided here, by the boxes.
"""

import math
import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import numpy as np

from svc_daemon.core.text.chunking import RecognizedPage
from svc_daemon.extract.scans.pictures import Picture
from svc_daemon.extract.scans.recognizers import Line, Recognize

#: Below this mean confidence, a page counts as not read.
LEAST_CONFIDENCE = 0.6
#: At this mean confidence, no other direction of the page is tried.
_CERTAIN = 0.9
#: Characters times height over width of a line: at least 2.1 in usual text, and 1.8 in capitals. What is recognised in
#: scripts that the model doesn't know has less: Cyrillic 0.65 with a confidence up to 0.97, Greek 1.6 with one of 0.8.
_USUAL_DENSITY, _LEAST_DENSITY = 2.0, 1.2
#: A line this much taller than wide is sideways.
_TALL = 1.5
#: Shares of a region's width: a line from here on goes across columns.
_WIDE = 0.6
#: Columns have at least this many lines, of this many characters: shorter ones are cells of a table.
_COLUMN_LINES, _COLUMN_CHARACTERS = 3, 12
#: The distance of lines, in usual distances, at which a paragraph begins.
_PARAGRAPH = 1.4
_HYPHEN = re.compile(r"([^\W\d_])[-\u2010]\n(?=[^\W\d_A-Z])")


def recognize_page(picture: Picture, number: int, recognize: Recognize) -> RecognizedPage:
    """Recognise the text of a page, upright or turned by a quarter."""
    best: tuple[float, Sequence[Line]] = (0.0, ())
    turns = [0, 2, 1, 3]
    while turns:
        turn = turns.pop(0)
        found = recognize(np.ascontiguousarray(np.rot90(picture, turn)))
        lines = [line for line in found if line.text.strip()]
        if not lines:
            break
        confidence, length = _confidence(lines), sum(len(line.text) for line in lines)
        tall = [line for line in lines if len(line.text) > 1 and _sides(line)[1] > _TALL * _sides(line)[0]]
        is_sideways = 2 * sum(len(line.text) for line in tall) > length
        if is_sideways and turn == 0:
            turns = [1, 3]
        is_dense = _density(lines) >= (_LEAST_DENSITY if confidence >= _CERTAIN else _USUAL_DENSITY)
        score = confidence if is_dense and not is_sideways else 0.0
        best = max(best, (score, lines), key=lambda each: each[0]) if best[1] else (score, lines)
        if score >= _CERTAIN:
            break
    score, read = best
    if not read:
        return RecognizedPage(number, "")
    if score < LEAST_CONFIDENCE:
        problem = "its text is too unclear, or in a script that can't be recognised"
        return RecognizedPage(number, "", _confidence(read), problem)
    return RecognizedPage(number, _text(read), score)


def _confidence(lines: Sequence[Line]) -> float:
    return sum(line.confidence * len(line.text) for line in lines) / sum(len(line.text) for line in lines)


def _sides(line: Line) -> tuple[float, float]:
    """Return the length of a line's box along the text, and its height."""
    one, two, three = (np.asarray(corner, float) for corner in line.box[:3])
    return float(np.linalg.norm(two - one)) or 1.0, float(np.linalg.norm(three - two)) or 1.0


def _density(lines: Sequence[Line]) -> float:
    """Return characters times height over width, in the middle of all lines; Chinese characters count twice."""
    densities = []
    for line in lines:
        width, height = _sides(line)
        characters = sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in line.text)
        densities += [characters * min(width, height) / max(width, height)] * len(line.text)
    return median(densities)


class _Box(NamedTuple):
    """A line in a picture that is straightened."""

    left: float
    top: float
    right: float
    bottom: float
    text: str

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


def _text(lines: Sequence[Line]) -> str:
    """Return the paragraphs of the page, in reading order, with a blank line between them."""
    boxes = _straightened(lines)
    unit = median(box.bottom - box.top for box in boxes)
    rows = _in_order(boxes, unit)
    steps = [after[0].middle - before[0].middle for before, after in pairwise(rows)]
    forward = [step for step in steps if step > 0] or [unit]
    pieces: list[str] = []
    for number, row in enumerate(rows):
        if number:
            is_next = 0 < steps[number - 1] < _PARAGRAPH * max(median(forward), unit)
            pieces.append("\n" if is_next else "\n\n")
        for before, after in pairwise([None, *row]):
            if before is not None and after is not None:
                pieces.append(" | " if after.left - before.right > 1.5 * unit else " ")
            if after is not None:
                pieces.append(after.text.strip())
    # A word that was broken at the end of a line is one again.
    return _HYPHEN.sub(r"\1", "".join(pieces))


def _straightened(lines: Sequence[Line]) -> list[_Box]:
    """Return the boxes as if the page were not askew."""
    slopes = []
    for line in lines:
        (x, y), (far_x, far_y) = line.box[0], line.box[1]
        if far_x > x:
            slopes += [math.atan2(far_y - y, far_x - x)] * len(line.text)
    angle = median(slopes) if slopes else 0.0
    sine, cosine = math.sin(-angle), math.cos(-angle)
    boxes = []
    for line in lines:
        xs = [x * cosine - y * sine for x, y in line.box]
        ys = [x * sine + y * cosine for x, y in line.box]
        boxes.append(_Box(min(xs), min(ys), max(xs), max(ys), line.text))
    return boxes


def _in_order(boxes: Sequence[_Box], unit: float) -> list[list[_Box]]:
    """Return rows of boxes in reading order: columns one after another, and what goes across them in between."""
    if columns := _columns(boxes, unit):
        return [row for column in columns for row in _in_order(column, unit)]
    width = max(box.right for box in boxes) - min(box.left for box in boxes)
    bands: list[list[_Box]] = []
    was_wide: bool | None = None
    for box in sorted(boxes, key=lambda each: each.middle):
        is_wide = box.right - box.left >= _WIDE * width
        if is_wide != was_wide:
            bands.append([])
        bands[-1].append(box)
        was_wide = is_wide
    if any(_columns(band, unit) for band in bands):
        return [row for band in bands for row in _in_order(band, unit)]
    rows: list[list[_Box]] = []
    for box in sorted(boxes, key=lambda each: each.middle):
        if rows and box.top < rows[-1][0].middle < box.bottom:
            rows[-1].append(box)
        else:
            rows.append([box])
    return [sorted(row, key=lambda each: each.left) for row in rows]


def _columns(boxes: Sequence[_Box], unit: float) -> list[list[_Box]]:
    """Split the boxes where nothing is between two columns from top to bottom; an empty list if nowhere."""
    by_left = sorted(boxes, key=lambda each: each.left)
    reach = by_left[0].right
    for number, box in enumerate(by_left):
        if box.left - reach >= unit:
            sides = by_left[:number], by_left[number:]
            if all(
                len(side) >= _COLUMN_LINES and median(len(each.text) for each in side) >= _COLUMN_CHARACTERS
                for side in sides
            ):
                return [list(side) for side in sides]
        reach = max(reach, box.right)
    return []
