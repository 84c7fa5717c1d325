"""How long a body may take."""

import asyncio
import itertools
import time
from collections.abc import Iterator

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from svc_daemon.api.layers.deadlines import ClientLimits
from svc_daemon.errors import ServiceError
from tests.api.servers import connected, hardened, is_closed, read_answer, serving

LIMITS = ClientLimits(body_grace_s=0.3, body_bytes_per_s=10_000, body_total_s=1.5)

#: What handlers have seen of bodies that were given up.
KEPT: list[bytes] = []


async def count(request: Request) -> JSONResponse:
    return JSONResponse({"size": len(await request.body())})


async def keep(request: Request) -> JSONResponse:
    data = b""
    try:
        async for chunk in request.stream():
            data += chunk
    except ServiceError:
        KEPT.append(data)
        raise
    return JSONResponse({})


async def think(request: Request) -> JSONResponse:
    """Takes longer than the grace between two chunks."""
    size = 0
    async for chunk in request.stream():
        await asyncio.sleep(0.2)
        size += len(chunk)
    return JSONResponse({"size": size})


async def wait_for_the_end(request: Request) -> JSONResponse:
    """Reads the body, then listens for the client's going away for longer than a body may take."""
    await request.body()
    try:
        async with asyncio.timeout(0.5):
            await request.receive()
    except TimeoutError:
        return JSONResponse({"waited": True})
    return JSONResponse({"waited": False})


ROUTES = [
    Route("/count", count, methods=["POST"]),
    Route("/keep", keep, methods=["PUT"]),
    Route("/think", think, methods=["POST"]),
    Route("/wait", wait_for_the_end, methods=["POST"]),
]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(hardened(ROUTES, limits=LIMITS), LIMITS) as port:
        yield port


def head(target: str, size_bytes: int) -> bytes:
    return f"{target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size_bytes}\r\n\r\n".encode()


def in_steps(size_bytes: int, step_bytes: int, pause_s: float) -> Iterator[bytes]:
    """A slow client's body: the pause is what is tested."""
    for _ in range(size_bytes // step_bytes):
        time.sleep(pause_s)
        yield b"x" * step_bytes


def test_a_body_that_stops_is_timed_out(port: int) -> None:
    began = time.monotonic()
    with connected(port) as client:
        client.sendall(head("POST /count", 100) + b"x" * 50)
        answer = read_answer(client)
        assert (answer.status, answer.code) == (408, "request_timeout")
        assert answer.document["error"]["retryable"] is True
        assert answer.headers["connection"] == "close"
    assert time.monotonic() - began >= LIMITS.body_grace_s


def test_a_body_below_its_pace_is_timed_out(port: int) -> None:
    with connected(port) as client:
        client.sendall(head("POST /count", 10_000))
        for step in in_steps(1000, 10, 0.01):
            client.sendall(step)
        answer = read_answer(client)
    assert (answer.status, answer.code) == (408, "request_timeout")


def test_a_body_that_keeps_its_pace_may_take_longer_than_the_grace(port: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        answer = client.post("/count", content=in_steps(16_000, 1600, 0.08))
    assert answer.json() == {"size": 16_000}


def test_no_body_may_take_longer_than_the_whole_time(port: int) -> None:
    began = time.monotonic()
    with connected(port) as client:
        client.sendall(head("POST /count", 10_000_000))
        for _ in itertools.takewhile(lambda _: time.monotonic() - began < LIMITS.body_total_s, itertools.count()):
            client.sendall(b"x" * 2000)
            time.sleep(0.05)
        assert read_answer(client).code == "request_timeout"


def test_what_came_in_time_is_the_handlers_to_keep(port: int) -> None:
    with connected(port) as client:
        client.sendall(head("PUT /keep", 100) + b"kept")
        assert read_answer(client).status == 408
    assert KEPT == [b"kept"]


def test_the_handlers_own_time_does_not_count(port: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        answer = client.post("/think", content=b"x" * 300_000)
    assert answer.json() == {"size": 300_000}


def test_waiting_after_the_body_is_not_timed(port: int) -> None:
    with connected(port) as client:
        client.sendall(head("POST /wait", 1) + b"x")
        assert read_answer(client).document == {"waited": True}


def test_a_body_that_nobody_reads_ends_with_its_connection(port: int) -> None:
    with connected(port) as client:
        client.sendall(head("POST /nowhere", 1000) + b"x")
        assert read_answer(client).headers["connection"] == "close"
        assert is_closed(client)
