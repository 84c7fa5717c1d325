"""Reads responses, and decodes their bodies in small steps within the size limits.

A small gzip body can expand a thousandfold, and a body that decodes to nothing can go on forever. So received and
decoded bytes are both counted.
"""

import asyncio
import zlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, suppress
from email.utils import parsedate_to_datetime
from typing import Protocol

import httpcore

from svc_daemon.errors import ServiceError
from svc_daemon.fetch.contract import FetchFailed, Reason, Sink
from svc_daemon.wire.light.error_codes import ErrorCode

#: Maximum length of an ETag or a similar header, which is stored and sent at the next refresh.
MAX_VALIDATOR_CHARACTERS = 1024

REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: Statuses with a usable, complete body; 203 comes from a proxy.
SUCCESSES = frozenset({200, 203})
NOT_MODIFIED = 304
#: Statuses with which a host may ask to be left alone for a while.
BUSY = frozenset({429, 503})


#: Maximum number of bytes decoded in one step.
PIECE_BYTES = 64 * 1024

#: The only content coding requested; Python decodes it step by step.
ACCEPTED_CODING = "gzip"
_GZIP_NAMES = frozenset({"gzip", "x-gzip"})


class FetchedResponse:
    """Status and headers of a response, before its body is read."""

    def __init__(self, response: httpcore.Response) -> None:
        self.status = response.status
        self._response = response
        self._headers: list[tuple[bytes, str]] = []
        for name, value in response.headers:
            # Headers should be ASCII, but some are UTF-8 or Latin-1.
            try:
                text = value.decode("utf-8")
            except UnicodeDecodeError:
                text = value.decode("latin-1")
            self._headers.append((name.lower(), text.strip()))

    def header(self, name: str) -> str:
        """Return the first header of this name, or an empty string."""
        return next(iter(self.headers(name)), "")

    def headers(self, name: str) -> list[str]:
        key = name.lower().encode("ascii")
        return [value for header, value in self._headers if header == key]

    def validator(self, name: str) -> str | None:
        """Return a header that identifies a version of the content, such as ETag.

        Returns None if it is missing, too long or not ASCII.
        """
        value = self.header(name)
        return value if value and value.isascii() and len(value) <= MAX_VALIDATOR_CHARACTERS else None

    def retry_after_s(self) -> int | None:
        """Return for how many seconds the host asks to be left alone (RFC 9110, 10.2.3); None if it does not."""
        asked = self.header("Retry-After")
        if self.status not in BUSY or not asked:
            return None
        if asked.isascii() and asked.isdigit():
            return int(asked[:9])
        # A time of the host's clock, so compare it with that. A year or offset may be too large to be computed with.
        with suppress(ValueError, TypeError, OverflowError):
            until, now = parsedate_to_datetime(asked), parsedate_to_datetime(self.header("Date"))
            return max(0, round((until - now).total_seconds()))
        return None

    async def body(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as received, still encoded."""
        async for chunk in self._response.aiter_stream():
            yield chunk


async def receive(response: FetchedResponse, sink: Sink, max_bytes: int) -> int:
    """Decode the whole body into the sink, and return its decoded size.

    Raises `file_too_large`, FetchFailed for an unrequested or invalid content coding, or an error of the sink.
    """
    headers = response.headers("Content-Encoding")
    codings = [coding.strip().lower() for header in headers for coding in header.split(",")]
    applied = [coding for coding in codings if coding not in ("", "identity")]
    if len(applied) > 1 or not _GZIP_NAMES.issuperset(applied):
        # Several codings could expand a small body to a terabyte.
        raise FetchFailed(Reason.ENCODING, "The remote host sent a content encoding that was not requested.")
    decoder: _Decoder = _Gzip() if applied else _Identity()
    _refuse_over(int(response.header("Content-Length") or 0), max_bytes)
    wire_bytes, size_bytes = 0, 0
    async with aclosing(response.body()) as chunks:
        async for chunk in chunks:
            wire_bytes += len(chunk)
            _refuse_over(wire_bytes, max_bytes)
            for piece in decoder.pieces(chunk):
                size_bytes += len(piece)
                _refuse_over(size_bytes, max_bytes)
                await sink.append(piece)
                # Let other tasks run: a chunk may have hundreds of pieces.
                await asyncio.sleep(0)
    decoder.finish()
    return size_bytes


class _Decoder(Protocol):
    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Decode a chunk, and yield pieces of limited size."""
        ...

    def finish(self) -> None:
        """Raise FetchFailed if the body is incomplete."""
        ...


class _Identity:
    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        yield chunk

    def finish(self) -> None:
        """Do nothing: the connection reports an incomplete body."""


class _Gzip:
    """Decodes one gzip stream. Bytes after the stream are refused, because ignoring them could lose content."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(zlib.MAX_WBITS | 16)

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        rest = chunk
        while rest:
            try:
                piece = self._stream.decompress(rest, PIECE_BYTES)
            except zlib.error as error:
                raise _bad_coding() from error
            if self._stream.unused_data:
                raise _bad_coding()
            if piece:
                yield piece
            rest = self._stream.unconsumed_tail

    def finish(self) -> None:
        if not self._stream.eof:
            raise _bad_coding()


def _refuse_over(size_bytes: int, max_bytes: int) -> None:
    if size_bytes > max_bytes:
        raise ServiceError(
            ErrorCode.FILE_TOO_LARGE, f"The URL's content is larger than {max_bytes} bytes.", max_bytes=max_bytes
        )


def _bad_coding() -> FetchFailed:
    return FetchFailed(Reason.ENCODING, "The remote host's body is not in the content encoding that it declares.")
