"""Responses that are too large, compressed, incomplete or not HTTP."""

import asyncio
import gzip
import struct
import tracemalloc
import zlib
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

import pytest

from svc_daemon.errors import ServiceError
from svc_daemon.fetch.connections import HEAD_PIECE_BYTES, MAX_HEAD_BYTES
from svc_daemon.fetch.contract import Fetched, FetchFailed, FetchLimits
from svc_daemon.fetch.fetchers import Fetcher
from svc_daemon.fetch.responses import PIECE_BYTES
from tests.fetch.servers import Exchange, Kept, Script, serving

LIMIT = 1_000_000
TEXT = b"All knowledge in named buckets.\n" * 1000
PACKED = gzip.compress(TEXT)


def received(script: Script) -> bytes:
    sink = Kept()
    with serving(script) as server:
        fetched = asyncio.run(Fetcher(server.policy, FetchLimits(file_bytes=LIMIT)).fetch(server.url(), sink))
    assert isinstance(fetched, Fetched)
    assert fetched.size_bytes == len(sink.data)
    assert max(sink.pieces, default=0) <= PIECE_BYTES
    return bytes(sink.data)


def refused(script: Script, what: str) -> ServiceError:
    """Assert that a fetch fails and discards its sink, and return the error; `what` shows up in tracebacks."""
    sink = Kept()
    with serving(script) as server, pytest.raises(ServiceError) as failed:
        asyncio.run(Fetcher(server.policy, FetchLimits(file_bytes=LIMIT)).fetch(server.url(), sink))
    assert (sink.is_discarded, bytes(sink.data)) == (True, b"")
    return failed.value


def answer(body: bytes, **headers: Any) -> Script:
    return lambda exchange: exchange.answer(body=body, **headers)


def packed(body: bytes, coding: str = "gzip") -> Script:
    return answer(body, content_encoding=coding)


def sent(data: bytes) -> Script:
    return lambda exchange: exchange.send(data)


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> Script:
    def script(exchange: Exchange) -> None:
        exchange.head(200, {"transfer-encoding": "chunked"})
        exchange.send(*(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks), end)

    return script


def until_close(data: bytes) -> Script:
    return sent(b"HTTP/1.1 200 OK\r\n\r\n" + data)


def test_body_is_received_completely_in_every_encoding() -> None:
    for name, script in {
        "length": answer(TEXT),
        "chunked": chunked(TEXT[:10], TEXT[10:5000], TEXT[5000:]),
        "until close": until_close(TEXT),
        "identity": packed(TEXT, "identity"),
        "gzip": packed(PACKED),
        "x-gzip": packed(PACKED, "X-GZIP"),
    }.items():
        assert received(script) == TEXT, name
    # A gzip file stays compressed.
    assert received(answer(PACKED, content_type="application/gzip")) == PACKED


def test_body_of_exactly_the_limit_is_accepted() -> None:
    assert len(received(answer(bytes(LIMIT)))) == LIMIT
    assert len(received(packed(gzip.compress(bytes(LIMIT))))) == LIMIT


def declared(exchange: Exchange) -> None:
    """Declare a length over the limit, send nothing, and assert that the client disconnects."""
    exchange.head(200, {"content-length": str(LIMIT + 1)})
    assert exchange.connection.recv(1) == b""


def endless(exchange: Exchange) -> None:
    exchange.head(200, {})
    exchange.drip(bytes(PIECE_BYTES), pause_s=0)


def endless_nothing(exchange: Exchange) -> None:
    """Send empty gzip blocks endlessly."""
    packer = zlib.compressobj(0, zlib.DEFLATED, 31)
    exchange.head(200, {"content-encoding": "gzip"})
    exchange.send(packer.flush(zlib.Z_FULL_FLUSH))
    blocks = [packer.flush(zlib.Z_FULL_FLUSH) or b"\x00\x00\x00\xff\xff" for _ in range(10_000)]
    exchange.drip(b"".join(blocks), pause_s=0)


@pytest.mark.parametrize(
    ("name", "script"),
    {
        "length": answer(bytes(LIMIT + 1)),
        "declared": declared,
        "chunked": chunked(bytes(LIMIT), b"x"),
        "until close": until_close(bytes(LIMIT + 1)),
        "gzip": packed(gzip.compress(bytes(LIMIT + 1))),
        "endless": endless,
        "endless nothing": endless_nothing,
    }.items(),
)
def test_body_over_the_limit_is_rejected_with_the_limit(name: str, script: Any) -> None:
    error = refused(script, name)
    assert (error.code, error.rule.status, error.details) == ("file_too_large", 413, {"max_bytes": LIMIT})


def test_gzip_bomb_is_rejected_with_little_memory_and_an_empty_sink() -> None:
    bomb = gzip.compress(bytes(200 * LIMIT), compresslevel=1)
    assert len(bomb) < LIMIT
    tracemalloc.start()
    try:
        assert refused(packed(bomb), "bomb").code == "file_too_large"
        assert tracemalloc.get_traced_memory()[1] < 10 * LIMIT
    finally:
        tracemalloc.stop()


def test_other_tasks_run_while_a_gzip_bomb_is_decoded() -> None:
    sink, turns = Kept(), [0]

    async def count_turns() -> None:
        while True:
            turns[0] += bool(sink.pieces)
            await asyncio.sleep(0)

    async def scenario(fetcher: Fetcher, url: str) -> None:
        others = asyncio.create_task(count_turns())
        await fetcher.fetch(url, sink)
        others.cancel()

    with serving(packed(gzip.compress(bytes(100 * PIECE_BYTES)))) as server:
        asyncio.run(scenario(Fetcher(server.policy), server.url()))
    assert turns[0] >= len(sink.pieces) >= 100


def test_unrequested_or_broken_content_encoding_fails() -> None:
    twice = gzip.compress(PACKED)
    for coding, body in (
        *(("br", b"anything"), ("deflate", zlib.compress(TEXT)), ("zstd", b"anything")),
        *(("gzip, gzip", twice), ("gzip, identity, gzip", twice), ("gzip", TEXT), ("gzip", b"")),
        *(("gzip", PACKED[:-1]), ("gzip", PACKED[: len(PACKED) // 2]), ("gzip", PACKED + b"more")),
        *(("gzip", PACKED + PACKED), ("gzip", PACKED[:-8] + bytes(8))),
    ):
        failed = refused(packed(body, coding), f"{coding}: {body[-40:]!r}")
        expected = ("url_fetch_failed", {"reason": "content_encoding"})
        assert (failed.code, failed.details) == expected, (coding, body[-40:])


def endless_head(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\n")
    exchange.drip(b"X: " + b"y" * 9000 + b"\r\n", 0)


def reset(exchange: Exchange) -> None:
    exchange.head(200, {"content-length": str(LIMIT)})
    exchange.send(bytes(LIMIT // 2))
    # A linger time of zero makes the close a reset.
    exchange.connection.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    exchange.connection.close()


@pytest.mark.parametrize(
    ("name", "script"),
    {
        "cut body": sent(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 999),
        "cut head": sent(b"HTTP/1.1 200 OK\r\nContent-"),
        "no last chunk": chunked(TEXT, end=b""),
        "no end of the last chunk": chunked(TEXT, end=b"0\r\n"),
        "no size of a chunk": chunked(TEXT, end=b"zz\r\n"),
        "nothing": sent(b""),
        "another protocol": sent(b"SSH-2.0-server\r\n"),
        "no head": sent(b"<html>no head</html>"),
        "negative length": sent(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
        "two lengths": sent(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"),
        "another transfer encoding": sent(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nxx"),
        "an upgrade": sent(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
        "a zero byte": sent(b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n"),
        "endless head": endless_head,
        "reset": reset,
    }.items(),
)
def test_incomplete_or_invalid_response_fails(name: str, script: Any) -> None:
    failed = refused(script, name)
    assert isinstance(failed, FetchFailed)
    assert failed.details == {"reason": "broken_off"}


INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"


def test_body_after_a_few_interim_responses_is_received() -> None:
    assert received(sent(20 * INTERIM + b"HTTP/1.1 200 OK\r\n\r\n" + TEXT)) == TEXT


def test_interim_responses_without_end_are_refused_and_other_tasks_run_meanwhile() -> None:
    turns = [0]

    async def count_turns() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    async def scenario(fetcher: Fetcher, url: str) -> None:
        others = asyncio.create_task(count_turns())
        with pytest.raises(FetchFailed) as failed:
            await fetcher.fetch(url, Kept())
        others.cancel()
        assert failed.value.reason == "broken_off"

    with serving(lambda exchange: exchange.drip(1000 * INTERIM, pause_s=0)) as server:
        asyncio.run(scenario(Fetcher(server.policy), server.url()))
    # Only some hundred of them are parsed at one stroke.
    assert turns[0] >= MAX_HEAD_BYTES // HEAD_PIECE_BYTES
