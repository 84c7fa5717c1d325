"""A load client that is cheaper than any server it measures: raw sockets, one process, one request in flight each."""

import selectors
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from urllib.parse import urlsplit

from tests.bench.machines import spread_ms

#: Makes the n-th request, head and body.
MakeRequest = Callable[[int], bytes]

_HEAD_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Load:
    """What some clients did together."""

    requests: int
    seconds: float
    latencies_s: list[float]
    #: Processor time of this client over wall time: well under 1, or the client was the limit.
    client_share: float

    def figures(self) -> dict[str, float]:
        """Rate and latencies, rounded for a report."""
        rate = {"per_second": round(self.requests / self.seconds, 1), "client_share": round(self.client_share, 2)}
        return rate | spread_ms(self.latencies_s)


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    sent_s: float = 0.0
    received: bytearray = field(default_factory=bytearray)

    def send(self, request: bytes) -> None:
        self.received.clear()
        self.sent_s = time.perf_counter()
        self.socket.sendall(request)

    def receive(self) -> bytes | None:
        """The whole answer, or None while a part is missing."""
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError(f"the server closed the connection after {bytes(self.received)!r}")
        self.received += data
        return bytes(self.received) if _is_whole(self.received) else None


def run_load(base_url: str, clients: int, seconds: float, make_request: MakeRequest, status: int) -> Load:
    """Keep `clients` requests in flight for `seconds`; raises ConnectionError on any other status."""
    with ExitStack() as open_things:
        selector = open_things.enter_context(selectors.DefaultSelector())
        connections = [_connect(base_url, open_things) for _ in range(clients)]
        latencies_s: list[float] = []
        wall_s, processor_s = time.perf_counter(), time.process_time()
        for number, connection in enumerate(connections):
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.send(make_request(number))
        _pump(selector, latencies_s, wall_s + seconds, make_request, clients, status)
        wall_s, processor_s = time.perf_counter() - wall_s, time.process_time() - processor_s
    return Load(len(latencies_s), wall_s, latencies_s, processor_s / wall_s)


def run_requests(base_url: str, clients: int, requests: Sequence[bytes], status: int = 201) -> Load:
    """Send exactly these, `clients` at a time; raises ConnectionError on any other status."""
    with ExitStack() as open_things:
        selector = open_things.enter_context(selectors.DefaultSelector())
        latencies_s: list[float] = []
        waiting = iter(requests)
        wall_s, processor_s = time.perf_counter(), time.process_time()
        for first in islice(waiting, clients):
            connection = _connect(base_url, open_things)
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.send(first)
        while len(latencies_s) < len(requests):
            for key, _ in selector.select(timeout=30):
                answer = key.data.receive()
                if answer is None:
                    continue
                _check(answer, status)
                latencies_s.append(time.perf_counter() - key.data.sent_s)
                if (request := next(waiting, None)) is not None:
                    key.data.send(request)
        wall_s, processor_s = time.perf_counter() - wall_s, time.process_time() - processor_s
    return Load(len(latencies_s), wall_s, latencies_s, processor_s / wall_s)


def _pump(
    selector: selectors.BaseSelector,
    latencies_s: list[float],
    until_s: float,
    make_request: MakeRequest,
    sent: int,
    status: int,
) -> None:
    """Answer comes, next request goes; after `until_s` only what is in flight is awaited."""
    in_flight = sent
    while in_flight:
        for key, _ in selector.select(timeout=30):
            connection: _Connection = key.data
            answer = connection.receive()
            if answer is None:
                continue
            _check(answer, status)
            now_s = time.perf_counter()
            latencies_s.append(now_s - connection.sent_s)
            if now_s < until_s:
                connection.send(make_request(sent))
                sent += 1
            else:
                in_flight -= 1


def _connect(base_url: str, open_things: ExitStack) -> _Connection:
    address = urlsplit(base_url)
    connection = open_things.enter_context(socket.create_connection((address.hostname or "", address.port or 80)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return _Connection(connection)


def _is_whole(received: bytearray) -> bool:
    head, found, body = received.partition(_HEAD_END)
    if not found:
        return False
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return len(body) >= int(lengths[0].split(b":")[1])


def _check(answer: bytes, status: int) -> None:
    if not answer.startswith(b"HTTP/1.1 %d" % status):
        raise ConnectionError(f"not {status}: {answer[:2000]!r}")
