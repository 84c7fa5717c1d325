"""PPTX: each slide is a page headed by its title, with its shapes in their order, its notes and its comments."""

from typing import Any

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.builders import FlowDocument, one_line
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.open_xml.packages import OfficePackage, local_name, open_package, qname
from svc_daemon.extract.formats.open_xml.slides.shapes import FURNITURE, SlideShape, SlideShapes, backdrop, shapes_of
from svc_daemon.extract.formats.open_xml.slides.texts import frame_lines, slide_comments

_SLIDE = qname("p:sldId")
#: The title that PowerPoint gives to every new deck, in some languages.
_USUAL_TITLES = frozenset({"PowerPoint Presentation", "PowerPoint-Präsentation", "Présentation PowerPoint"})


def read(given: Given) -> Document:
    """Read a PowerPoint file or one of its variants. Raises ExtractionFailed if it is damaged or over the limits."""
    flow = FlowDocument()
    package = open_package(given, flow)
    main = package.main("ppt", "presentation.xml")
    root = package.parse(main)
    if root is None or local_name(root) != "presentation":
        raise documents.unreadable("The PowerPoint file is damaged: its list of slides can't be read.")
    deck = _Deck(flow, package, main, root)
    slides = [*root.iter(_SLIDE)]
    empty = []
    for number, slide in enumerate(slides, 1):
        flow.page = number
        part = package.target(main, slide)
        content = package.parse(part) if part else None
        if part is None or content is None:
            flow.warn(f"Slide {number} can't be read.")
        if part is None or content is None or not deck.add_slide(part, content):
            empty.append(number)
    title = package.title()
    if not title or title in _USUAL_TITLES:
        title = flow.headings.first
    return flow.finish(title=title, pages=len(slides), pages_without_text=empty)


class _Deck:
    """A deck whose slides are added to a document."""

    def __init__(self, flow: FlowDocument, package: OfficePackage, main: str, root: Any) -> None:
        self._flow, self._package, self._main = flow, package, main
        self._shapes = SlideShapes(flow, package, root)
        #: Texts that stand on each slide, such as a footer, are written once.
        self._repeated: set[str] = set()
        self._seen_backdrops: set[str] = set()
        #: The numbers that the slide and its notes show: a dictionary, because it keeps the order.
        self._numbers: dict[str, None] = {}

    def add_slide(self, part: str, root: Any) -> bool:
        """Add a slide. Returns False if it has no text."""
        flow, before = self._flow, self._flow.count
        # Drop the previous slide's headings, so that this slide is not placed below them.
        flow.headings.clear()
        self._numbers.clear()
        shapes = [*shapes_of(root)]
        title = next((shape for shape in shapes if shape.is_title and not shape.is_hidden), None)
        if title is not None:
            flow.add_heading(1, " ".join(line.text for line in frame_lines(title.element)))
        self._shapes.begin(part, root, [self._parsed(each) for each in backdrop(self._package, part)])
        for shape in shapes:
            if shape.placeholder in FURNITURE:
                self._add_repeated(shape)
            else:
                self._shapes.add(shape, has_heading=shape is title)
        self.add_backdrops(part, root)
        self.add_notes(part)
        for comment in slide_comments(self._package, self._main, part):
            flow.add("paragraph", comment)
            flow.note_part("comments")
        if flow.count > before:
            # A slide that has only its number is one without text.
            flow.add_all("paragraph", self._numbers)
        if flow.count > before and root.get("show") in {"0", "false"}:
            flow.note_part("hidden_slides")
        return flow.count > before

    def _parsed(self, part: str) -> Any:
        return self._package.parse(part)

    def _add_repeated(self, shape: SlideShape) -> None:
        """Add a footer, header or date, once in the deck; the number of a slide waits for its end."""
        for line in frame_lines(shape.element):
            if shape.placeholder == "sldNum":
                self._numbers[one_line(line.text)] = None
            elif line.text not in self._repeated:
                self._repeated.add(line.text)
                self._flow.add("paragraph", line.text)
                self._flow.note_part("footers" if shape.placeholder == "ftr" else "headers")

    def add_backdrops(self, part: str, root: Any) -> None:
        """Add what the slide's layout and master show behind it, once for all the slides that they are behind."""
        for behind in () if root.get("showMasterSp") in {"0", "false"} else backdrop(self._package, part):
            if behind not in self._seen_backdrops:
                self._seen_backdrops.add(behind)
                content = self._parsed(behind)
                for shape in () if content is None else shapes_of(content):
                    # Placeholders only say where a slide has its own text.
                    if shape.placeholder is None:
                        self._shapes.add(shape._replace(part=behind), has_heading=False)

    def add_notes(self, part: str) -> None:
        for notes in self._package.related(part, "notesSlide"):
            root = self._parsed(notes)
            before = self._flow.count
            for shape in () if root is None else shapes_of(root):
                if shape.placeholder in FURNITURE:
                    self._add_repeated(shape)
                elif shape.placeholder != "sldImg":
                    self._shapes.add(shape._replace(part=notes), has_heading=False)
            if self._flow.count > before:
                self._flow.note_part("notes")
