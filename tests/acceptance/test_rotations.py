"""The load balancer of test runs with `--nodes` forwards requests unchanged, each to the next node."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest

from tests.acceptance.installations import PATIENCE_S
from tests.acceptance.rotations import LoadBalancer

HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")


class Daemon(BaseHTTPRequestHandler):
    """Returns its own address and the request's body, or closes the connection without a response to a GET."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Host", str(self.connection.getsockname()[0]))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(host: str, port: int) -> Iterator[None]:
    with ThreadingHTTPServer((host, port), Daemon) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


@pytest.fixture
def balancer() -> Iterator[LoadBalancer]:
    balancer = LoadBalancer(HOSTS)
    balancer.open()
    yield balancer
    balancer.close()


def test_each_request_goes_to_the_next_daemon_and_to_a_dead_one_is_a_502(balancer: LoadBalancer) -> None:
    with (
        ExitStack() as stack,
        httpx.Client(base_url=f"http://127.0.0.1:{balancer.port}", trust_env=False, timeout=PATIENCE_S) as client,
    ):
        for host in HOSTS[:2]:
            stack.enter_context(serving(host, balancer.port))
        body = b"a" * 300_000
        answers = [client.post("/", content=body) for _ in range(6)]
        assert [answer.headers.get("X-Host") for answer in answers] == [*HOSTS[:2], None] * 2
        assert [(answer.status_code, answer.content) for answer in answers] == [*[(201, body)] * 2, (502, b"")] * 2
        assert client.get("/").status_code == 502
        balancer.close()
        with pytest.raises(httpx.TransportError):
            client.get("/")
        balancer.open()
        assert client.post("/", content=body).status_code == 201
