"""Picture files: the text that was recognised in them."""

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats import Given


def read(given: Given) -> Document:
    """Read a picture, or the pages of a TIFF. Raises ExtractionFailed if nothing can recognise its text."""
    if given.depth or not (given.limits.recognizer or given.recognized):
        way_out = "" if given.depth else given.limits.unrecognized
        raise documents.unsupported(f"Files of type {given.content_type} can't be read as text. {way_out}".rstrip())
    flow, empty = FlowDocument(), []
    count = max(given.recognized, default=0)
    if given.limits.recognizer:
        from svc_daemon.extract.scans import pictures  # noqa: PLC0415 - needs the libraries of the extra

        try:
            count = pictures.count_frames(given.data)
        except pictures.PictureUnreadable as error:
            raise documents.unreadable("The picture is damaged, or not of the type that it seems to be.") from error
    for flow.page in range(1, count + 1):
        if not flow.add_recognized(given.recognized.get(flow.page)):
            empty.append(flow.page)
    return flow.finish(pages=count, pages_without_text=empty, pictured_pages=empty)
