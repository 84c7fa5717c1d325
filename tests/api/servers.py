"""Real servers for tests of what only the wire shows: uvicorn with our protocol on a socket of its own, in a thread."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from svc_daemon.api.connections.protocols import server_config
from svc_daemon.api.middleware.guards import ClientLimits, GuardRules
from svc_daemon.api.middleware.hardening import EXCEPTION_HANDLERS, Hardening, middleware
from tests.acceptance.installations import PATIENCE_S, wait_until


def request_ids() -> Callable[[], str]:
    """`req_1`, `req_2` and so on."""
    numbers = iter(range(1, 1_000_000))
    return lambda: f"req_{next(numbers)}"


def hardened(
    routes: Sequence[BaseRoute], rules: GuardRules | None = None, limits: ClientLimits | None = None
) -> Starlette:
    """An application with these routes inside all of our layers."""
    hardening = Hardening(new_id=request_ids(), rules=rules or GuardRules(), limits=limits or ClientLimits())
    app = Starlette(routes=routes, middleware=middleware(hardening), exception_handlers=EXCEPTION_HANDLERS)
    app.router.redirect_slashes = False
    return app


@contextmanager
def serving(app: ASGIApp, limits: ClientLimits | None = None, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port on which the application is served while the block runs."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    limits = limits or ClientLimits()
    config = server_config(app, limits, request_ids(), max_head_bytes=16 * 1024, stop_s=1, tls=tls)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        wait_until(lambda: server.started, "the server starts")
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


@contextmanager
def serving_client(app: ASGIApp) -> Iterator[httpx.Client]:
    """A client of the application, served while the block runs."""
    with serving(app) as port, client_of(port) as client:
        yield client


def client_of(port: int) -> httpx.Client:
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=PATIENCE_S)


@dataclass(frozen=True)
class RawAnswer:
    """One answer as it was on the wire."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.document["error"]["code"])


def ask(port: int, *pieces: bytes, shut: bool = False) -> RawAnswer:
    """Sends the pieces as they are, if asked shuts our side of the connection, and reads one answer."""
    with connected(port) as client:
        for piece in pieces:
            client.sendall(piece)
        if shut:
            client.shutdown(socket.SHUT_WR)
        return read_answer(client)


def post(path: str, size_bytes: int, *headers: str) -> bytes:
    """Return the head of a POST with a body of this size."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", *headers, f"Content-Length: {size_bytes}"]
    return "\r\n".join([*lines, "", ""]).encode()


async def count(request: Request) -> JSONResponse:
    """Return the size of the body."""
    return JSONResponse({"size": len(await request.body())})


async def refuse(request: Request) -> JSONResponse:
    """Refuse the request without reading its body."""
    return JSONResponse({}, status_code=401)


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        yield client


def in_pieces(data: bytes, size_bytes: int = 50_000) -> Iterator[bytes]:
    """For httpx: a body of unknown length, sent in chunks."""
    for start in range(0, len(data), size_bytes):
        yield data[start : start + size_bytes]


def read_answer(client: socket.socket) -> RawAnswer:
    """The next answer, which must have a Content-Length."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _receive(client)
    head, _, body = data.partition(b"\r\n\r\n")
    status_line, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    while len(body) < int(headers["content-length"]):
        body += _receive(client)
    return RawAnswer(int(status_line.split(" ")[1]), headers, body)


def _receive(client: socket.socket) -> bytes:
    data = client.recv(65536)
    if not data:
        raise ConnectionResetError("the connection ended before the answer did")
    return data


def is_closed(client: socket.socket) -> bool:
    """Whether the server has ended this connection and sends nothing more; waits for either."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True
