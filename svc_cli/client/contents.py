"""The content of an upload, readable from any offset."""

import hashlib
import os
from collections.abc import Iterator
from typing import BinaryIO, Protocol

#: Block size for reading files.
BLOCK_BYTES = 1024 * 1024


class Content(Protocol):
    """Bytes of known length that can be read again."""

    @property
    def size_bytes(self) -> int: ...

    def blocks(self, offset: int) -> Iterator[bytes]:
        """Yield the bytes from `offset` to the end, in blocks."""
        ...


class BytesContent:
    """Content held in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def size_bytes(self) -> int:
        return len(self._data)

    def blocks(self, offset: int) -> Iterator[bytes]:
        """Yield the bytes from `offset` to the end as one block."""
        yield self._data[offset:] if offset else self._data


class OpenFileContent:
    """The content of an open file. The service refuses the file if its content changes after hashing."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size_bytes = os.fstat(file.fileno()).st_size

    def sha256(self) -> str:
        """Return the SHA-256 in hexadecimal."""
        digest = hashlib.sha256()
        for block in self.blocks(0):
            digest.update(block)
        return digest.hexdigest()

    def blocks(self, offset: int) -> Iterator[bytes]:
        """Yield the bytes from `offset` up to the size that the file had when opened."""
        self._file.seek(offset)
        left_bytes = self.size_bytes - offset
        while block := self._file.read(min(BLOCK_BYTES, left_bytes)):
            left_bytes -= len(block)
            yield block
