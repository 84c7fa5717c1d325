"""The content of an upload, readable from any offset."""

from collections.abc import Iterator
from typing import Protocol


class Content(Protocol):
    """Bytes of known length that can be read more than once."""

    @property
    def size_bytes(self) -> int: ...

    def blocks(self, offset: int) -> Iterator[bytes]:
        """Yield the bytes from `offset` to the end, in blocks of any size."""
        ...


class BytesContent:
    """Content held in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def size_bytes(self) -> int:
        return len(self._data)

    def blocks(self, offset: int) -> Iterator[bytes]:
        """Yield the remaining bytes as one block."""
        yield self._data[offset:] if offset else self._data
