"""The documents that are read, the waves in which small ones share a child, and why one can't be read.

Only formats that need no third-party parser may share a child, because a crash of a parser would end the whole wave. A
document's name and declared type decide whether it joins a wave. If its bytes turn out to be of a format that may not
share, the child doesn't read the document.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from svc_daemon.core.text.chunking import ChunkingOptions, RecognizedPage
from svc_daemon.core.text.document_formats import DocumentFormat
from svc_daemon.core.text.media_types import detect_as, find_format, from_declared, from_filename
from svc_daemon.wire.light.error_codes import SourceErrorCode


class DocumentContent(Protocol):
    """The stored bytes of a document. Methods raise FileNotFoundError if the bytes are lost."""

    async def read(self, offset_bytes: int, most_bytes: int) -> bytes:
        """Read up to `most_bytes` from the offset."""

    def open_file(self) -> AbstractAsyncContextManager[int]:
        """Open a file with the bytes, and yield its descriptor, positioned at the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """A stored file to extract text from."""

    content: DocumentContent
    filename: str
    #: The declared media type, or empty.
    content_type: str
    chunking: ChunkingOptions
    #: Whether it is a page from the web, with menus and other text around its main part.
    is_page: bool = False
    #: The pages that were recognised, by their numbers.
    recognized: Mapping[int, RecognizedPage] = field(default_factory=dict)
    #: Whether to raise NeedsRecognition if text of other pages may be in pictures. Otherwise it is left out.
    awaits_recognition: bool = False


#: Maximum number of documents per child.
WAVE_DOCUMENTS = 64
#: Maximum size of a document in a wave, in bytes.
WAVE_DOCUMENT_BYTES = 256 * 1024
#: The formats that may share a child.
_SHARING = frozenset({"text", "markdown", "code", "csv", "json", "rst", "asciidoc", "org", "latex", "man"})


class NotRead(Exception):
    """The child process did not read this document. The document may still be readable."""


class NeedsOwnChild(NotRead):
    """The document can't share a child process with other documents, because of its format or size."""


class NeedsRecognition(NotRead):
    """The text of these pages is in pictures, so it must be recognised first."""

    def __init__(self, pages: Sequence[int]) -> None:
        super().__init__(pages)
        self.pages = pages


def may_share_a_child(filename: str, content_type: str, size_bytes: int) -> bool:
    """Whether a document may share a child process, judged by its name, declared type and size."""
    return size_bytes <= WAVE_DOCUMENT_BYTES and _are_sharing(from_filename(filename), content_type)


@lru_cache
def _are_sharing(named: str | None, content_type: str) -> bool:
    """Whether every format that the file name and the declared type suggest may share a child process."""
    announced = from_declared(content_type)
    # The third type is the one that is detected if the bytes are text.
    types = (named, announced, detect_as(b"text", named, announced))
    formats = [find_format(media_type or "") for media_type in types]
    return all(format_ is None or shares(format_) for format_ in formats)


def shares(format_: DocumentFormat) -> bool:
    """Whether one child process may read several documents of this format."""
    return format_.key in _SHARING


#: Retry only failures that the machine may have caused.
_RETRYABLE = frozenset({SourceErrorCode.EXTRACTION_CRASHED})


class ExtractionFailed(Exception):
    """No text can be extracted. `message` is a sentence for the user."""

    def __init__(self, code: SourceErrorCode, message: str, retryable: bool | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retryable = code in _RETRYABLE if retryable is None else retryable


def no_text(message: str = "The document holds no text.") -> ExtractionFailed:
    return ExtractionFailed(SourceErrorCode.NO_EXTRACTABLE_TEXT, message)


def unsupported(message: str) -> ExtractionFailed:
    return ExtractionFailed(SourceErrorCode.UNSUPPORTED_FORMAT, message)


def unreadable(message: str) -> ExtractionFailed:
    return ExtractionFailed(SourceErrorCode.DOCUMENT_UNREADABLE, message)


def encrypted() -> ExtractionFailed:
    return ExtractionFailed(SourceErrorCode.DOCUMENT_ENCRYPTED, "The document needs a password; store it without one.")


def over_limit(message: str) -> ExtractionFailed:
    return ExtractionFailed(SourceErrorCode.EXTRACTION_LIMIT_EXCEEDED, message)


def crashed(message: str) -> ExtractionFailed:
    return ExtractionFailed(SourceErrorCode.EXTRACTION_CRASHED, message)
