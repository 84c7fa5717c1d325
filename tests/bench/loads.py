"""A load client that is cheaper than any server it measures: raw sockets, one process, one request in flight each."""

import selectors
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle, islice
from urllib.parse import urlsplit

from tests.bench.machines import spread_ms

#: Makes the n-th request, head and body.
MakeRequest = Callable[[int], bytes]


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
        head, found, body = self.received.partition(b"\r\n\r\n")
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        return bytes(self.received) if found and len(body) >= int(lengths[0].split(b":")[1]) else None


def run_load(base_urls: Sequence[str], clients: int, seconds: float, make_request: MakeRequest, status: int) -> Load:
    """Keep `clients` requests in flight for `seconds`; raises ConnectionError on any other status."""

    def until_late() -> Iterator[bytes]:
        until_s, number = time.perf_counter() + seconds, 0
        while number < clients or time.perf_counter() < until_s:
            yield make_request(number)
            number += 1

    return run_requests(base_urls, clients, until_late(), status)


def run_requests(base_urls: Sequence[str], clients: int, requests: Iterable[bytes], status: int = 201) -> Load:
    """Send exactly these, `clients` at a time, of which each has one of the servers.

    Raises ConnectionError on any other status.
    """
    addresses, waiting, in_flight = cycle(map(urlsplit, base_urls)), iter(requests), 0
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        latencies_s: list[float] = []
        wall_s, processor_s = time.perf_counter(), time.process_time()
        for first in islice(waiting, clients):
            address = next(addresses)
            opened = stack.enter_context(socket.create_connection((address.hostname or "", address.port or 80)))
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(opened, selectors.EVENT_READ, connection := _Connection(opened))
            connection.send(first)
            in_flight += 1
        while in_flight:
            for key, _ in selector.select(timeout=30):
                answer = key.data.receive()
                if answer is None:
                    continue
                if not answer.startswith(b"HTTP/1.1 %d" % status):
                    raise ConnectionError(f"not {status}: {answer[:2000]!r}")
                latencies_s.append(time.perf_counter() - key.data.sent_s)
                if (request := next(waiting, None)) is None:
                    in_flight -= 1
                else:
                    key.data.send(request)
        wall_s, processor_s = time.perf_counter() - wall_s, time.process_time() - processor_s
    return Load(len(latencies_s), wall_s, latencies_s, processor_s / wall_s)
