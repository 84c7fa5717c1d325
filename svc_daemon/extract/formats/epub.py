"""EPUB: the chapters in the order of the book's spine, each read as HTML."""

import posixpath
from typing import Any
from urllib.parse import unquote

from lxml import etree

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.archives import check_entities, open_archive
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.html import add_markup
from svc_daemon.extract.formats.texts import decode

_CONTAINER = "META-INF/container.xml"


def read(given: Given) -> Document:
    """Read an EPUB. Raises ExtractionFailed if it is damaged, copy-protected or over the limits."""
    with open_archive(given.data, given.limits) as archive:
        if "META-INF/encryption.xml" in archive.namelist() and "META-INF/rights.xml" in archive.namelist():
            raise documents.encrypted()
        flow = FlowDocument()
        try:
            package_path = str(next(_parse(archive.read(_CONTAINER)).iter("{*}rootfile")).get("full-path"))
            package = _parse(archive.read(package_path))
        except (etree.LxmlError, StopIteration) as error:
            raise documents.unreadable("The EPUB is damaged: its list of chapters can't be read.") from error
        hrefs = {item.get("id"): item.get("href") for item in package.iter("{*}item")}
        chapters = filter(None, (hrefs.get(reference.get("idref")) for reference in package.iter("{*}itemref")))
        for href in chapters:
            chapter = posixpath.normpath(posixpath.join(posixpath.dirname(package_path), unquote(href)))
            if chapter in archive.namelist():
                markup = archive.read(chapter)
                check_entities([markup])
                add_markup(flow, decode(markup)[0])
    return flow.finish(title=_first_text(package, "title"), language=_first_text(package, "language"))


def _parse(xml: bytes) -> Any:
    return etree.fromstring(xml, etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False))


def _first_text(package: Any, name: str) -> str | None:
    return next((element.text for element in package.iter(f"{{*}}{name}") if element.text), None)
