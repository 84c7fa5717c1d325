"""The stored documents that the extractor reads."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from svc_daemon.core.text.chunking import ChunkingOptions


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
