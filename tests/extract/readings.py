"""Reading some bytes in the test's own process, and what to look at in the document."""

from svc_daemon.core.text.chunking import Document
from svc_daemon.core.text.media_types import detect
from svc_daemon.extract.formats import Given, find_reader
from svc_daemon.extract.limits import CageLimits

Shape = list[tuple[str, str, tuple[str, ...]]]


def read(data: bytes, filename: str, **limits: int) -> Document:
    """The document of some bytes, read in this process, its offsets checked."""
    content_type = detect(data, filename)
    given = Given(data=data, filename=filename, content_type=content_type, limits=CageLimits(**limits))
    document = find_reader(content_type)(given)
    for block in document.blocks:
        assert block.text == document.text[block.char_start : block.char_end]
    return document


def shape(document: Document) -> Shape:
    return [(block.kind, block.text, block.headings) for block in document.blocks]


def lines(document: Document) -> list[tuple[int | None, int | None]]:
    return [(block.line_start, block.line_end) for block in document.blocks]
