"""Real web servers that are scripted byte by byte, with policies, resolvers and sinks for the fetchers under test."""

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_network
from socket import socket
from socketserver import BaseRequestHandler, ThreadingTCPServer

from svc_daemon.core.access.urls import AddressPolicy, AllowedNetwork
from tests.acceptance.installations import PATIENCE_S

HERE = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Seen:
    method: str
    path: str
    #: Header names are in lowercase.
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class Exchange:
    """A request and the connection that waits for its response."""

    request: Seen
    connection: socket

    def send(self, *parts: bytes) -> None:
        for part in parts:
            self.connection.sendall(part)

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in headers.items())]
        self.send("\r\n".join([*lines, "", ""]).encode())

    def answer(self, status: int = 200, body: bytes = b"", **headers: str) -> None:
        """Send a complete response; the argument `content_type` becomes the header `content-type`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.head(status, {"content-length": str(len(body)), **named})
        self.send(body)

    def drip(self, data: bytes = b"x", pause_s: float = 0.02) -> None:
        """Send the data repeatedly until the client disconnects."""
        pause = threading.Event()
        with suppress(OSError):
            while not pause.wait(pause_s):
                self.send(data)


Script = Callable[[Exchange], None]


@dataclass(slots=True)
class Server:
    """A running server and the requests that it has received."""

    port: int
    requests: list[Seen] = field(default_factory=list)

    def url(self, path: str = "/", host: str = HERE, scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    @property
    def policy(self) -> AddressPolicy:
        """A policy that allows this server, and no other address that isn't public."""
        return AddressPolicy((AllowedNetwork(ip_network(HERE), self.port),))

    @property
    def loopback_policy(self) -> AddressPolicy:
        """A policy that allows this server's port on every IPv4 loopback address."""
        return AddressPolicy((AllowedNetwork(ip_network("127.0.0.0/8"), self.port),))


@contextmanager
def serving(script: Script, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Start a server whose script responds to the one request of each connection; stop its threads after the block."""
    with _QuietServer((HERE, 0), BaseRequestHandler) as listener:
        server = Server(listener.server_address[1])
        listener.finish = lambda connection: _serve(server, script, connection, tls)
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown()
            thread.join()


class _QuietServer(ThreadingTCPServer):
    """Ignores clients that disconnect, as these tests make them do."""

    allow_reuse_address = True
    request_queue_size = 64
    finish: Callable[[socket], None]

    def finish_request(self, request: object, client_address: object) -> None:
        assert isinstance(request, socket)
        with suppress(OSError):
            self.finish(request)


def _serve(server: Server, script: Script, plain: socket, tls: ssl.SSLContext | None) -> None:
    plain.settimeout(PATIENCE_S)
    with ExitStack() as stack:
        connection = stack.enter_context(tls.wrap_socket(plain, server_side=True)) if tls else plain
        stream = stack.enter_context(connection.makefile("rb"))
        words = stream.readline().split()
        if len(words) != 3 or words[2] != b"HTTP/1.1":
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            return
        headers = dict(_header(raw) for raw in iter(stream.readline, b"\r\n"))
        body = stream.read(int(headers.get("content-length", 0)))
        if len(body) < int(headers.get("content-length", 0)):
            return  # incomplete request, which the script doesn't get
        server.requests.append(Seen(words[0].decode(), words[1].decode(), headers, body))
        script(Exchange(server.requests[-1], connection))


def _header(line: bytes) -> tuple[str, str]:
    name, _, value = line.decode().partition(":")
    return name.lower(), value.strip()


class Names:
    """A resolver with a table: each name has a list of answers, one per lookup, of which the last is repeated."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {name.replace("_", "."): list(lists) for name, lists in answers.items()}
        self.asked: list[str] = []

    async def resolve(self, name: str) -> Sequence[str]:
        self.asked.append(name)
        answers = self._answers.get(name)
        if answers is None:
            raise OSError(f"no such name: {name}")
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Kept:
    def __init__(self) -> None:
        self.data = bytearray()
        self.pieces: list[int] = []
        self.is_discarded = False

    async def append(self, data: bytes) -> None:
        self.pieces.append(len(data))
        self.data += data

    async def discard(self) -> None:
        self.data.clear()
        self.is_discarded = True
