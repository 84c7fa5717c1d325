"""HTTP connections: malformed requests, timeouts, clients that stall, and sockets that send nothing."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from svc_daemon.api.middleware.guards import ClientLimits
from svc_daemon.wire.light.versions import VERSION
from tests.acceptance.installations import PATIENCE_S, wait_until
from tests.api.servers import ask, connected, count, hardened, is_closed, post, read_answer, refuse, serving

LIMITS = ClientLimits(linger_bytes=20_000_000, max_connections=40)
#: Short timeouts, for clients that stall.
HURRIED = replace(LIMITS, head_s=0.5, keep_alive_s=1, unread_answer_s=0.5, linger_s=0.5)
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

#: One entry for each response whose sending has ended.
ENDED: list[str] = []
#: Set when `read_late` may begin to read, and what it has read.
READS = threading.Event()
RECEIVED = bytearray()


async def hello(request: Request) -> Response:
    return JSONResponse({"hello": True})


async def pour(request: Request) -> Response:
    async def body() -> AsyncIterator[bytes]:
        try:
            for _ in range(20 if request.url.query else 1000):
                yield b"x" * 100_000
        finally:
            ENDED.append("pour")

    return StreamingResponse(body())


async def read_late(request: Request) -> Response:
    await asyncio.to_thread(READS.wait, PATIENCE_S)
    try:
        async for chunk in request.stream():
            RECEIVED.extend(chunk)
    finally:
        RECEIVED.extend(b"end")
    return Response()


async def work(request: Request) -> Response:
    await asyncio.sleep(1)
    return JSONResponse({"worked": True})


ROUTES = [
    Route("/", hello),
    Route("/refuse", refuse, methods=["POST"]),
    Route("/pour", pour),
    Route("/read", count, methods=["POST"]),
    Route("/late", read_late, methods=["POST"]),
    Route("/work", work),
]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(hardened(ROUTES), LIMITS) as port:
        yield port


@pytest.fixture(scope="module")
def hurried() -> Iterator[int]:
    with serving(hardened(ROUTES), HURRIED) as port:
        yield port


CHUNKED = b"POST /read HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
MALFORMED = {
    "no HTTP": b"hello\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "an empty line": b"\r\n\r\n",
    "no version": b"GET /\r\n\r\n",
    "a space in the target": b"GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a control in the target": b"GET /a\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "eight bits in the target": b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a bare header": b"GET / HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n\r\n",
    "NUL in a header": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: \0\r\n\r\n",
    "a chunk without size": CHUNKED + b"xyz\r\n",
    "a chunk longer than its size": CHUNKED + b"1\r\nabc\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
def test_malformed_request_gets_an_error_response_and_its_connection_is_closed(port: int, data: bytes) -> None:
    with connected(port) as client:
        client.sendall(data)
        answer = read_answer(client)
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert (answer.headers["content-type"], answer.headers["svc-version"]) == ("application/json", VERSION)
        assert answer.headers["x-request-id"] == answer.document["request_id"]
        assert answer.headers["x-request-id"].startswith("req_")
        assert is_closed(client)
    assert ask(port, GET).status == 200


def test_unfinished_request_head_times_out(hurried: int) -> None:
    for heads_before in (0, 1):
        with connected(hurried) as client:
            for _ in range(heads_before):
                client.sendall(GET)
                assert read_answer(client).status == 200
            client.sendall(GET[:20])
            answer = read_answer(client)
            assert (answer.status, answer.code) == (408, "request_timeout")
            assert is_closed(client)


def test_request_head_sent_too_slowly_is_disconnected(hurried: int) -> None:
    with connected(hurried) as client, pytest.raises(OSError):
        for _ in range(200):
            client.sendall(b"X")
            time.sleep(0.02)


def test_idle_connection_is_closed_after_the_keep_alive_timeout(hurried: int) -> None:
    for requests in (0, 3):
        with connected(hurried) as client:
            for _ in range(requests):
                client.sendall(GET)
                assert read_answer(client).status == 200
            assert is_closed(client)


def test_pipelined_requests_are_all_answered(port: int) -> None:
    with connected(port) as client:
        client.sendall(GET * 3)
        data = b""
        while data.count(b'{"hello":true}') < 3:
            data += client.recv(65536)
        assert data.count(b"HTTP/1.1 200 ") == 3


def test_short_response_is_sent_in_one_piece_and_a_long_one_completely(port: int) -> None:
    with connected(port) as client:
        for _ in range(5):
            client.sendall(GET)
            assert client.recv(65536).endswith(b'{"hello":true}')
        client.sendall(b"GET /pour?short HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        data = b"".join(iter(lambda: client.recv(1_000_000), b""))
    assert data.count(b"x" * 100_000) == 20


def test_response_is_aborted_if_the_client_does_not_read_it(hurried: int) -> None:
    ENDED.clear()
    with connected(hurried) as client:
        client.sendall(b"GET /pour HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_until(lambda: bool(ENDED), "the server stops sending the response")


def test_body_of_a_refused_request_is_read_up_to_the_linger_limit(port: int) -> None:
    with connected(port) as client:
        client.sendall(post("/refuse", 15_000_000))
        for _ in range(150):
            client.sendall(b"x" * 100_000)
        answer = read_answer(client)
        assert (answer.status, answer.headers["connection"]) == (401, "close")
    with connected(port) as client, pytest.raises(OSError):
        client.sendall(post("/refuse", 9_000_000_000))
        while True:
            client.sendall(b"x" * 100_000)


def test_refused_client_that_stalls_is_disconnected(hurried: int) -> None:
    with connected(hurried) as client:
        client.sendall(post("/refuse", 100))
        assert read_answer(client).status == 401
        assert is_closed(client)
        wait_until(lambda: not _is_open(client), "the server closes the connection")


def _is_open(client: socket.socket) -> bool:
    """Whether the server still accepts bytes; the first send after it has closed the connection succeeds anyway."""
    try:
        client.sendall(b"x")
    except OSError:
        return False
    return True


def test_truncated_request_body_gets_a_400_response(port: int) -> None:
    for data in (post("/read", 10) + b"abc", CHUNKED + b"3\r\nabc\r\n"):
        answer = ask(port, data, shut=True)
        assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.rule("upload.cut")
def test_handler_receives_the_truncated_body_after_the_client_has_left(port: int) -> None:
    # The 400 response shows that the server has noticed.
    assert ask(port, post("/late", 10) + b"abc", shut=True).status == 400
    READS.set()
    wait_until(lambda: b"end" in RECEIVED, "the request ends")
    assert RECEIVED == b"abcend"


def test_unusual_valid_request_gets_a_response_with_a_request_id(port: int) -> None:
    heads = [
        b"HEAD /nowhere HTTP/1.1\r\nHost: localhost",
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost",
        b"OPTIONS * HTTP/1.1\r\nHost: localhost",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c",
        b"GET / HTTP/1.0\r\nHost: localhost",
        b"GET http://localhost/ HTTP/1.1\r\nHost: localhost",
        b"GET /%00%ff%2e%2e HTTP/1.1\r\nHost: localhost",
    ]
    for head in heads:
        with connected(port) as client:
            client.sendall(head + b"\r\n\r\n")
            start = client.recv(65536)
        assert start.split(b" ")[1] in (b"200", b"404", b"405"), head
        assert (b"x-request-id: req_" in start, b"text/plain" in start) == (True, False), head


def test_silent_sockets_are_closed_to_serve_new_ones_and_logged_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = ClientLimits(head_s=60, max_connections=20)
    with ExitStack() as stack:
        port = stack.enter_context(serving(hardened(ROUTES), limits))
        silent = [stack.enter_context(connected(port)) for _ in range(limits.max_connections)]
        wait_until(lambda: _is_served(port), "the server closes a silent socket and serves the request")
        assert is_closed(silent[0])
        for _ in range(limits.max_connections * 2):
            stack.enter_context(connected(port))
        assert ask(port, GET).status == 200
    assert [record.levelname for record in caplog.records if "connections are open" in record.message] == ["WARNING"]


def _is_served(port: int) -> bool:
    try:
        return ask(port, GET).status == 200
    except OSError:
        return False


def test_connection_with_a_running_request_is_not_closed_to_serve_new_ones(hurried: int) -> None:
    with ExitStack() as stack:
        client = stack.enter_context(connected(hurried))
        client.sendall(b"GET /work HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for _ in range(LIMITS.max_connections * 2):
            stack.enter_context(connected(hurried))
        assert read_answer(client).document == {"worked": True}
