"""HTTP responses with limits of time and size that hold whatever the server sends.

`http.client` limits only the time of each read, so a server that sends a byte now and then would keep a client forever.
"""

import http.client
import io
import math
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NoReturn

from svc_daemon.wire.light.parsing import parse_json

#: Block size for reading long responses.
BLOCK_BYTES = 64 * 1024
#: The size up to which a response is read into memory.
MOST_BYTES = 64 * 1024 * 1024
#: Seconds for the rest of a head of which the first bytes have arrived.
HEAD_S = 10.0
#: Maximum number of interim responses, such as `100 Continue`, before the final one.
MOST_INTERIM = 20
#: The slowest rate at which a body that is read into memory may arrive. For the first bytes, there is more time.
SLOWEST_BYTES_PER_S = 4096
_BLANK_LINES = frozenset({b"\r\n", b"\n"})


class OddResponse(http.client.HTTPException):
    """No service answers like this, so another attempt is of no use."""


def parse_answer(content: bytes | bytearray, **options: Any) -> Any:
    """Parse the JSON of an answer with the options of `json.loads`.

    Raises ValueError also for what Python's parser lets pass: text that can't be encoded again, and numbers like NaN.
    """
    # A proxy may have put a byte order mark in front.
    document = parse_json(content.decode("utf-8-sig"), parse_constant=_refuse_constant, **options)
    if b"\\ud" in content.lower():
        # An escape may stand for half of a character.
        _check_encodable(document)
    return document


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _check_encodable(document: Any) -> None:
    """Raise ValueError if a text in the document is not valid Unicode."""
    if isinstance(document, str):
        document.encode()
    elif isinstance(document, dict | list):
        for value in [*document, *document.values()] if isinstance(document, dict) else document:
            _check_encodable(value)


class _LimitedReader(io.RawIOBase):
    """Reads a socket until a given time, and up to a number of bytes, even if more bytes arrive."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, silence_s: float, until_s: float) -> None:
        self._raw, self._socket, self._silence_s, self._last_s = raw, sock, silence_s, until_s
        self._came_s = -math.inf
        self.limit(math.inf)

    def limit(self, seconds: float, most_bytes: float = math.inf, bytes_per_s: float = math.inf) -> None:
        """Set the time and number of bytes that are left. Each byte adds time for `bytes_per_s`."""
        self._until_s = time.monotonic() + seconds
        self._left_bytes, self._bytes_per_s = most_bytes, bytes_per_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        left_s = min(self._until_s, self._last_s) - time.monotonic()
        if left_s <= 0:
            raise self._late()
        self._socket.settimeout(min(left_s, self._silence_s))
        try:
            count = self._raw.readinto(buffer) or 0
        except TimeoutError:
            raise self._late() from None
        self._came_s = time.monotonic()
        self._until_s += count / self._bytes_per_s
        self._left_bytes -= count
        if self._left_bytes < 0:
            raise OddResponse("the answer is too long")
        return count

    def limit_silence(self, seconds: float) -> None:
        self._silence_s = seconds

    def _late(self) -> Exception:
        """Return the error for a server that is silent, or for one that still sends at the end of the time."""
        is_silent = time.monotonic() - self._came_s >= self._silence_s
        return TimeoutError("timed out") if is_silent else OddResponse("the answer arrives too slowly")

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Lines(io.BufferedReader):
    """Limits each head of a response, and remembers the last line, which shows whether the head is whole."""

    def __init__(self, reader: _LimitedReader, silence_s: float) -> None:
        super().__init__(reader)
        self._reader, self._silence_s = reader, silence_s
        self.last = b"\n"
        self.heads: int | None = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        if self.heads is not None and self.last in _BLANK_LINES:
            self.heads += 1
            if self.heads > MOST_INTERIM:
                raise OddResponse("the answer has too many interim responses")
            self._reader.limit(self._silence_s)
            self.peek(1)
            self._reader.limit(HEAD_S)
        self.last = super().readline(size)
        return self.last


class LimitedResponse(http.client.HTTPResponse):
    """An HTTP response with limits, which corrects some faults of `http.client`.

    It raises RemoteDisconnected if the headers end early, skips all interim responses, not only `100 Continue`, and
    raises OddResponse for chunks of impossible sizes.
    """

    def __init__(
        self, sock: socket.socket, *arguments: Any, silence_s: float, until_s: float = math.inf, **options: Any
    ) -> None:
        """`silence_s` is the timeout of each read, and `until_s` the time at which the whole response must be read."""
        super().__init__(sock, *arguments, **options)
        self._socket, self._silence_s, self._until_s = sock, silence_s, until_s

    def abort(self) -> None:
        """Close the connection. Any thread may call this; the reading thread gets an error."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def limit_silence(self, seconds: float) -> None:
        """Change the timeout of each read, and of each line."""
        self._silence_s = seconds
        self._reader.limit_silence(seconds)

    def begin(self) -> None:
        self._reader = _LimitedReader(self.fp.detach(), self._socket, self._silence_s, self._until_s)
        lines = self.fp = _Lines(self._reader, self._silence_s)
        while True:
            super().begin()
            if lines.last not in _BLANK_LINES:
                raise http.client.RemoteDisconnected("Remote end closed connection within the head of its answer")
            if not 101 < self.status < 200:
                break
            self.headers = None  # type: ignore[assignment]  # otherwise `begin` would not read the next headers
        lines.heads = None
        self._reader.limit(math.inf)

    def read_whole(self, most_bytes: int = MOST_BYTES) -> bytearray:
        """Read the body into memory. Raises OddResponse if it is longer than `most_bytes`, or arrives too slowly."""
        if (self.length or 0) > most_bytes:
            raise OddResponse("the answer is too long")
        body = bytearray()
        for block in self.blocks(most_bytes):
            body += block
        return body

    def blocks(self, most_bytes: float = math.inf) -> Iterator[bytes]:
        """Yield the bytes of the body as they arrive. Raises OddResponse like `read_whole`."""
        # On a chunked response, `read` would wait for all requested bytes.
        read = self.read1 if self.chunked else self.read
        # The time that is left counts only while something is read, and more bytes add to it.
        left_s, left_bytes = self._silence_s, most_bytes
        while True:
            began_s = time.monotonic()
            self._reader.limit(left_s, left_bytes, SLOWEST_BYTES_PER_S)
            block = read(BLOCK_BYTES)
            if not block:
                break
            left_s += len(block) / SLOWEST_BYTES_PER_S - (time.monotonic() - began_s)
            left_s, left_bytes = min(self._silence_s, left_s), left_bytes - len(block)
            yield block
        if self.length:
            raise http.client.IncompleteRead(b"", self.length)

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of the body as they arrive. Raises OddResponse if one is longer than MOST_BYTES.

        Each has to arrive within the timeout of a read, so that single bytes don't keep a client forever.
        """
        while True:
            self._reader.limit(self._silence_s)
            line = self.readline(MOST_BYTES)
            if not line:
                break
            if len(line) == MOST_BYTES:
                raise OddResponse("the answer has a line that is too long")
            yield line

    def _read_next_chunk_size(self) -> int:
        size: int = super()._read_next_chunk_size()  # type: ignore[misc]
        if not 0 <= size <= sys.maxsize:
            raise OddResponse("the answer has a chunk of an impossible size")
        return size
