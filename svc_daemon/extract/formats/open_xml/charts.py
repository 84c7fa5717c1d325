"""Charts and diagrams of Office files, as titles, a table of the values, and items."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from svc_daemon.extract.builders import FlowDocument, one_line
from svc_daemon.extract.formats.open_xml.drawings import diagram_texts, paragraphs
from svc_daemon.extract.formats.open_xml.number_formats import compile_format
from svc_daemon.extract.formats.open_xml.numbering import number_of
from svc_daemon.extract.formats.open_xml.packages import OfficePackage, local_name, qname

#: More rows of a chart than this are left out, with a warning.
_ROWS = 1000
_POINT, _VALUE, _FORMAT, _LEVEL = (qname(f"c:{name}") for name in ("pt", "v", "formatCode", "lvl"))
_TITLE, _SERIES, _NAME = qname("c:title"), qname("c:ser"), qname("c:tx")

#: Texts by their place in a row.
Points = dict[int, str]


def add_graphic(flow: FlowDocument, package: OfficePackage, kind: str, part: str, *, with_values: bool = True) -> None:
    """Add a chart or a diagram."""
    if kind == "diagram":
        if flow.add_all("item", diagram_texts(package, part)):
            flow.note_part("diagrams")
        return
    root = package.parse(part)
    if root is None:
        return
    before = flow.count
    cached = [value.text or "" for title in root.iter(_TITLE) for value in title.iter(_VALUE)]
    if not with_values:
        # Names of series that no cell has.
        cached += [value.text or "" for name in root.iter(_NAME) for value in name.iterchildren(_VALUE)]
    drawn = (package.parse(each) for each in package.related(part, "chartUserShapes"))
    shapes = chain.from_iterable(paragraphs(each) for each in drawn if each is not None)
    flow.add_all("paragraph", dict.fromkeys(map(one_line, (*paragraphs(root), *cached, *shapes))))
    if with_values:
        rows = [*(_extended_rows(root) if root.tag.endswith("chartex}chartSpace") else _rows(root))]
        table = object()
        for row in rows[:_ROWS]:
            flow.add_row(row, table)
        if len(rows) > _ROWS:
            flow.warn(f"A chart has {len(rows)} rows of values; the first {_ROWS} were read.")
    if flow.count > before:
        flow.note_part("charts")


def _rows(root: Any) -> Iterator[list[str]]:
    """Yield the values of a chart as the rows of a table, with a heading for series of the same categories."""
    tables: list[tuple[Points, list[tuple[str, Points]]]] = []
    for series in root.iter(_SERIES):
        name = " ".join(value.text or "" for each in series.iterchildren(_NAME) for value in each.iter(_VALUE))
        categories = _points(series, "cat", "xVal")
        if not tables or tables[-1][0] != categories:
            tables.append((categories, []))
        tables[-1][1].append((name, _points(series, "val", "yVal")))
    for categories, columns in tables:
        yield ["", *(name for name, _ in columns)]
        places = sorted(set(categories).union(*(values for _, values in columns)))
        for place in places:
            yield [categories.get(place, ""), *(values.get(place, "") for _, values in columns)]


def _points(series: Any, *names: str) -> Points:
    """Return the texts of a series' categories or values, as the chart shows them."""
    found = next(series.iterchildren(*(qname(f"c:{name}") for name in names)), None)
    if found is None:
        return {}
    levels = [*found.iter(_LEVEL)]
    if not levels:
        return _shown_points(found)
    # The outer levels come last, and are written once for all the places that they span.
    inner, *outer = map(_shown_points, levels)
    for level in outer:
        above = ""
        for place in sorted(inner):
            above = level.get(place, above)
            inner[place] = f"{above} {inner[place]}"
    return inner


def _shown_points(element: Any) -> Points:
    code = next((each.text for each in element.iter(_FORMAT) if each.text), "General")
    shown: Points = {}
    is_number = any(local_name(each).startswith("num") for each in element)
    for point in element.iter(_POINT):
        text = " ".join(value.text or "" for value in point.iterchildren(_VALUE))
        if is_number:
            text = _formatted(text, point.get("formatCode") or code)
        shown[number_of(point.get("idx"), len(shown))] = text
    return shown


def _formatted(text: str, code: str) -> str:
    try:
        return compile_format(code)(float(text))
    except (ValueError, ArithmeticError):
        return text


def _extended_rows(root: Any) -> Iterator[list[str]]:
    """Yield the values of a chart of the newer kinds, such as a waterfall or a tree map."""
    yield ["", *(value.text or "" for series in root.iter("{*}series") for value in series.iter("{*}v"))]
    for data in root.iter("{*}data"):
        columns = [[point.text or "" for point in level.iter("{*}pt")] for level in data.iter("{*}lvl")]
        for place in range(max(map(len, columns), default=0)):
            yield [column[place] if place < len(column) else "" for column in columns]
