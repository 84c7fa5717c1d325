"""The stored documents that the extractor reads."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from svc_daemon.core.text.chunking import ChunkingOptions


class DocumentContent(Protocol):
    """The stored bytes of a document. Its methods raise FileNotFoundError if they are lost."""

    async def read(self, offset_bytes: int, most_bytes: int) -> bytes:
        """Read up to `most_bytes` from the offset."""

    def open_file(self) -> AbstractAsyncContextManager[int]:
        """Lend a descriptor of a file with the bytes, at its start; it is closed when the block ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """A stored file to extract."""

    content: DocumentContent
    filename: str
    #: The declared media type; may be empty.
    content_type: str
    chunking: ChunkingOptions
