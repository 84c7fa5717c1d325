"""Bodies: decoded in small steps, counted twice, handed on.

A gzip body can hold a thousand times its size, and gzip that holds nothing can go on for ever. So the bytes of the wire
are counted and the decoded ones too, and no more than `PIECE_BYTES` is decoded at once.
"""

import asyncio
import zlib
from collections.abc import Iterator
from contextlib import aclosing
from typing import Protocol

from svc_daemon.errors import ServiceError
from svc_daemon.fetch.answers import Answer
from svc_daemon.fetch.downloads import Sink
from svc_daemon.fetch.failures import FetchFailed, Reason
from svc_daemon.wire.codes import ErrorCode

#: What is decoded and handed on in one step.
PIECE_BYTES = 64 * 1024

#: The one coding that is asked for. Every server has it, and the standard library decodes it in steps.
ACCEPTED_CODING = "gzip"
_GZIP_NAMES = frozenset({"gzip", "x-gzip"})


async def receive(answer: Answer, sink: Sink, max_bytes: int) -> int:
    """Hand the whole decoded body on to the sink and return its size in bytes.

    Raises `file_too_large`, FetchFailed for a coding that was not asked for or is broken, and what the sink raises.
    """
    decoder = _decoder(answer)
    _refuse_over(int(answer.header("Content-Length") or 0), max_bytes)
    wire_bytes, size_bytes = 0, 0
    async with aclosing(answer.body()) as chunks:
        async for chunk in chunks:
            wire_bytes += len(chunk)
            _refuse_over(wire_bytes, max_bytes)
            for piece in decoder.pieces(chunk):
                size_bytes += len(piece)
                _refuse_over(size_bytes, max_bytes)
                await sink.append(piece)
                # One chunk may hold hundreds of pieces, and a sink need not wait for anything: others get a turn.
                await asyncio.sleep(0)
    decoder.finish()
    return size_bytes


class _Decoder(Protocol):
    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """What comes out of the next bytes, each piece of a bounded size."""
        ...

    def finish(self) -> None:
        """Raises FetchFailed where the body ended too early."""
        ...


class _Identity:
    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        yield chunk

    def finish(self) -> None:
        """The connection tells a body that ends too early."""


class _Gzip:
    """One gzip stream. What follows its end is refused: to leave it out would be to keep half a file."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(zlib.MAX_WBITS | 16)

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        rest = chunk
        while rest:
            if piece := self._decode(rest):
                yield piece
            rest = self._stream.unconsumed_tail

    def finish(self) -> None:
        if not self._stream.eof:
            raise _bad_coding()

    def _decode(self, data: bytes) -> bytes:
        try:
            piece = self._stream.decompress(data, PIECE_BYTES)
        except zlib.error as error:
            raise _bad_coding() from error
        if self._stream.unused_data:
            raise _bad_coding()
        return piece


def _decoder(answer: Answer) -> _Decoder:
    codings = [coding.strip().lower() for header in answer.headers("Content-Encoding") for coding in header.split(",")]
    applied = [coding for coding in codings if coding not in ("", "identity")]
    if not applied:
        return _Identity()
    if len(applied) == 1 and applied[0] in _GZIP_NAMES:
        return _Gzip()
    # One inside the other is how a small body becomes a terabyte.
    raise FetchFailed(Reason.ENCODING, "The remote host sent a content coding that was not asked for.")


def _refuse_over(size_bytes: int, max_bytes: int) -> None:
    if size_bytes > max_bytes:
        raise ServiceError(
            ErrorCode.FILE_TOO_LARGE, f"The URL's content is larger than {max_bytes} bytes.", max_bytes=max_bytes
        )


def _bad_coding() -> FetchFailed:
    return FetchFailed(Reason.ENCODING, "The remote host's body is not in the content coding that it claims.")
