"""The bytes of one file on their way to a storage address, from any offset on."""

from collections.abc import Iterator
from typing import Protocol


class Content(Protocol):
    """Bytes of known length that can be read more than once."""

    @property
    def size_bytes(self) -> int: ...

    def blocks(self, offset: int) -> Iterator[bytes]:
        """The bytes from `offset` to the end, in blocks of any size."""
        ...


class BytesContent:
    """Bytes that are in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def size_bytes(self) -> int:
        return len(self._data)

    def blocks(self, offset: int) -> Iterator[bytes]:
        """The rest of the bytes as one block."""
        yield self._data[offset:] if offset else self._data
