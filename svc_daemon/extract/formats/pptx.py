"""PPTX: each slide is a page headed by its title, with shapes, tables and speaker notes."""

from collections.abc import Iterable
from io import BytesIO
from typing import Any
from zipfile import BadZipFile

import pptx
from lxml.etree import LxmlError
from pptx.enum.shapes import MSO_SHAPE_TYPE
from pptx.exc import PythonPptxError

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.archives import check_archive
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats import Given


def read(given: Given) -> Document:
    """Read a PPTX file. Raises ExtractionFailed if it is damaged or over the limits."""
    check_archive(given.data, given.limits)
    flow, empty = FlowDocument(), []
    try:
        deck = pptx.Presentation(BytesIO(given.data))
        for number, slide in enumerate(deck.slides, 1):
            flow.page = number
            title = slide.shapes.title
            words = title.text_frame.text if title is not None else ""
            # Drop the previous slide's headings, so that this slide is not placed below them.
            flow.headings.clear()
            flow.add_heading(1, words)
            has_text = _add_shapes(flow, slide.shapes, getattr(title, "shape_id", None)) or bool(words.strip())
            notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
            has_notes = notes is not None and flow.add("paragraph", notes.text)
            if not (has_text or has_notes):
                empty.append(number)
        return flow.finish(title=deck.core_properties.title, pages=len(deck.slides), pages_without_text=empty)
    except (PythonPptxError, LxmlError, BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        raise documents.unreadable("The PowerPoint file is damaged: its parts don't fit together.") from error


def _add_shapes(flow: FlowDocument, shapes: Iterable[Any], title_id: int | None) -> bool:
    """Add the text of shapes and groups, except the title. Returns False if there is no text."""
    added: list[bool] = []
    for shape in shapes:
        if shape.shape_type == MSO_SHAPE_TYPE.GROUP:
            added.append(_add_shapes(flow, shape.shapes, title_id))
        elif shape.shape_id == title_id:
            continue
        elif shape.has_table:
            added += [flow.add_row(cell.text for cell in row.cells) for row in shape.table.rows]
        elif shape.has_text_frame:
            added.append(flow.add_all("paragraph", (paragraph.text for paragraph in shape.text_frame.paragraphs)))
    return any(added)
