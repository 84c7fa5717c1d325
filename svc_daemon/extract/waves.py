"""Waves: several small stored documents that one child reads, one after another, to save a fork for each.

Only the formats that are read line by line with code of ours share a child: what a foreign parser reads may crash it,
so such a document has a child of its own. Its name and declared type decide whether a document may join a wave; the
child detects the format from the bytes, and leaves a document that turns out to be of another format unread.
"""

from dataclasses import dataclass
from pathlib import Path

from svc_daemon.core.text.chunking import ChunkingOptions
from svc_daemon.core.text.media_types import DocumentFormat, detect, find_format, from_declared, from_filename

#: Maximum number of documents of a wave, and maximum size of each.
WAVE_DOCUMENTS = 64
WAVE_DOCUMENT_BYTES = 256 * 1024
#: The formats whose documents may share a child.
_SHARING = frozenset({"text", "markdown", "code", "csv", "json"})


class NotRead(Exception):
    """The document was not read, through no fault of its own: its wave ended before its turn. Read it alone."""


class NeedsOwnChild(NotRead):
    """The document was not read, because its format or its size has no place in a wave. Read it alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """A stored file to extract."""

    path: Path
    filename: str
    #: The declared media type; may be empty.
    content_type: str
    chunking: ChunkingOptions


def may_share_a_child(filename: str, content_type: str, size_bytes: int) -> bool:
    """Whether a stored document may join a wave, as far as its name, its declared type and its size show."""
    # The last one is the type that the bytes have if they are text.
    types = (from_filename(filename), from_declared(content_type), detect(b"text", filename, content_type))
    formats = [find_format(media_type or "") for media_type in types]
    return size_bytes <= WAVE_DOCUMENT_BYTES and all(format_ is None or shares(format_) for format_ in formats)


def shares(format_: DocumentFormat) -> bool:
    """Whether documents of this format may share a child."""
    return format_.key in _SHARING
