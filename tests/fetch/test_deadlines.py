"""One deadline over everything: whatever is slow, the fetch ends in time."""

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import pytest

from svc_daemon.core.access.addresses import AddressPolicy
from svc_daemon.fetch.downloads import FetchLimits
from svc_daemon.fetch.failures import FetchFailed
from svc_daemon.fetch.fetchers import Fetcher
from svc_daemon.fetch.resolvers import Resolver
from tests.fetch.servers import Exchange, Kept, Names, Script, Server, serving

LIMITS = FetchLimits(fetch_s=0.3, post_s=0.3, connect_s=0.1)
#: Far more than the deadline and far less than anything that ignores it would take.
SOON_S = 3


@contextmanager
def timed_out() -> Iterator[None]:
    """The block must end with a timeout of its own."""
    with pytest.raises(FetchFailed) as failed:
        yield
    assert (failed.value.code, failed.value.details) == ("url_fetch_failed", {"reason": "timeout"})


def fetch(server: Server, sink: Kept, resolver: Resolver | None = None, host: str = "127.0.0.1") -> None:
    fetcher = Fetcher(server.policy, LIMITS, resolver)
    asyncio.run(asyncio.wait_for(fetcher.fetch(server.url(host=host), sink), SOON_S))


def slow_body(exchange: Exchange) -> None:
    exchange.head(200, {"content-length": "1000000"})
    exchange.drip()


def slow_head(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\nX: ")
    exchange.drip()


def slow_status(exchange: Exchange) -> None:
    """Promises an answer for ever."""
    exchange.drip(b"HTTP/1.1 100 Continue\r\n\r\n")


def slow_chunks(exchange: Exchange) -> None:
    exchange.head(200, {"transfer-encoding": "chunked"})
    exchange.drip(b"1\r\nx\r\n")


def slow_redirects(exchange: Exchange) -> None:
    """Each hop is quick enough by itself; all of them are not."""
    threading.Event().wait(0.15)
    exchange.answer(302, location="/again")


def silence(exchange: Exchange) -> None:
    exchange.connection.recv(1)


@pytest.mark.parametrize("script", [slow_body, slow_head, slow_status, slow_chunks, slow_redirects, silence])
def test_a_slow_server_is_left_in_time(script: Script) -> None:
    sink = Kept()
    with serving(script) as server, timed_out():
        fetch(server, sink)
    assert sink.is_discarded
    assert not sink.data


def test_a_server_that_never_speaks_tls_is_left_in_time_and_for_good() -> None:
    async def scenario(listener: socket.socket) -> None:
        server = Server(listener.getsockname()[1])
        with timed_out():
            await asyncio.wait_for(Fetcher(server.policy, LIMITS).fetch(server.url(scheme="https"), Kept()), SOON_S)
        await asyncio.to_thread(_read_to_the_end, listener)

    # Until the fetch has failed nothing accepts: only the kernel takes the connection.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        asyncio.run(scenario(listener))


def _read_to_the_end(listener: socket.socket) -> None:
    """Raises TimeoutError while the other side holds the connection open."""
    connection, _ = listener.accept()
    with connection, suppress(ConnectionResetError):
        connection.settimeout(2)
        while connection.recv(4096):
            pass


class Hanging:
    async def resolve(self, name: str) -> Sequence[str]:
        await asyncio.Event().wait()
        return []


def test_a_resolver_that_hangs_is_left_in_time() -> None:
    with serving(silence) as server, timed_out():
        fetch(server, Kept(), Hanging(), "files.example")


def test_the_systems_resolver_is_left_in_time_too(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def hang(*_: object, **__: object) -> list[object]:
        answered.wait(10)
        return []

    with serving(silence) as server, timed_out():
        monkeypatch.setattr(socket, "getaddrinfo", hang)
        fetch(server, Kept(), host="files.example")
    answered.set()


def test_a_sink_that_hangs_counts_too() -> None:
    class HangingSink(Kept):
        async def append(self, data: bytes) -> None:
            await asyncio.Event().wait()

    sink = HangingSink()
    with serving(lambda exchange: exchange.answer(body=b"x")) as server, timed_out():
        fetch(server, sink)
    assert sink.is_discarded


def test_a_dead_address_leaves_time_for_the_next() -> None:
    # A full backlog is a host that does not answer: the connection is neither taken nor refused.
    with socket.socket() as full, serving(lambda exchange: exchange.answer(body=b"x")) as server:
        full.bind(("127.0.0.2", server.port))
        full.listen(0)
        waiting = [_knock(full) for _ in range(4)]
        sink = Kept()
        fetcher = Fetcher(server.loopback_policy, LIMITS, Names(files_example=[["127.0.0.2", "127.0.0.1"]]))
        asyncio.run(fetcher.fetch(server.url(host="files.example"), sink))
        for knocking in waiting:
            knocking.close()
    assert bytes(sink.data) == b"x"


def _knock(listener: socket.socket) -> socket.socket:
    client = socket.socket()
    client.setblocking(False)
    client.connect_ex(listener.getsockname())
    return client


def test_a_canceled_fetch_empties_the_sink_and_closes_the_connection() -> None:
    sink, arrived, closed = Kept(), threading.Event(), threading.Event()

    def script(exchange: Exchange) -> None:
        exchange.head(200, {"content-length": "100"})
        exchange.send(b"x")
        arrived.set()
        assert exchange.connection.recv(1) == b""
        closed.set()

    async def scenario(server: Server) -> None:
        task = asyncio.create_task(Fetcher(server.policy).fetch(server.url(), sink))
        await asyncio.to_thread(arrived.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(closed.wait, 5)

    with serving(script) as server:
        asyncio.run(scenario(server))
    assert sink.is_discarded


def test_a_check_has_a_deadline_as_well() -> None:
    with timed_out():
        asyncio.run(
            asyncio.wait_for(Fetcher(AddressPolicy(), LIMITS, Hanging()).check("http://files.example/"), SOON_S)
        )
