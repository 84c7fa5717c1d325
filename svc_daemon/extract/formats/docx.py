"""DOCX: headings, paragraphs, list items and table rows in order, then footnotes and endnotes.

python-docx opens the file. Its API omits inserted text, content controls and text boxes, so this module reads the XML
of the body itself.
"""

from io import BytesIO
from typing import Any
from zipfile import BadZipFile

import docx
from docx.opc.exceptions import OpcError
from docx.oxml import parse_xml
from docx.oxml.ns import qn
from lxml.etree import LxmlError

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.archives import check_archive
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats import Given

_PARAGRAPH, _TABLE, _ROW, _CELL = qn("w:p"), qn("w:tbl"), qn("w:tr"), qn("w:tc")
_TEXT, _STYLE, _LIST = qn("w:t"), qn("w:pStyle"), qn("w:numPr")
_VALUE = qn("w:val")
_BREAKS = {qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:tab"): "\t", qn("w:noBreakHyphen"): "-"}
#: Word stores each text box twice, the second time for old programs.
_BOX, _FALLBACK = qn("w:txbxContent"), "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_NOTES = ("/footnotes", "/endnotes")


def read(given: Given) -> Document:
    """Read a DOCX file. Raises ExtractionFailed if it is damaged or over the limits."""
    check_archive(given.data, given.limits)
    try:
        document = docx.Document(BytesIO(given.data))
        walker = _Walker(document.styles)
        walker.walk(document.element.body)
        for relation in document.part.rels.values():
            if relation.reltype.endswith(_NOTES) and not relation.is_external:
                walker.walk(parse_xml(relation.target_part.blob))
        return walker.flow.finish(title=document.core_properties.title)
    except (OpcError, LxmlError, BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        raise documents.unreadable("The Word file is damaged: its parts don't fit together.") from error


class _Walker:
    """Adds the text of an XML element to a document, as blocks."""

    def __init__(self, styles: Any) -> None:
        self.flow = FlowDocument()
        #: Maps style ids to heading levels. Built-in styles always have English names.
        self._levels: dict[str, int] = {}
        for style in styles:
            name = (style.name or "").lower()
            if name == "title":
                self._levels[style.style_id] = 0
            elif name.startswith("heading ") and name[8:].isdigit():
                self._levels[style.style_id] = int(name[8:])

    def walk(self, element: Any) -> None:
        """Add an element's contents, in order."""
        for child in element:
            if child.tag == _PARAGRAPH:
                self._add_paragraph(child)
            elif child.tag == _TABLE:
                self._add_table(child)
            elif child.tag != _FALLBACK:
                self.walk(child)

    def _add_table(self, table: Any) -> None:
        """Add a table's rows. A table within a cell becomes part of the cell's text."""
        for row in table.iter(_ROW):
            if next(row.iterancestors(_TABLE)) is table:
                cells = [cell for cell in row.iter(_CELL) if next(cell.iterancestors(_ROW)) is row]
                self.flow.add_row(" ".join(map(_text, cell.iter(_PARAGRAPH))) for cell in cells)

    def _add_paragraph(self, paragraph: Any) -> None:
        text = _text(paragraph)
        style = next((mark.get(_VALUE) for mark in paragraph.iter(_STYLE)), "")
        level = self._levels.get(style)
        if level is not None:
            self.flow.add_heading(level, text)
        else:
            is_item = next(paragraph.iter(_LIST), None) is not None
            self.flow.add("item" if is_item else "paragraph", text)
        for box in paragraph.iter(_BOX):
            if not _is_inside(box, _FALLBACK, paragraph):
                self.walk(box)


def _text(paragraph: Any) -> str:
    """Return a paragraph's text, without deleted text and text boxes."""
    return "".join(
        _BREAKS.get(element.tag) or element.text or ""
        for element in paragraph.iter(_TEXT, *_BREAKS)
        if not _is_inside(element, _BOX, paragraph)
    )


def _is_inside(element: Any, tag: str, top: Any) -> bool:
    for ancestor in element.iterancestors():
        if ancestor is top:
            return False
        if ancestor.tag == tag:
            return True
    return False
