"""Reads responses: decodes headers to text, and decodes the body in small steps, within the size limits.

A gzip body can expand a thousandfold, and a gzip stream without content can continue forever. So the received bytes and
the decoded bytes are both counted, and at most `PIECE_BYTES` are decoded at once.
"""

import asyncio
import zlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Protocol

import httpcore

from svc_daemon.errors import ServiceError
from svc_daemon.fetch.downloads import Sink
from svc_daemon.fetch.failures import FetchFailed, Reason
from svc_daemon.wire.codes import ErrorCode

#: Maximum length of a header, such as ETag, by which a version of the content is recognized. Longer ones are ignored,
#: because they are stored and sent with every refresh.
MAX_VALIDATOR_CHARACTERS = 1024

REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: Statuses of responses whose body is used; 203 means that a proxy modified it. 204, 205 and 206 are not included,
#: because they have no body, or only a part of it.
SUCCESSES = frozenset({200, 203})
NOT_MODIFIED = 304


#: Maximum number of bytes that are decoded and passed on in one step.
PIECE_BYTES = 64 * 1024

#: The only content coding that is requested. Nearly all servers support it, and Python can decode it step by step.
ACCEPTED_CODING = "gzip"
_GZIP_NAMES = frozenset({"gzip", "x-gzip"})


class FetchedResponse:
    """The status and headers of a response whose body has not been read yet."""

    def __init__(self, response: httpcore.Response) -> None:
        self.status = response.status
        self._response = response
        self._headers: list[tuple[bytes, str]] = []
        for name, value in response.headers:
            # Header values should be ASCII, but in practice some are UTF-8 or Latin-1.
            try:
                text = value.decode("utf-8")
            except UnicodeDecodeError:
                text = value.decode("latin-1")
            self._headers.append((name.lower(), text.strip()))

    def header(self, name: str) -> str:
        """Return the first header with this name, or an empty string if there is none."""
        return next(iter(self.headers(name)), "")

    def headers(self, name: str) -> list[str]:
        key = name.lower().encode("ascii")
        return [value for header, value in self._headers if header == key]

    def validator(self, name: str) -> str | None:
        """Return a header, such as ETag, by which a version of the content is recognized.

        Returns None if it is missing, too long or not ASCII.
        """
        value = self.header(name)
        return value if value and value.isascii() and len(value) <= MAX_VALIDATOR_CHARACTERS else None

    async def body(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it is received, still encoded."""
        async for chunk in self._response.aiter_stream():
            yield chunk


async def receive(response: FetchedResponse, sink: Sink, max_bytes: int) -> int:
    """Decode the whole body into the sink, and return its decoded size in bytes.

    Raises `file_too_large`, FetchFailed if the content coding was not requested or is invalid, or any error of the
    sink.
    """
    headers = response.headers("Content-Encoding")
    codings = [coding.strip().lower() for header in headers for coding in header.split(",")]
    applied = [coding for coding in codings if coding not in ("", "identity")]
    if len(applied) > 1 or not _GZIP_NAMES.issuperset(applied):
        # Refuse several codings of one body: they could turn a small body into a terabyte.
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
                # Let other tasks run: a chunk may be decoded to hundreds of pieces, and `append` may never suspend.
                await asyncio.sleep(0)
    decoder.finish()
    return size_bytes


class _Decoder(Protocol):
    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Decode a chunk of the body, and yield the result in pieces of limited size."""
        ...

    def finish(self) -> None:
        """Check that the body is complete. Raises FetchFailed if it ended too early."""
        ...


class _Identity:
    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        yield chunk

    def finish(self) -> None:
        """Do nothing, because the connection already reports a body that ended too early."""


class _Gzip:
    """Decodes one gzip stream. Bytes after it are refused: if they were ignored, the file could be incomplete."""

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
