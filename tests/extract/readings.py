"""Read documents in the test's own process, and return parts of them to compare."""

from pathlib import Path
from typing import Any

import pytest

from svc_daemon.core.text.chunking import ChunkingOptions, Document
from svc_daemon.core.text.media_types import detect
from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.documents import ExtractionFailed, StoredDocument
from svc_daemon.extract.formats import Given, find_reader
from svc_daemon.store.files.blobs import BlobFile
from svc_daemon.wire.light.error_codes import SourceErrorCode

Shape = list[tuple[str, str, tuple[str, ...]]]


def read(data: bytes, filename: str, **limits: Any) -> Document:
    """Read bytes as a document in this process, assert that its offsets are exact, and return it."""
    content_type = detect(data, filename)
    given = Given(data=data, filename=filename, content_type=content_type, limits=CageLimits(**limits))
    return exact(find_reader(content_type)(given))


def refused(data: bytes, filename: str, code: SourceErrorCode, **limits: Any) -> str:
    """Assert that bytes are refused permanently with this error code, and return the message."""
    with pytest.raises(ExtractionFailed) as failed:
        read(data, filename, **limits)
    assert (failed.value.code, failed.value.retryable) == (code, False), filename
    return str(failed.value)


def exact(document: Document) -> Document:
    """Assert that the offsets of all blocks are exact, and return the document."""
    for block in document.blocks:
        assert block.text == document.text[block.char_start : block.char_end]
    return document


def shape(document: Document) -> Shape:
    return [(block.kind, block.text, block.headings) for block in document.blocks]


def lines(document: Document) -> list[tuple[int | None, int | None]]:
    return [(block.line_start, block.line_end) for block in document.blocks]


def document_at(
    path: Path, filename: str | None = None, content_type: str = "", chunking: ChunkingOptions | None = None
) -> StoredDocument:
    """Return the file as a stored document, with its own name unless another is given."""
    return StoredDocument(
        content=BlobFile(path),
        filename=filename or path.name,
        content_type=content_type,
        chunking=chunking or ChunkingOptions(),
    )
