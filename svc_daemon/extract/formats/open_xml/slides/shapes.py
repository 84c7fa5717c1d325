"""The shapes of a slide: their text, tables, charts and descriptions, and which of them can't be seen."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from svc_daemon.extract.builders import FlowDocument, one_line
from svc_daemon.extract.formats.open_xml.charts import add_graphic
from svc_daemon.extract.formats.open_xml.drawings import (
    description,
    graphic_reference,
    is_hidden,
    is_struck,
    paragraphs,
    struck_text,
)
from svc_daemon.extract.formats.open_xml.numbering import number_of
from svc_daemon.extract.formats.open_xml.packages import OfficePackage, alternative, local_name, qname
from svc_daemon.extract.formats.open_xml.slides.texts import frame_lines
from svc_daemon.extract.tables import TableCell, TableLayout

_ALTERNATIVES = qname("mc:AlternateContent")
_SHAPES = frozenset(qname(f"p:{name}") for name in ("sp", "pic", "graphicFrame", "cxnSp", "contentPart"))
_GROUP = qname("p:grpSp")
_OFF, _EXT, _CHILD_OFF, _CHILD_EXT = (qname(f"a:{name}") for name in ("off", "ext", "chOff", "chExt"))
_RUN_PROPERTIES = qname("a:rPr")
_TITLES = frozenset({"title", "ctrTitle"})
#: Placeholders of texts that stand on each slide.
FURNITURE = frozenset({"ftr", "hdr", "dt", "sldNum"})
_FILLS = [qname(f"a:{name}") for name in ("solidFill", "gradFill", "blipFill", "pattFill")]
#: Text of at most one point can't be read; the file counts in hundredths.
_UNREADABLE_SIZE = 100


class GroupFrame(NamedTuple):
    """How a group places its shapes: an offset, and a factor for each axis."""

    left: float = 0
    top: float = 0
    wide: float = 1
    high: float = 1


class SlideShape(NamedTuple):
    element: Any
    #: Its kind of placeholder, such as `title`; None if it is none.
    placeholder: str | None
    #: Left, top, right and bottom edge; None if its layout says where it is.
    edges: tuple[float, float, float, float] | None
    #: Whether it, or its group, is switched off.
    is_hidden: bool
    #: The part that it is from; empty for the slide's own.
    part: str = ""

    @property
    def is_title(self) -> bool:
        return self.placeholder in _TITLES and next(frame_lines(self.element), None) is not None


def shapes_of(root: Any) -> Iterator[SlideShape]:
    """Yield the shapes of a slide, layout or page of notes, also those in groups, in their order."""
    tree = next(root.iter(qname("p:spTree")), None)
    if tree is not None:
        yield from _shapes(tree, GroupFrame(), is_off=False)


def _shapes(tree: Any, frame: GroupFrame, *, is_off: bool) -> Iterator[SlideShape]:
    for element in tree:
        if element.tag == _ALTERNATIVES:
            yield from _shapes(alternative(element), frame, is_off=is_off)
        elif element.tag == _GROUP:
            properties = next(element.iter(qname("p:cNvPr")), None)
            off = is_off or (properties is not None and is_hidden(properties))
            # The words that describe a group stand before those of its shapes.
            yield SlideShape(element, None, None, off)
            yield from _shapes(element, _inner_frame(element, frame), is_off=off)
        elif element.tag in _SHAPES:
            properties = next(element.iter(qname("p:cNvPr")), None)
            mark = next(element.iter(qname("p:ph")), None)
            off = is_off or (properties is not None and is_hidden(properties))
            placeholder = None if mark is None else mark.get("type") or "obj"
            yield SlideShape(element, placeholder, _edges(element, frame), off)


def _numbers(element: Any, names: tuple[str, str]) -> tuple[int, int] | None:
    if element is None:
        return None
    first, second = (number_of(element.get(name), -(10**10)) for name in names)
    return None if min(first, second) == -(10**10) else (first, second)


def _box(element: Any, off: str, ext: str) -> tuple[int, int, int, int] | None:
    place = next(element.iter(qname("a:xfrm"), qname("p:xfrm")), None)
    if place is None:
        return None
    start, size = _numbers(place.find(off), ("x", "y")), _numbers(place.find(ext), ("cx", "cy"))
    return None if start is None or size is None else (*start, *size)


def _edges(element: Any, frame: GroupFrame) -> tuple[float, float, float, float] | None:
    box = _box(element, _OFF, _EXT)
    if box is None:
        return None
    left, top = frame.left + box[0] * frame.wide, frame.top + box[1] * frame.high
    return left, top, left + box[2] * frame.wide, top + box[3] * frame.high


def _inner_frame(group: Any, frame: GroupFrame) -> GroupFrame:
    properties = group.find(qname("p:grpSpPr"))
    outer, inner = (
        (None, None)
        if properties is None
        else (
            _box(properties, _OFF, _EXT),
            _box(properties, _CHILD_OFF, _CHILD_EXT),
        )
    )
    if outer is None or inner is None:
        return frame
    wide, high = (outer[axis] / inner[axis] if inner[axis] else 1 for axis in (2, 3))
    left, top = outer[0] - inner[0] * wide, outer[1] - inner[1] * high
    return GroupFrame(
        frame.left + left * frame.wide, frame.top + top * frame.high, frame.wide * wide, frame.high * high
    )


def backdrop(package: OfficePackage, part: str) -> list[str]:
    """Return the layout of a slide and the master of the layout, which are shown behind it."""
    layouts = package.related(part, "slideLayout")
    return [*layouts, *(master for layout in layouts for master in package.related(layout, "slideMaster"))]


class SlideShapes:
    """Adds the shapes of one slide after another to a document."""

    def __init__(self, flow: FlowDocument, package: OfficePackage, presentation: Any) -> None:
        self._flow, self._package = flow, package
        self._size = _numbers(next(presentation.iter(qname("p:sldSz")), None), ("cx", "cy"))
        self._part = ""
        self._is_plain = False

    def begin(self, part: str, root: Any, behind: Sequence[Any]) -> None:
        """Begin with a slide, given the roots of its layout and master."""
        self._part = part
        roots = [each for each in (root, *behind) if each is not None]
        # White text is seen on every colour and picture, so it counts as unseen only where there is none.
        self._is_plain = not any(_is_coloured(each) for each in roots)

    def add(self, shape: SlideShape, *, has_heading: bool) -> None:
        """Add what a shape shows. Its text is left out if it is the slide's heading already."""
        element, part = shape.element, shape.part or self._part
        properties = next(element.iter(qname("p:cNvPr")), None)
        words = "" if properties is None else description(properties)
        reason = "hidden shape" if shape.is_hidden else "off the slide" if self.is_off_slide(shape) else None
        if element.tag == _GROUP:
            self._add_description(words, reason)
            return
        if reason:
            self._flow.hide(" ".join([words, *paragraphs(element)]), reason, page=self._flow.page)
            return
        self._flow.hide(struck_text(element), "struck out", page=self._flow.page)
        if not has_heading:
            for line in frame_lines(element):
                self.add_line(line.text, line.kind, line.element, element)
        for table in element.iter(qname("a:tbl")):
            self.add_table(table)
        self._add_graphics(element, part)
        self._add_description(words, None)

    def _add_description(self, words: str, reason: str | None) -> None:
        if reason:
            self._flow.hide(words, reason, page=self._flow.page)
        elif self._flow.add("paragraph", words):
            self._flow.note_part("alt_texts")

    def add_line(self, text: str, kind: str, paragraph: Any, shape: Any) -> None:
        reasons = {self.why_unseen(run, shape) for run in paragraph.iter(_RUN_PROPERTIES) if not is_struck(run)}
        reason = reasons.pop() if len(reasons) == 1 else None
        if reason:
            self._flow.hide(text, reason, page=self._flow.page)
        else:
            self._flow.add(kind, text)
        if any(True for _ in paragraph.iter(qname("m:oMath"))):
            self._flow.note_part("equations")

    def why_unseen(self, run: Any, shape: Any) -> str | None:
        if number_of(run.get("sz"), 1800) <= _UNREADABLE_SIZE:
            return "size 0"
        is_bare = self._is_plain and next(shape.iterchildren(qname("p:style")), None) is None
        return "white text" if is_bare and _is_white(run.find(qname("a:solidFill"))) else None

    def is_off_slide(self, shape: SlideShape) -> bool:
        """Whether a shape lies outside of the slide."""
        if shape.edges is None or self._size is None or shape.part:
            return False
        left, top, right, bottom = shape.edges
        return right <= 0 or bottom <= 0 or left >= self._size[0] or top >= self._size[1]

    def add_table(self, table: Any) -> None:
        layout = TableLayout()
        for row in table.iterchildren(qname("a:tr")):
            cells = [
                TableCell(
                    " ".join(one_line(text) for text in paragraphs(cell)),
                    min(number_of(cell.get("gridSpan"), 1), 1000),
                    min(number_of(cell.get("rowSpan"), 1), 100_000),
                )
                for cell in row.iterchildren(qname("a:tc"))
                if not {cell.get("hMerge"), cell.get("vMerge")} & {"1", "true"}
            ]
            self._flow.add_row(layout.lay_out(cells), layout)

    def _add_graphics(self, element: Any, part: str) -> None:
        for child in element:
            if child.tag == _ALTERNATIVES:
                self._add_graphics(alternative(child), part)
            elif reference := graphic_reference(self._package, part, child):
                add_graphic(self._flow, self._package, *reference)
            elif local_name(child) == "oleObj":
                kind = child.get("progId") or "of an unknown kind"
                self._flow.warn(f"An embedded object ({kind}) was not read; only what the slide shows of it may be.")
            else:
                self._add_graphics(child, part)


def _is_white(fill: Any) -> bool:
    if fill is None:
        return False
    colour = next(iter(fill), None)
    return colour is not None and len(colour) == 0 and (colour.get("val") or "").lower() in {"ffffff", "bg1"}


def _is_coloured(root: Any) -> bool:
    """Whether a slide, layout or master has a background, picture or filled shape of its own."""
    colours = next(root.iter(qname("p:clrMap"), qname("a:overrideClrMapping")), None)
    background = next(root.iter(qname("p:bg")), None)
    if colours is not None and colours.get("bg1") != "lt1":
        return True
    if background is not None:
        solid = next(background.iter(qname("a:solidFill")), None)
        reference = next(background.iter(qname("p:bgRef")), None)
        named = None if reference is None else next(iter(reference), None)
        if not (_is_white(solid) or (named is not None and named.get("val") == "bg1")):
            return True
    tree = next(root.iter(qname("p:spTree")), None)
    if tree is None:
        return False
    if next(tree.iter(qname("p:pic"), qname("p:graphicFrame")), None) is not None:
        return True
    fills = (fill for shape in tree.iter(qname("p:spPr"), qname("p:grpSpPr")) for fill in shape.iterchildren(*_FILLS))
    return any(not _is_white(fill) for fill in fills)
