"""The parts of an Open XML file and the relations between them, whatever program wrote it.

A part that is missing or damaged costs itself: it gives a warning and no content. Names are compared without regard to
slashes and capitals. The namespaces of strict Open XML become those that everybody writes.
"""

import base64
import binascii
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import unquote

from lxml import etree

from svc_daemon.core.text.container_types import plain_name
from svc_daemon.extract import documents
from svc_daemon.extract.archives import DAMAGE, check_entities, load_archive
from svc_daemon.extract.builders import DocumentNotes
from svc_daemon.extract.formats import Given

_SCHEMAS = "http://schemas.openxmlformats.org/"
#: The namespaces by their usual prefixes.
NAMESPACES = {
    "w": f"{_SCHEMAS}wordprocessingml/2006/main",
    "p": f"{_SCHEMAS}presentationml/2006/main",
    "s": f"{_SCHEMAS}spreadsheetml/2006/main",
    "a": f"{_SCHEMAS}drawingml/2006/main",
    "c": f"{_SCHEMAS}drawingml/2006/chart",
    "dgm": f"{_SCHEMAS}drawingml/2006/diagram",
    "m": f"{_SCHEMAS}officeDocument/2006/math",
    "r": f"{_SCHEMAS}officeDocument/2006/relationships",
    "mc": f"{_SCHEMAS}markup-compatibility/2006",
    "v": "urn:schemas-microsoft-com:vml",
    "o": "urn:schemas-microsoft-com:office:office",
    "x": "urn:schemas-microsoft-com:office:excel",
}
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/(\w+)")
_FLAT = "{http://schemas.microsoft.com/office/2006/xmlPackage}"
#: Namespaces that begin so are understood, as far as alternative content asks for them.
_UNDERSTOOD = (_SCHEMAS, "http://schemas.microsoft.com/")


@cache
def qname(name: str) -> str:
    """Return the full name of `w:p` and its like, as lxml writes it."""
    prefix, _, local = name.partition(":")
    return f"{{{NAMESPACES[prefix]}}}{local}"


_ID, _CHOICE, _FALLBACK = qname("r:id"), qname("mc:Choice"), qname("mc:Fallback")


class Relation(NamedTuple):
    """A link from one part to another part."""

    id: str
    #: The last word of its type, such as `comments`.
    kind: str
    #: Name of the part, or the address of something outside of the file.
    target: str
    is_external: bool


class OfficePackage:
    """The parts of an Open XML file."""

    def __init__(self, names: Iterable[str], read: Callable[[str], bytes], notes: DocumentNotes) -> None:
        self._names = {plain_name(unquote(name)): name for name in names}
        self._read, self._notes = read, notes
        self._relations: dict[str, dict[str, Relation]] = {}

    def read(self, part: str) -> bytes | None:
        """Return a part's bytes, or None with a warning if it is missing or damaged."""
        name = self._names.get(part)
        try:
            if name is not None:
                return self._read(name)
        except DAMAGE:
            self._notes.warn(f"The part {part} of the file is damaged and was not read.")
        else:
            self._notes.warn(f"The part {part} of the file is missing.")
        return None

    def parse(self, part: str) -> Any:
        """Return the root element of a part, or None with a warning if it is missing or damaged.

        What comes before an error in the XML is kept.
        """
        xml = self.read(part)
        if xml is None:
            return None
        if b"purl.oclc.org/ooxml" in xml:
            xml = _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/\2", xml)
        for recovers in (False, True):
            try:
                root = etree.fromstring(xml, _parser(recover=recovers))
            except etree.XMLSyntaxError:
                root = None
            if root is not None and not recovers:
                return root
        self._notes.warn(f"The part {part} of the file is damaged; some of its text may be missing.")
        return root

    def has(self, part: str) -> bool:
        return part in self._names

    def below(self, folder: str) -> list[str]:
        """Return the names of the parts in a folder, in the order of the numbers in them."""
        found = [name for name in self._names if posixpath.dirname(name) == folder]
        return sorted(found, key=lambda name: (len(name), name))

    def relations(self, part: str = "") -> dict[str, Relation]:
        """Return the relations of a part, or of the whole file, by their ids."""
        if part not in self._relations:
            folder, name = posixpath.split(part)
            path = posixpath.join(folder, "_rels", f"{name}.rels")
            root = self.parse(path) if self.has(path) else None
            self._relations[part] = {} if root is None else dict(_related(root, folder))
        return self._relations[part]

    def related(self, part: str, *kinds: str) -> list[str]:
        """Return the names of the parts to which a part has relations of these kinds."""
        relations = self.relations(part).values()
        return [each.target for each in relations if each.kind in kinds and not each.is_external]

    def target(self, part: str, element: Any, attribute: str = _ID) -> str | None:
        """Return the part that an element names by a relation's id, or None."""
        relation = self.relations(part).get(element.get(attribute) or "")
        return None if relation is None or relation.is_external else relation.target

    def main(self, folder: str, *usual: str) -> str:
        """Return the name of the main part. Raises ExtractionFailed if the file has none."""
        found = [*self.related("", "officeDocument"), *(f"{folder}/{name}" for name in usual)]
        for part in found:
            if self.has(part):
                return part
        raise documents.unreadable("The file is damaged: its main part is missing.")

    def title(self) -> str | None:
        """Return the title in the file's properties, if it has one."""
        parts = [part for part in self.related("", "core-properties") if self.has(part)]
        root = self.parse(parts[0]) if parts else None
        return None if root is None else next((each.text for each in root.iter("{*}title") if each.text), None)


def open_package(given: Given, notes: DocumentNotes) -> OfficePackage:
    """Open a zipped or a flat Open XML file. Raises ExtractionFailed if it is damaged, encrypted or over the limits."""
    if given.data.startswith(b"PK"):
        archive = load_archive(given.data, given.limits)
        return OfficePackage(archive.namelist(), archive.read_xml, notes)
    check_entities([given.data])
    try:
        root = etree.fromstring(given.data, _parser())
    except etree.XMLSyntaxError as error:
        raise documents.unreadable("The file is damaged: its XML can't be read.") from error
    parts = {str(part.get(f"{_FLAT}name")): part for part in root.iter(f"{_FLAT}part")}
    return OfficePackage(parts, lambda name: _flat_bytes(parts[name]), notes)


def alternative(element: Any) -> Any:
    """Return the alternative of `mc:AlternateContent` that is shown; an empty tuple if there is none."""
    for choice in element.iterchildren(_CHOICE):
        wanted = [choice.nsmap.get(prefix, "") for prefix in (choice.get("Requires") or "").split()]
        if all(uri.startswith(_UNDERSTOOD) for uri in wanted):
            return choice
    return next(element.iterchildren(_FALLBACK), ())


def local_name(element: Any) -> str:
    """Return an element's name without its namespace."""
    return str(element.tag.rpartition("}")[2])


def is_on(element: Any, attribute: str) -> bool:
    """Whether a switch is on: the element is there, and its attribute doesn't turn it off."""
    return element is not None and (element.get(attribute) or "1").lower() not in {"0", "false", "off", "none"}


def _parser(*, recover: bool = False) -> Any:
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
        recover=recover,
    )


def _related(root: Any, folder: str) -> Iterator[tuple[str, Relation]]:
    for each in root.iter("{*}Relationship"):
        target, identity = each.get("Target") or "", each.get("Id") or ""
        is_external = (each.get("TargetMode") or "").lower() == "external"
        if not is_external:
            plain = unquote(target).replace("\\", "/")
            target = plain_name(posixpath.normpath(posixpath.join("/" + folder, plain)))
        yield identity, Relation(identity, (each.get("Type") or "").rpartition("/")[2], target, is_external)


def _flat_bytes(part: Any) -> bytes:
    """Return the content of a part of a flat file."""
    content = next(part.iterchildren(f"{_FLAT}xmlData", f"{_FLAT}binaryData"), None)
    if content is None:
        return b""
    if content.tag.endswith("xmlData"):
        return b"".join(etree.tostring(each, with_tail=False) for each in content)
    try:
        return base64.b64decode(content.text or "")
    except binascii.Error as error:
        raise ValueError("The part is not in base 64.") from error
