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
from svc_daemon.extract.formats.odf.pages import Masters, add_sheets, add_slides
from svc_daemon.extract.formats.odf.styles import Styles, attribute, full, short
from svc_daemon.extract.formats.odf.walk import BodyWalk

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
