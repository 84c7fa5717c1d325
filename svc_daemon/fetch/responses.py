"""Responses: their status and headers as text, and their bodies, decoded in small steps and counted twice.

A gzip body can expand a thousandfold, and a gzip stream that holds nothing can go on forever. So the bytes on the wire
are counted and the decoded ones too, and at most `PIECE_BYTES` are decoded at once.
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

#: A tag or date that is longer is not kept: it would be stored with the source and sent back each time.
MAX_VALIDATOR_CHARACTERS = 1024

REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: 203 is a success that a proxy changed. 204, 205 and 206 have no body, or not the whole of it.
SUCCESSES = frozenset({200, 203})
NOT_MODIFIED = 304


#: Decoded and passed on in one step.
PIECE_BYTES = 64 * 1024

#: The one coding that is requested. Every server has it, and the standard library decodes it in steps.
ACCEPTED_CODING = "gzip"
_GZIP_NAMES = frozenset({"gzip", "x-gzip"})


class FetchedResponse:
    """The head of a response; its body is still on the wire."""

    def __init__(self, response: httpcore.Response) -> None:
        self.status = response.status
        self._response = response
        self._headers: list[tuple[bytes, str]] = []
        for name, value in response.headers:
            # Headers are ASCII by the standard, UTF-8 in practice, and Latin-1 where that fails.
            try:
                text = value.decode("utf-8")
            except UnicodeDecodeError:
                text = value.decode("latin-1")
            self._headers.append((name.lower(), text.strip()))

    def header(self, name: str) -> str:
        """The first header of this name, empty without one."""
        return next(iter(self.headers(name)), "")

    def headers(self, name: str) -> list[str]:
        key = name.lower().encode("ascii")
        return [value for header, value in self._headers if header == key]

    def validator(self, name: str) -> str | None:
        """A header to send back later; None where it is missing, or nothing that could be sent."""
        value = self.header(name)
        return value if value and value.isascii() and len(value) <= MAX_VALIDATOR_CHARACTERS else None

    async def body(self) -> AsyncGenerator[bytes, None]:
        """The bytes on the wire, still in their content coding."""
        async for chunk in self._response.aiter_stream():
            yield chunk


async def receive(response: FetchedResponse, sink: Sink, max_bytes: int) -> int:
    """Pass the whole decoded body to the sink and return its size in bytes.

    Raises `file_too_large`, FetchFailed for a coding that was not requested or is broken, and what the sink raises.
    """
    headers = response.headers("Content-Encoding")
    codings = [coding.strip().lower() for header in headers for coding in header.split(",")]
    applied = [coding for coding in codings if coding not in ("", "identity")]
    if len(applied) > 1 or not _GZIP_NAMES.issuperset(applied):
        # Nested codings could turn a small body into a terabyte.
        raise FetchFailed(Reason.ENCODING, "The remote host sent a content coding that was not asked for.")
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
                # One chunk may hold hundreds of pieces, and a sink need not wait: give other tasks a turn.
                await asyncio.sleep(0)
    decoder.finish()
    return size_bytes


class _Decoder(Protocol):
    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """The decoded next bytes, in pieces of a bounded size."""
        ...

    def finish(self) -> None:
        """Raises FetchFailed where the body ended too early."""
        ...


class _Identity:
    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        yield chunk

    def finish(self) -> None:
        """The connection reports a body that ends too early."""


class _Gzip:
    """One gzip stream. Bytes after its end are refused: without them the file could be incomplete."""

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
    return FetchFailed(Reason.ENCODING, "The remote host's body is not in the content coding that it claims.")
