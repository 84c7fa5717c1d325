"""Order of the text on a PDF's page: columns that were drawn line by line, and values of forms beside their labels."""

import ctypes
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from pypdfium2 import raw

from svc_daemon.extract.formats.pdf.annotations import Drawn

#: What PDFium returns for a hyphen within a word at a line break.
BROKEN = "\ufffe"
_WORD = re.compile(r"\S+")
#: Pages with more words keep the order in which they were drawn.
_WORDS = 20_000
#: With more pairs of text and value, the values follow the text.
_COMPARED = 2_000_000
#: Rows whose text lies in columns; fewer may be a table's.
_ROWS = 2
_FIGURE = re.compile(r"[^\w\s]{0,2} ?\d[\d.,' ]* ?[^\w\s]?(?: ?[A-Z]{3})?")
#: Pages with more rows keep their order, too.
_ROWS_ORDERED = 500
_SENTENCE_END = re.compile("[.!?:;。！？：；…][\"'”’»)\\]]*$")  # noqa: RUF001


@dataclass(slots=True)
class Segment:
    """Words that stand side by side on a line. Y grows upwards."""

    text: str
    left: float
    bottom: float
    right: float
    top: float

    @property
    def height(self) -> float:
        return self.top - self.bottom

    def is_beside(self, other: "Segment") -> bool:
        """Whether the two stand on one line."""
        shared = min(self.top, other.top) - max(self.bottom, other.bottom)
        return shared > 0.5 * min(self.height, other.height)

    def continues(self, below: "Segment") -> bool:
        """Whether a sentence goes on in the line below."""
        first = below.text[0]
        if _SENTENCE_END.search(self.text):
            return False
        # Scripts without small letters have no other sign.
        return first.islower() or self.text[-1] in f"-{BROKEN}" or (first.isalpha() and not first.isupper())


class Boxes:
    """Returns boxes of characters or rectangles, without making objects for each."""

    def __init__(self, call: Callable[..., Any], order: str) -> None:
        self._call = call
        self._order = order
        self._numbers = [ctypes.c_double() for _ in range(4)]
        self._references = [ctypes.byref(number) for number in self._numbers]

    def get(self, page: object, index: int) -> tuple[float, float, float, float]:
        """Return left, bottom, right and top."""
        self._call(page, index, *self._references)
        first, second, third, fourth = self._numbers
        if self._order == "lrbt":
            return first.value, third.value, second.value, fourth.value
        return first.value, fourth.value, third.value, second.value


def is_interleaved(textpage: object) -> bool:
    """Whether neighbouring lines have two long pieces with a gap as between columns, judged by what was drawn."""
    boxes = Boxes(raw.FPDFText_GetRect, "ltrb")
    #: Where the last line with such pieces stood.
    last = float("inf")
    pieces = [(0.0, 0.0)]
    low = high = 0.0
    for index in range(min(raw.FPDFText_CountRects(textpage, 0, -1), _WORDS)):
        left, bottom, right, top = boxes.get(textpage, index)
        height = min(top - bottom, high - low)
        is_beside = min(top, high) - max(bottom, low) > 0.5 * height and left >= pieces[-1][0]
        if is_beside and left - pieces[-1][1] <= height:
            pieces[-1] = (pieces[-1][0], right)
        elif is_beside:
            pieces.append((left, right))
        else:
            pieces = [(left, right)]
        # Columns are at least about twelve letters wide.
        if len(pieces) > 1 and min(one[1] - one[0] for one in pieces[-2:]) > 6 * height:
            if 0.5 * height < abs(last - bottom) < 4 * height:
                return True
            last = bottom
        low, high = bottom, top
    return False


def goes_up(textpage: object) -> bool:
    """Whether a line was drawn after one that is below it."""
    boxes = Boxes(raw.FPDFText_GetRect, "ltrb")
    low = float("inf")
    for index in range(min(raw.FPDFText_CountRects(textpage, 0, -1), _WORDS)):
        _, bottom, _, top = boxes.get(textpage, index)
        if bottom > low + 1.2 * (top - bottom):
            return True
        low = bottom
    return False


def segments_of(textpage: object, text: str) -> list[Segment]:
    """Return the segments of a page in the order in which PDFium has them; none if their places can't be known."""
    if raw.FPDFText_CountChars(textpage) != len(text):
        return []
    boxes = Boxes(raw.FPDFText_GetCharBox, "lrbt")
    segments: list[Segment] = []
    end = 0
    for number, word in enumerate(_WORD.finditer(text)):
        if number > _WORDS:
            return []
        first, last = boxes.get(textpage, word.start()), boxes.get(textpage, word.end() - 1)
        if word[0][-1] == BROKEN and len(word[0]) > 1:
            last = boxes.get(textpage, word.end() - 2)
        here = Segment(
            word[0], min(first[0], last[0]), min(first[1], last[1]), max(first[2], last[2]), max(first[3], last[3])
        )
        before = segments[-1] if segments else None
        gap = max(here.left - before.right, before.left - here.right) if before else 0
        if (
            before
            and "\n" not in text[end : word.start()]
            and before.is_beside(here)
            and gap < 1.1 * max(before.height, here.height)
        ):
            before.text += f" {here.text}"
            before.left, before.right = min(before.left, here.left), max(before.right, here.right)
            before.bottom, before.top = min(before.bottom, here.bottom), max(before.top, here.top)
        else:
            segments.append(here)
        end = word.end()
    return segments


def in_columns(segments: Sequence[Segment], depth: int = 3) -> list[Segment]:
    """Return the segments with those of columns one column after another."""
    rows = _rows(segments)
    if len(rows) > _ROWS_ORDERED:
        return list(segments)
    ordered = list(segments)
    for band in _bands(rows):
        gutter = _gutter(band)
        if gutter is None or depth == 0:
            continue
        left = [segment for row in band for segment in row if segment.right <= gutter]
        right = [segment for row in band for segment in row if segment.left >= gutter]
        if not (_is_prose(left) and _is_prose(right)):
            continue
        taken = {id(segment) for segment in (*left, *right)}
        at = next(at for at, segment in enumerate(ordered) if id(segment) in taken)
        rest = [segment for segment in ordered[at:] if id(segment) not in taken]
        ordered[at:] = [*in_columns(left, depth - 1), *in_columns(right, depth - 1), *rest]
    return ordered


def _rows(segments: Iterable[Segment]) -> list[list[Segment]]:
    """Group segments into rows from the top down, each from left to right."""
    rows: list[list[Segment]] = []
    for segment in sorted(segments, key=lambda segment: -(segment.bottom + segment.top)):
        if rows and rows[-1][0].is_beside(segment):
            rows[-1].append(segment)
        else:
            rows.append([segment])
    for row in rows:
        row.sort(key=lambda segment: segment.left)
    return rows


def _bands(rows: list[list[Segment]]) -> Iterator[list[list[Segment]]]:
    """Yield runs of rows that one strip parts. A row that crosses the strip ends the run, and so does a wide gap."""
    pitch = median([above[0].bottom - below[0].bottom for above, below in pairwise(rows)] or [0.0])
    band: list[list[Segment]] = []
    for row in rows:
        crosses = bool(band) and _gutter([*band, row]) is None
        if crosses or (band and band[-1][0].bottom - row[0].bottom > 1.6 * pitch and not band[-1][0].continues(row[0])):
            if len(band) >= _ROWS:
                yield band
            band = []
        if band or len(row) > 1:
            band.append(row)
    if len(band) >= _ROWS:
        yield band


def _gutter(band: list[list[Segment]]) -> float | None:
    """Return where a vertical strip parts the rows that have several pieces; None if none parts them all."""
    gaps = [[(one.right, other.left) for one, other in pairwise(row)] for row in band if len(row) > 1]
    for strip in gaps[0] if gaps else ():
        for row in gaps[1:]:
            shared = [
                (max(strip[0], left), min(strip[1], right))
                for left, right in row
                if min(strip[1], right) > max(strip[0], left)
            ]
            if not shared:
                break
            strip = max(shared, key=lambda gap: gap[1] - gap[0])  # noqa: PLW2901 - it narrows
        else:
            middle = (strip[0] + strip[1]) / 2
            if not any(segment.left < middle < segment.right for row in band for segment in row):
                return middle
    return None


def in_rows(segments: Sequence[Segment]) -> list[Segment]:
    """Return the segments with labels and their values, and tables with figures, row by row.

    Some programs draw one column after another, or a page from below.
    """
    rows, drawn = _rows(segments), {id(segment): at for at, segment in enumerate(segments)}
    words = [segment for segment in segments if len(segment.text) > 2]
    are_upright = sum(segment.right - segment.left > segment.height for segment in words) >= 0.9 * len(words)
    if len(rows) > _ROWS_ORDERED or not are_upright:
        return list(segments)
    if len(rows) > _ROWS and all(drawn[id(above[0])] > drawn[id(below[-1])] for above, below in pairwise(rows)):
        return [segment for row in rows for segment in row]
    ordered = list(segments)
    while rows:
        run = [rows.pop(0)]
        while rows and _goes_on(run[-1], rows[0], drawn):
            run.append(rows.pop(0))
        columns = [*zip(*run, strict=True)]
        by_column = all(drawn[id(one[-1])] < drawn[id(other[0])] for one, other in pairwise(columns))
        if len(run) >= _ROWS and by_column and _has_labels_or_figures(columns):
            taken = {id(segment) for row in run for segment in row}
            at = next(at for at, segment in enumerate(ordered) if id(segment) in taken)
            rest = [segment for segment in ordered[at:] if id(segment) not in taken]
            ordered[at:] = [*(segment for row in run for segment in row), *rest]
    return ordered


def _goes_on(row: Sequence[Segment], below: Sequence[Segment], drawn: Mapping[int, int]) -> bool:
    """Whether the row below has the same columns, each of which was drawn from above."""
    return len(row) == len(below) and all(
        drawn[id(one)] < drawn[id(other)] and one.left < other.right and other.left < one.right
        for one, other in zip(row, below, strict=True)
    )


def _has_labels_or_figures(columns: Sequence[Sequence[Segment]]) -> bool:
    has_labels = all(segment.text.endswith(":") for segment in columns[0])
    return has_labels or any(
        all(_FIGURE.fullmatch(segment.text) for segment in column[1:]) for column in columns[1:] if len(column) > _ROWS
    )


def _is_prose(column: Sequence[Segment]) -> bool:
    """Whether the lines of a column are one text, unlike the cells of a table."""
    lines = _rows(column)
    if len(lines) < _ROWS:
        return False
    long = sum(len(line[0].text) >= 12 for line in lines)
    going_on = sum(above[-1].continues(below[0]) for above, below in pairwise(lines))
    return long >= 0.6 * len(lines) and going_on >= 0.4 * (len(lines) - 1)


def join(segments: Iterable[Segment]) -> str:
    """Return the text of segments in this order, with a line break wherever a line ends."""
    pieces: list[str] = []
    before: Segment | None = None
    for segment in segments:
        if before is not None:
            follows = before.is_beside(segment) and segment.left > before.left
            is_cut = before.text[-1] == "-" and before.text[-2:-1].isalpha() and segment.text[0].isalpha()
            if is_cut and not follows:
                pieces[-1] = f"{pieces[-1][:-1]}{BROKEN}"
            else:
                pieces.append(" " if follows else "\n")
        pieces.append(segment.text)
        before = segment
    return "".join(pieces)


def beside_labels(segments: list[Segment], values: Iterable[Segment]) -> list[Segment]:
    """Put each value of a form behind the text that is before it on its line, else behind the one above it."""
    ordered, values = list(segments), list(values)
    if len(ordered) * len(values) > _COMPARED:
        return [*ordered, *values]
    for value in sorted(values, key=lambda value: (-value.top, value.left)):
        before = [each for each in ordered if each.is_beside(value) and each.left < value.left]
        above = [each for each in ordered if each.bottom >= value.top - 0.3 * value.height]
        if before:
            label = max(before, key=lambda each: each.left)
        elif above:
            label = min(above, key=lambda each: (each.bottom - value.top) + 0.3 * abs(each.left - value.left))
        else:
            ordered.insert(0, value)
            continue
        ordered.insert(next(at for at, each in enumerate(ordered) if each is label) + 1, value)
    return ordered


def values_of(annotations: Iterable[Drawn], shown: Sequence[Segment], printed: Sequence[Segment]) -> list[Segment]:
    """Return what annotations show, each as one segment: of the text within its box, what isn't printed there."""
    values: list[Segment] = []
    below = {(segment.text, round(segment.left), round(segment.bottom)) for segment in printed}
    for each in annotations:
        left, bottom, right, top = each.box
        inside = [
            segment
            for segment in shown
            if left <= (segment.left + segment.right) / 2 <= right
            and bottom <= (segment.bottom + segment.top) / 2 <= top
            and (segment.text, round(segment.left), round(segment.bottom)) not in below
        ]
        text = join(inside)
        letters = set(filter(str.isalnum, each.value))
        if "".join(text.split()) == "".join(each.value.split()) or not letters <= set(text):
            # Letters in boxes of their own are one word, and what can't be drawn was typed all the same.
            text = each.value or text
        if text.strip():
            values.append(Segment(text, *each.box))
    return values
