"""OpenDocument: texts, sheets, decks and drawings, as archives or as one XML file, and their templates.

Each slide is a page headed by its title, and each sheet a page headed by its name and its column names.
"""

from contextlib import suppress

from lxml import etree

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.archives import check_entities, open_archive
from svc_daemon.extract.builders import FlowDocument, one_line
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.odf.styles import Look, Styles, attribute, full, short
from svc_daemon.extract.formats.odf.walk import BodyWalk, OdfBlock, number_of
from svc_daemon.extract.tables import NumberedRow, with_headings

_PARSER_OPTIONS = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": True}
#: Objects within a document that are read at most.
_OBJECTS = 1000


class Package:
    """The XML parts of a document."""

    def __init__(self, given: Given, flow: FlowDocument) -> None:
        self._flow = flow
        self._parts: dict[str, bytes] = {}
        self._objects: set[str] = set()
        self._flat: etree._Element | None = None
        if not given.data.startswith(b"PK"):
            check_entities([given.data])
            self._flat = self._parse(given.data, "The file")
            return
        with open_archive(given.data, given.limits) as archive:
            parts = ((name, archive.read_xml(name)) for name in archive.namelist() if name.endswith(".xml"))
            self._parts = {name: xml for name, xml in parts if xml}
        if b"encryption-data" in self._parts.get("META-INF/manifest.xml", b""):
            raise documents.encrypted()

    def root(self, name: str) -> etree._Element | None:
        """Return the root of a part such as `content.xml`; None if there is none."""
        if self._flat is not None or name not in self._parts:
            return self._flat
        return self._parse(self._parts[name], name)

    def open_object(self, address: str) -> etree._Element | None:
        """Return the content of an embedded object, once."""
        name = f"{address.removeprefix('./').rstrip('/')}/content.xml"
        if name in self._objects or name not in self._parts or len(self._objects) >= _OBJECTS:
            return None
        self._objects.add(name)
        return self.root(name)

    def _parse(self, data: bytes, name: str) -> etree._Element | None:
        options = {**_PARSER_OPTIONS, "remove_comments": True, "remove_pis": True}
        with suppress(etree.XMLSyntaxError):
            return etree.fromstring(data, etree.XMLParser(**options))
        self._flow.warn(f"{name} is damaged: its text may not be complete.")
        with suppress(etree.XMLSyntaxError):
            return etree.fromstring(data, etree.XMLParser(**options, recover=True))
        return None


def read(given: Given) -> Document:
    """Read an OpenDocument file. Raises ExtractionFailed if it is damaged, encrypted or over the limits."""
    flow = FlowDocument()
    package = Package(given, flow)
    content, styled, facts = (package.root(f"{name}.xml") for name in ("content", "styles", "meta"))
    if content is None:
        raise documents.unreadable("The OpenDocument file is damaged: its content can't be read.")
    walk = BodyWalk(flow, Styles(content, styled), package.open_object)
    for control in content.iterfind(f".//{full('office:forms')}//*[@{full('form:id')}]"):
        walk.controls[attribute(control, "form:id")] = _control_text(control)
    masters = Masters(flow, BodyWalk(flow, Styles(styled, content), package.open_object), styled)
    body = content.find(f".//{full('office:body')}")
    # A formula has no body.
    main = content if body is None else next(iter(body), body)
    pages: int | None = None
    empty: list[int] = []
    if short(main.tag) == "office:spreadsheet":
        masters.of_sheets = True
        pages = add_sheets(flow, walk, main)
        masters.add("header", "footer")
    elif short(main.tag) in ("office:presentation", "office:drawing"):
        pages, empty = add_slides(flow, walk, main, masters)
    else:
        masters.add("header")
        walk.walk(main)
        masters.add("footer")
    named = {name: "" if facts is None else facts.findtext(f".//{full(name)}") for name in ("dc:title", "dc:language")}
    return flow.finish(
        # The first heading of a spreadsheet is the name of a sheet.
        title=named["dc:title"] or walk.title or (None if masters.of_sheets else flow.headings.first),
        pages=pages,
        pages_without_text=empty,
        language=named["dc:language"] or None,
    )


def _control_text(control: etree._Element) -> str:
    """Return what a control of a form shows: its label, what was typed in, or what was chosen."""
    chosen = [
        attribute(option, "form:label")
        for option in control
        if "true" in (attribute(option, "form:current-selected"), attribute(option, "form:selected"))
    ]
    shown = [attribute(control, name) for name in ("form:label", "form:current-value", "form:value")]
    return one_line(", ".join(chosen) or next(filter(None, shown), ""))


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
        places = [at for at, piece in enumerate(pieces) if piece.kind == "row"]
        rows = (NumberedRow(pieces[at].level, pieces[at].cells, at) for at in places)
        headings = {row.given: heading for row, heading in with_headings(rows) if heading}
        for at, piece in enumerate(pieces):
            if at in headings:
                flow.add_heading(2, headings[at])
            else:
                walk.put(piece)
        for piece in drawings:
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
