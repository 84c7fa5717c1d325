"""PPTX: each slide as a page, under its title; shapes in their order, tables by rows, then the speaker's notes."""

from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any
from zipfile import BadZipFile

import pptx
from lxml.etree import LxmlError
from pptx.enum.shapes import MSO_SHAPE_TYPE
from pptx.exc import PythonPptxError

from svc_daemon.core.documents import Document
from svc_daemon.extract import failures
from svc_daemon.extract.archives import check_archive
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats import Given


def read(given: Given) -> Document:
    """Raises ExtractionFailed for a damaged file and for an archive over the limits."""
    check_archive(given.data, given.limits)
    try:
        return _read(pptx.Presentation(BytesIO(given.data)))
    except (PythonPptxError, LxmlError, BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        raise failures.unreadable("The PowerPoint file is damaged: its parts don't fit together.") from error


def _read(deck: Any) -> Document:
    flow, empty = FlowDocument(), []
    for number, slide in enumerate(deck.slides, 1):
        flow.page = number
        if not _add_slide(flow, slide):
            empty.append(number)
    return flow.finish(title=deck.core_properties.title, pages=len(deck.slides), pages_without_text=empty)


def _add_slide(flow: FlowDocument, slide: Any) -> bool:
    title = slide.shapes.title
    words = title.text_frame.text if title is not None else ""
    # Without a title of its own the slide must not stand under the one before.
    flow.headings.clear()
    flow.add_heading(1, words)
    added = [
        _add_shape(flow, shape) for shape in _flat(slide.shapes) if shape.shape_id != getattr(title, "shape_id", None)
    ]
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        added.append(flow.add("paragraph", slide.notes_slide.notes_text_frame.text))
    return bool(words.strip()) or any(added)


def _flat(shapes: Iterable[Any]) -> Iterator[Any]:
    for shape in shapes:
        if shape.shape_type == MSO_SHAPE_TYPE.GROUP:
            yield from _flat(shape.shapes)
        else:
            yield shape


def _add_shape(flow: FlowDocument, shape: Any) -> bool:
    if shape.has_table:
        added = [flow.add_row(cell.text for cell in row.cells) for row in shape.table.rows]
        return any(added)
    if shape.has_text_frame:
        return flow.add_all("paragraph", (paragraph.text for paragraph in shape.text_frame.paragraphs))
    return False
