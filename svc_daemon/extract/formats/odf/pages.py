"""Pages of OpenDocument files: the sheets of a spreadsheet, the slides of a deck, and what masters add to all pages."""

from lxml import etree

from svc_daemon.extract.builders import FlowDocument, one_line
from svc_daemon.extract.formats.odf.styles import Look, attribute, full, short
from svc_daemon.extract.formats.odf.walk import BodyWalk, OdfBlock, number_of
from svc_daemon.extract.formats.text.texts import column_heading

#: Fields whose text differs from page to page.
_FIELDS = tuple(
    full(f"text:{name}") for name in ("page-number", "page-count", "sheet-name", "date", "time", "title", "file-name")
)
_PARAGRAPHS = (full("text:p"), full("text:h"))
#: On slides, white text is the rule where the background is dark, so no colour hides text.
_SLIDE = Look(is_backed=True)
_PAGE = "style:drawing-page-properties"


class Masters:
    """Adds the text that master pages put on each page, once."""

    def __init__(self, flow: FlowDocument, walk: BodyWalk, styled: etree._Element | None) -> None:
        self._flow = flow
        #: Walks the masters, with their own styles.
        self._walk = walk
        self.of_sheets = False
        self._seen: set[str] = set()
        self._pages = [] if styled is None else [*styled.iter(full("style:master-page"))]

    def add(self, *places: str) -> None:
        """Add the headers or footers of all pages."""
        for part in (part for page in self._pages for part in page):
            kind = short(part.tag).partition(":")[2].partition("-")[0]
            if kind in places and attribute(part, "style:display") != "false":
                for paragraph in part.iter(*_PARAGRAPHS):
                    if self.is_only_fields(paragraph):
                        self._walk.skipped.add(paragraph)
                self._add_new(self._walk.collect(part), f"{kind}s")

    def add_drawings(self, name: str) -> None:
        """Add what a slide shows of its master's own text."""
        for shape in (shape for page in self._pages if attribute(page, "style:name") == name for shape in page):
            is_placeholder = attribute(shape, "presentation:class") or attribute(shape, "presentation:placeholder")
            if short(shape.tag).startswith("draw:") and not is_placeholder:
                self._add_new(self._walk.collect(shape, _SLIDE), "")

    def add_text(self, footer: str) -> None:
        """Add the footer that a slide names."""
        self._add_new([OdfBlock("paragraph", footer)], "footers")

    def _add_new(self, pieces: list[OdfBlock], kind: str) -> None:
        new = [piece for piece in pieces if (piece.text or "".join(piece.cells)) not in self._seen]
        self._seen.update(piece.text or "".join(piece.cells) for piece in new)
        if new and kind:
            self._flow.note_part(kind)
        for piece in new:
            self._walk.put(piece._replace(kind="paragraph") if piece.kind == "heading" else piece)

    def is_only_fields(self, paragraph: etree._Element) -> bool:
        """Whether a header's line says nothing but the number of the page, or in sheets `Page` and its number."""
        fields = {below for field in paragraph.iter(*_FIELDS) for below in field.iter()}
        beside = [
            *(element.text for element in paragraph.iter() if element not in fields),
            *(element.tail for element in paragraph.iter() if element is not paragraph and element not in fields),
            *(field.tail for field in fields),
        ]
        words = [word for text in beside for word in (text or "").split() if any(map(str.isalpha, word))]
        return bool(fields) and len(words) <= (1 if self.of_sheets else 0)


def add_sheets(flow: FlowDocument, walk: BodyWalk, body: etree._Element) -> int:
    """Add each sheet as a page, and return how many there are."""
    tables = body.findall(full("table:table"))
    for number, table in enumerate(tables, 1):
        flow.page = number
        flow.headings.clear()
        pieces = walk.collect(table)
        at = next((at for at, piece in enumerate(pieces) if piece.kind == "row" and not piece.is_apart), len(pieces))
        # Charts and drawings stand before the rows.
        drawings, pieces = pieces[:at], pieces[at:]
        name = attribute(table, "table:style-name")
        if drawings or pieces:
            flow.add_heading(1, attribute(table, "table:name"))
            _count_hidden(flow, table, width=max((len(piece.cells) for piece in pieces), default=0))
            if walk.styles.first("table", name, "table:display", within="style:table-properties") == "false":
                flow.note_part("hidden_sheets")
        header = column_heading([cell for cell in pieces[0].cells if cell]) if pieces else None
        if header:
            flow.add_heading(2, header)
        for piece in pieces[bool(header) :] + drawings:
            walk.put(piece)
    return len(tables)


def _count_hidden(flow: FlowDocument, table: etree._Element, *, width: int) -> None:
    """Count the hidden rows that hold something, and the hidden columns of this many."""
    rows = (row for row in table.iter(full("table:table-row")) if _is_hidden(row) and "".join(row.itertext()).strip())
    if hidden := sum(number_of(row, "table:number-rows-repeated") for row in rows):
        flow.note_part("hidden_rows", hidden)
    at = hidden = 0
    for column in table.iter(full("table:table-column")):
        count = min(number_of(column, "table:number-columns-repeated"), width - at)
        at += count
        hidden += count if _is_hidden(column) else 0
    if hidden:
        flow.note_part("hidden_columns", hidden)


def _is_hidden(element: etree._Element) -> bool:
    return attribute(element, "table:visibility") in ("collapse", "filter")


def add_slides(flow: FlowDocument, walk: BodyWalk, body: etree._Element, masters: Masters) -> tuple[int, list[int]]:
    """Add each slide as a page; return how many there are, and which hold no text."""
    slides, empty = body.findall(full("draw:page")), list[int]()
    declared = {attribute(each, "presentation:name"): one_line(each.text or "") for each in body}
    for number, slide in enumerate(slides, 1):
        flow.page = number
        flow.headings.clear()
        before = flow.count
        title = slide.find(f".//{full('draw:frame')}[@{full('presentation:class')}='title']")
        if title is not None:
            walk.places.append([])
            walk.walk(title, _SLIDE)
            words, apart = walk.close()
            walk.skipped.add(title)
            flow.add_heading(1, words)
            for piece in apart:
                walk.put(piece)
        walk.walk(slide, _SLIDE)
        style = attribute(slide, "draw:style-name")
        footer = declared.get(attribute(slide, "presentation:use-footer-name"), "")
        if footer and walk.styles.first("drawing-page", style, "presentation:display-footer", within=_PAGE) != "false":
            masters.add_text(footer)
        masters.add_drawings(attribute(slide, "draw:master-page-name"))
        frames = slide.iterfind(f"{full('presentation:notes')}/{full('draw:frame')}")
        notes = [piece for frame in frames for piece in walk.collect(frame, _SLIDE)]
        if notes:
            flow.note_part("notes")
        for piece in notes:
            walk.put(piece)
        if walk.styles.first("drawing-page", style, "presentation:visibility", within=_PAGE) == "hidden":
            flow.note_part("hidden_slides")
        if flow.count == before:
            empty.append(number)
    return len(slides), empty
