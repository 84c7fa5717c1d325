"""Files that are one XML document."""

from typing import Any

from lxml import etree

from svc_daemon.extract import documents
from svc_daemon.extract.archives import check_entities


def parse(data: bytes, damage: str) -> Any:
    """Return the root of a file's XML. Raises ExtractionFailed, with `damage` as its message if the XML is damaged."""
    check_entities([data])
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise documents.unreadable(damage) from error
