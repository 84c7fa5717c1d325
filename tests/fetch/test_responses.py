"""Bodies that are too large, packed, cut off, or no HTTP."""

import asyncio
import gzip
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from socket import SO_LINGER, SOL_SOCKET

import pytest

from svc_daemon.errors import ServiceError
from svc_daemon.fetch.downloads import Fetched, FetchLimits
from svc_daemon.fetch.failures import FetchFailed
from svc_daemon.fetch.fetchers import Fetcher
from svc_daemon.fetch.responses import PIECE_BYTES
from tests.fetch.servers import Exchange, Kept, Script, serving

LIMIT = 1_000_000
TEXT = b"All knowledge in named buckets.\n" * 1000
#: Without the time of day, since the bytes name test cases.
PACKED = gzip.compress(TEXT, mtime=0)


def received(script: Script, limit: int = LIMIT) -> bytes:
    """What the sink holds after a fetch."""
    sink = Kept()
    with serving(script) as server:
        fetched = asyncio.run(Fetcher(server.policy, FetchLimits(file_bytes=limit)).fetch(server.url(), sink))
    assert isinstance(fetched, Fetched)
    assert fetched.size_bytes == len(sink.data)
    assert max(sink.pieces, default=0) <= PIECE_BYTES
    return bytes(sink.data)


def refused(script: Script, limit: int = LIMIT) -> ServiceError:
    """The error of a fetch, whose sink must have been emptied."""
    sink = Kept()
    with serving(script) as server, pytest.raises(ServiceError) as failed:
        asyncio.run(Fetcher(server.policy, FetchLimits(file_bytes=limit)).fetch(server.url(), sink))
    assert sink.is_discarded
    assert not sink.data
    return failed.value


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> Script:
    def script(exchange: Exchange) -> None:
        exchange.head(200, {"transfer-encoding": "chunked"})
        exchange.send(*(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks), end)

    return script


def until_close(data: bytes) -> Script:
    def script(exchange: Exchange) -> None:
        exchange.head(200, {})
        exchange.send(data)

    return script


@pytest.mark.parametrize(
    "script",
    [
        lambda exchange: exchange.answer(body=TEXT),
        chunked(TEXT[:10], TEXT[10:5000], TEXT[5000:]),
        until_close(TEXT),
        lambda exchange: exchange.answer(body=TEXT, content_encoding="identity"),
        lambda exchange: exchange.answer(body=PACKED, content_encoding="gzip"),
        lambda exchange: exchange.answer(body=PACKED, content_encoding="X-GZIP"),
    ],
    ids=["length", "chunked", "until close", "identity", "gzip", "x-gzip"],
)
def test_a_body_arrives_whole_however_it_is_sent(script: Script) -> None:
    assert received(script) == TEXT


def test_a_gzip_file_stays_packed() -> None:
    assert received(lambda exchange: exchange.answer(body=PACKED, content_type="application/gzip")) == PACKED


def test_a_body_of_just_the_limit_is_taken() -> None:
    assert len(received(lambda exchange: exchange.answer(body=bytes(LIMIT)))) == LIMIT
    packed = gzip.compress(bytes(LIMIT))
    assert len(received(lambda exchange: exchange.answer(body=packed, content_encoding="gzip"))) == LIMIT


def endless(exchange: Exchange) -> None:
    exchange.head(200, {})
    exchange.drip(bytes(PIECE_BYTES), pause_s=0)


def endless_nothing(exchange: Exchange) -> None:
    """Gzip blocks that hold nothing, without an end."""
    packer = zlib.compressobj(0, zlib.DEFLATED, 31)
    exchange.head(200, {"content-encoding": "gzip"})
    exchange.send(packer.flush(zlib.Z_FULL_FLUSH))
    exchange.drip(
        b"".join(packer.flush(zlib.Z_FULL_FLUSH) or b"\x00\x00\x00\xff\xff" for _ in range(10_000)), pause_s=0
    )


@pytest.mark.parametrize(
    "script",
    [
        lambda exchange: exchange.answer(body=bytes(LIMIT + 1)),
        lambda exchange: exchange.head(200, {"content-length": str(LIMIT + 1)}),
        chunked(bytes(LIMIT), b"x"),
        until_close(bytes(LIMIT + 1)),
        lambda exchange: exchange.answer(body=gzip.compress(bytes(LIMIT + 1)), content_encoding="gzip"),
        endless,
        endless_nothing,
    ],
    ids=["length", "declared", "chunked", "until close", "gzip", "endless", "endless nothing"],
)
def test_a_body_over_the_limit_is_refused_with_the_limit(script: Script) -> None:
    too_large = refused(script)
    assert (too_large.code, too_large.rule.status) == ("file_too_large", 413)
    assert too_large.details == {"max_bytes": LIMIT}


def test_a_body_that_is_declared_too_large_is_not_waited_for() -> None:
    def script(exchange: Exchange) -> None:
        exchange.head(200, {"content-length": str(LIMIT + 1)})
        assert exchange.connection.recv(1) == b""

    assert refused(script).code == "file_too_large"


def test_a_bomb_costs_neither_memory_nor_the_sink() -> None:
    bomb = gzip.compress(bytes(200 * 1024 * 1024), compresslevel=9)
    assert len(bomb) < LIMIT
    tracemalloc.start()
    try:
        assert refused(lambda exchange: exchange.answer(body=bomb, content_encoding="gzip")).code == "file_too_large"
        assert tracemalloc.get_traced_memory()[1] < 10 * LIMIT
    finally:
        tracemalloc.stop()


def test_others_get_a_turn_while_a_bomb_is_decoded() -> None:
    bomb = gzip.compress(bytes(100 * PIECE_BYTES))
    sink, turns = Kept(), [0]

    async def count_turns() -> None:
        while True:
            turns[0] += bool(sink.pieces)
            await asyncio.sleep(0)

    async def scenario(fetcher: Fetcher, url: str) -> None:
        others = asyncio.create_task(count_turns())
        await fetcher.fetch(url, sink)
        others.cancel()

    with serving(lambda exchange: exchange.answer(body=bomb, content_encoding="gzip")) as server:
        asyncio.run(scenario(Fetcher(server.policy), server.url()))
    assert turns[0] >= len(sink.pieces) >= 100


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("br", b"anything"),
        ("deflate", zlib.compress(TEXT)),
        ("zstd", b"anything"),
        ("gzip, gzip", gzip.compress(PACKED, mtime=0)),
        ("gzip, identity, gzip", gzip.compress(PACKED, mtime=0)),
        ("gzip", TEXT),
        ("gzip", b""),
        ("gzip", PACKED[:-1]),
        ("gzip", PACKED[: len(PACKED) // 2]),
        ("gzip", PACKED + b"more"),
        ("gzip", PACKED + PACKED),
        ("gzip", PACKED[:-8] + bytes(8)),
    ],
)
def test_a_coding_that_was_not_asked_for_or_is_broken_fails(coding: str, body: bytes) -> None:
    failed = refused(lambda exchange: exchange.answer(body=body, content_encoding=coding))
    assert (failed.code, failed.details) == ("url_fetch_failed", {"reason": "content_encoding"})


def cut_length(exchange: Exchange) -> None:
    exchange.head(200, {"content-length": "1000"})
    exchange.send(b"x" * 999)


def cut_head(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\nContent-")


@pytest.mark.parametrize(
    "script",
    [
        cut_length,
        cut_head,
        chunked(TEXT, end=b""),
        chunked(TEXT, end=b"0\r\n"),
        lambda exchange: None,
        lambda exchange: exchange.send(b"SSH-2.0-server\r\n"),
        lambda exchange: exchange.send(b"<html>no head</html>"),
        lambda exchange: exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
        lambda exchange: exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"),
        lambda exchange: exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nxx"),
        lambda exchange: exchange.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
        lambda exchange: exchange.send(b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n"),
        lambda exchange: exchange.send(b"HTTP/1.1 200 OK\r\n") or exchange.drip(b"X: " + b"y" * 9000 + b"\r\n", 0),
        chunked(TEXT, end=b"zz\r\n"),
    ],
)
def test_an_answer_that_breaks_off_or_is_no_http_fails(script: Callable[[Exchange], None]) -> None:
    failed = refused(script)
    assert isinstance(failed, FetchFailed)
    assert failed.details == {"reason": "broken_off"}


def test_a_connection_that_is_reset_in_the_middle_fails() -> None:
    def script(exchange: Exchange) -> None:
        exchange.head(200, {"content-length": str(LIMIT)})
        exchange.send(bytes(LIMIT // 2))
        # Lingering for no time makes the close a reset.
        exchange.connection.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        exchange.connection.close()

    assert refused(script).details == {"reason": "broken_off"}
