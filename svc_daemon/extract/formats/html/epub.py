"""EPUB: the chapters in the order of the book's spine, each read as HTML."""

import posixpath
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

from lxml import etree

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.archives import Members, check_entities, open_members
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.documents import ExtractionFailed
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.html.html import add_markup, decode_markup

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
#: Fonts are scrambled in these ways, which doesn't concern the text.
_FONT_METHODS = frozenset({"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"})
_CHAPTERS = (".xhtml", ".html", ".htm", ".xml")
_CHAPTER_TYPES = frozenset({"application/xhtml+xml", "text/html", "image/svg+xml", "application/x-dtbook+xml"})
#: An item may name others that are shown in its place, one after another.
_MOST_FALLBACKS = 10


class BookFacts(NamedTuple):
    """What the package document says."""

    title: str | None
    language: str | None
    #: The chapters' names in the archive, in reading order. A warning stands for an item that the book lacks.
    chapters: list[str]
    warnings: list[str]


def read(given: Given) -> Document:
    """Read an EPUB. Raises ExtractionFailed if it is damaged, copy-protected or over the limits."""
    flow = FlowDocument()
    failures: list[ExtractionFailed] = []
    with open_members(given.data, given.limits) as members:
        book = _read_package(members)
        locked = _find_locked(members)
        for warning in book.warnings:
            flow.warn(warning)
        unlocked = [chapter for chapter in book.chapters if chapter.lower() not in locked]
        if book.chapters and not unlocked:
            raise documents.encrypted()
        for chapter in book.chapters:
            if chapter not in unlocked:
                flow.warn(f"The chapter {chapter} is copy-protected and was not read.")
                continue
            flow.headings.clear()
            markup = members.read(chapter)
            if markup is None:
                flow.warn(f"The chapter {chapter} is missing or damaged and was not read.")
                continue
            try:
                check_entities([markup])
                text, warnings = decode_markup(markup)
                add_markup(flow, text)
            except ExtractionFailed as failure:
                failures.append(failure)
                warnings = (failure.message,)
            for warning in warnings:
                flow.warn(f"The chapter {chapter}: {warning}")
    if failures and not flow.size:
        raise failures[0]
    return flow.finish(title=book.title or flow.headings.first, language=book.language)


def _read_package(members: Members) -> BookFacts:
    """Read the list of chapters. Raises ExtractionFailed if the book has none."""
    container = _parse(members.read(_CONTAINER))
    roots = container.iter("{*}rootfile") if container is not None else ()
    paths = [unquote(root.get("full-path") or "") for root in roots]
    paths += [name for name in members.names if name.lower().endswith(".opf")]
    package, path = next(
        ((found, path) for path in paths if (found := _parse(members.read(path))) is not None), (None, "")
    )
    if package is None:
        named = sorted(name for name in members.names if name.lower().endswith(_CHAPTERS[:3]))
        if not named:
            raise documents.unreadable("The EPUB is damaged: its list of chapters can't be read.")
        return BookFacts(None, None, named, ["The book's list of chapters is damaged: they were read by their names."])
    warnings: list[str] = []
    chapters = [*dict.fromkeys(_list_chapters(package, posixpath.dirname(path), warnings))]
    return BookFacts(_first_text(package, "title"), _first_text(package, "language"), chapters, warnings)


def _list_chapters(package: Any, folder: str, warnings: list[str]) -> Iterator[str]:
    """Yield the names of the chapters in reading order."""
    items = {item.get("id"): item for item in package.iter("{*}item")}
    references = [reference.get("idref") for reference in package.iter("{*}itemref")]
    if not references:
        warnings.append("The book doesn't say the order of its chapters: they were read as they are listed.")
        references = [name for name, item in items.items() if item.get("media-type") in _CHAPTER_TYPES]
    for reference in references:
        item = items.get(reference)
        for _ in range(_MOST_FALLBACKS):
            # Some books name other types, so the name of a file counts too.
            if item is None or item.get("media-type") in _CHAPTER_TYPES:
                break
            if (item.get("href") or "").lower().endswith(_CHAPTERS):
                break
            item = items.get(item.get("fallback"))
        href = item.get("href") if item is not None else None
        if href:
            yield posixpath.normpath(posixpath.join(folder, unquote(href.partition("#")[0]).replace("\\", "/")))
        else:
            warnings.append(f"The chapter {reference} is not in the book's list of files and was not read.")


def _find_locked(members: Members) -> set[str]:
    """Return the names, in small letters, of files that are encrypted so that only a key opens them."""
    encryption = _parse(members.read(_ENCRYPTION))
    locked = set()
    for data in encryption.iter("{*}EncryptedData") if encryption is not None else ():
        method = next(data.iter("{*}EncryptionMethod"), None)
        if method is None or method.get("Algorithm") not in _FONT_METHODS:
            locked |= {
                posixpath.normpath(unquote(reference.get("URI") or "")).lstrip("/").lower()
                for reference in data.iter("{*}CipherReference")
            }
    return locked


def _parse(xml: bytes | None) -> Any:
    """Return the root of an XML document, read as far as it can be; None if it can't."""
    if not xml:
        return None
    try:
        return etree.fromstring(
            xml, etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, recover=True)
        )
    except (etree.LxmlError, ValueError):
        return None


def _first_text(package: Any, name: str) -> str | None:
    return next((element.text for element in package.iter(f"{{*}}{name}") if element.text), None)
