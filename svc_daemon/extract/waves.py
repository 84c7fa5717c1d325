"""Waves: groups of small documents that share one child process, to save forks.

Only formats that need no third-party parser may share a child, because a crash of a parser would end the whole wave. A
document's name and declared type decide whether it joins a wave. If its bytes turn out to be of a format that may not
share, the child doesn't read the document.
"""

from functools import lru_cache

from svc_daemon.core.text.media_types import DocumentFormat, detect_as, find_format, from_declared, from_filename

#: Maximum number of documents per child.
WAVE_DOCUMENTS = 64
#: Maximum size of a document in a wave, in bytes.
WAVE_DOCUMENT_BYTES = 256 * 1024
#: The formats that may share a child.
_SHARING = frozenset({"text", "markdown", "code", "csv", "json"})


class NotRead(Exception):
    """The child process did not read this document. The document may still be readable."""


class NeedsOwnChild(NotRead):
    """The document can't share a child process with other documents, because of its format or size."""


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
