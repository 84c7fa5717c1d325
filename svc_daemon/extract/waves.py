"""Waves: several small documents that one child process reads, one after another, to save a fork for each.

Only documents in formats that need no third-party parser share a child. A document could crash such a parser, and with
it the child, so documents in other formats have a child of their own. A document's name and declared type decide
whether it may join a wave. The child then detects the format from the bytes, and does not read the document if that
format may not share a child.
"""

from functools import lru_cache

from svc_daemon.core.text.media_types import DocumentFormat, detect_as, find_format, from_declared, from_filename

#: Maximum number of documents that one child reads.
WAVE_DOCUMENTS = 64
#: Maximum size of a document that shares a child; a larger one is read alone.
WAVE_DOCUMENT_BYTES = 256 * 1024
#: The formats whose documents may share a child process.
_SHARING = frozenset({"text", "markdown", "code", "csv", "json"})


class NotRead(Exception):
    """The document was not read, because the child ended early for another reason. Read it alone."""


class NeedsOwnChild(NotRead):
    """The document was not read, because its format or size does not allow it to share a child. Read it alone."""


def may_share_a_child(filename: str, content_type: str, size_bytes: int) -> bool:
    """Return whether a stored document may share a child, judged by its name, its declared type and its size."""
    return size_bytes <= WAVE_DOCUMENT_BYTES and _are_sharing(from_filename(filename), content_type)


@lru_cache
def _are_sharing(named: str | None, content_type: str) -> bool:
    """Return whether every type that the document could turn out to have may share a child. Results are cached."""
    announced = from_declared(content_type)
    # The third type is the one that would be detected if the document's bytes were text.
    types = (named, announced, detect_as(b"text", named, announced))
    formats = [find_format(media_type or "") for media_type in types]
    return all(format_ is None or shares(format_) for format_ in formats)


def shares(format_: DocumentFormat) -> bool:
    """Return whether documents of this format may share a child process."""
    return format_.key in _SHARING
