"""One deadline applies to a whole fetch, whatever part of it is slow."""

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import pytest

from svc_daemon.core.access.urls import AddressPolicy
from svc_daemon.fetch.contract import FetchFailed, FetchLimits
from svc_daemon.fetch.fetchers import Fetcher
from tests.acceptance.installations import PATIENCE_S
from tests.fetch.servers import Exchange, Kept, Names, Server, serving

LIMITS = FetchLimits(fetch_s=0.3, post_s=0.3, connect_s=0.1)


@contextmanager
def timed_out() -> Iterator[None]:
    """Assert that the block fails with the fetcher's own timeout."""
    with pytest.raises(FetchFailed) as failed:
        yield
    assert (failed.value.code, failed.value.details) == ("url_fetch_failed", {"reason": "timeout"})


def fetch(fetcher: Fetcher, url: str, sink: Kept | None = None) -> None:
    asyncio.run(asyncio.wait_for(fetcher.fetch(url, sink or Kept()), PATIENCE_S))


def answer(exchange: Exchange) -> None:
    exchange.answer(body=b"x")


#: By path: the bytes that the server sends first, and the bytes that it then repeats.
SLOW = {
    "/body": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"x"),
    "/head": (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "/status": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "/chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "/silence": (b"", b""),
}


def slow(exchange: Exchange) -> None:
    if exchange.request.path == "/redirects":
        # Each redirect is within the deadline, but not all of them together.
        threading.Event().wait(0.15)
        exchange.answer(302, location="/redirects")
        return
    first, then = SLOW[exchange.request.path]
    exchange.send(first)
    exchange.drip(then) if then else exchange.connection.recv(1)


@pytest.mark.parametrize("path", [*SLOW, "/redirects"])
def test_fetch_from_a_slow_server_times_out_and_discards_the_sink(path: str) -> None:
    sink = Kept()
    with serving(slow) as server, timed_out():
        fetch(Fetcher(server.policy, LIMITS), server.url(path), sink)
    assert (sink.is_discarded, bytes(sink.data)) == (True, b"")


def test_fetch_times_out_during_a_tls_handshake_and_closes_the_connection() -> None:
    async def scenario(listener: socket.socket) -> None:
        server = Server(listener.getsockname()[1])
        with timed_out():
            await asyncio.wait_for(Fetcher(server.policy, LIMITS).fetch(server.url(scheme="https"), Kept()), PATIENCE_S)
        await asyncio.to_thread(_read_to_the_end, listener)

    # Nothing accepts before the fetch has failed: only the kernel completes the connection.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        asyncio.run(scenario(listener))


def _read_to_the_end(listener: socket.socket) -> None:
    """Accept a connection and read it to its end; raises TimeoutError if the client keeps it open."""
    connection, _ = listener.accept()
    with connection, suppress(ConnectionResetError):
        connection.settimeout(PATIENCE_S)
        while connection.recv(4096):
            pass


class Hanging:
    async def resolve(self, name: str) -> Sequence[str]:
        await asyncio.Event().wait()
        return []


def test_fetch_and_check_time_out_when_the_resolver_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    url, hanging, answered = "http://files.example/", Fetcher(AddressPolicy(), LIMITS, Hanging()), threading.Event()
    with timed_out():
        fetch(hanging, url)
    with timed_out():
        asyncio.run(asyncio.wait_for(hanging.check(url), PATIENCE_S))
    # The same with the system's resolver.
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answered.wait(2 * PATIENCE_S) and [])
    with timed_out():
        fetch(Fetcher(AddressPolicy(), LIMITS), url)
    answered.set()


def test_fetch_times_out_when_the_sink_hangs() -> None:
    class HangingSink(Kept):
        async def append(self, data: bytes) -> None:
            await asyncio.Event().wait()

    sink = HangingSink()
    with serving(answer) as server, timed_out():
        fetch(Fetcher(server.policy, LIMITS), server.url(), sink)
    assert sink.is_discarded


def test_unresponsive_address_leaves_time_for_the_next_one() -> None:
    # A full backlog behaves like an unresponsive host: it neither accepts nor refuses connections.
    with socket.socket() as full, serving(answer) as server:
        full.bind(("127.0.0.2", server.port))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for knocking in waiting:
            knocking.setblocking(False)
            knocking.connect_ex(full.getsockname())
        # Nothing listens at the second address.
        names = Names(files_example=[["127.0.0.2", "127.0.0.3", "127.0.0.1"]])
        limits = FetchLimits(fetch_s=PATIENCE_S, connect_s=0.5)
        fetch(Fetcher(server.loopback_policy, limits, names), server.url(host="files.example"), sink := Kept())
        for knocking in waiting:
            knocking.close()
    assert bytes(sink.data) == b"x"


def test_canceled_fetch_discards_the_sink_and_closes_the_connection() -> None:
    sink, arrived, closed = Kept(), threading.Event(), threading.Event()

    def script(exchange: Exchange) -> None:
        exchange.head(200, {"content-length": "100"})
        exchange.send(b"x")
        arrived.set()
        assert exchange.connection.recv(1) == b""
        closed.set()

    async def scenario(server: Server) -> None:
        task = asyncio.create_task(Fetcher(server.policy).fetch(server.url(), sink))
        await asyncio.to_thread(arrived.wait, PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(closed.wait, PATIENCE_S)

    with serving(script) as server:
        asyncio.run(scenario(server))
    assert sink.is_discarded
