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


class Echo(BaseHTTPRequestHandler):
    """Returns its own address, the names of the request's headers, and the request's body in chunks."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        self.send_response(201)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("X-Host", str(self.connection.getsockname()[0]))
        self.send_header("X-Had", ", ".join(self.headers.keys()))
        self.end_headers()
        for piece in (*pieces, b""):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    def do_GET(self) -> None:
        """Close the connection without a response."""
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def echoing(host: str, port: int) -> Iterator[None]:
    with ThreadingHTTPServer((host, port), Echo) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


@pytest.fixture
def balancer() -> Iterator[LoadBalancer]:
    balancer = LoadBalancer(HOSTS)
    balancer.open()
    yield balancer
    balancer.close()


def test_each_request_goes_unchanged_to_the_next_daemon_and_a_dead_one_is_a_502(balancer: LoadBalancer) -> None:
    body = [b"a" * 100_000, b"b", b"c" * 300_000]
    with (
        ExitStack() as stack,
        httpx.Client(base_url=f"http://127.0.0.1:{balancer.port}", trust_env=False, timeout=PATIENCE_S) as client,
    ):
        for host in HOSTS[:2]:
            stack.enter_context(echoing(host, balancer.port))
        hosts = []
        for _ in range(6):
            answer = client.post("/", content=iter(body), headers={"X-Own": "1"})
            if answer.status_code == 502:
                hosts.append("")
                continue
            assert (answer.status_code, answer.content) == (201, b"".join(body))
            assert {"Host", "X-Own", "Transfer-Encoding"} <= set(answer.headers["X-Had"].split(", "))
            hosts.append(answer.headers["X-Host"])
        assert hosts == [*HOSTS[:2], ""] * 2
        assert client.get("/").status_code == 502
        balancer.close()
        with pytest.raises(httpx.TransportError):
            client.get("/")
        balancer.open()
        assert client.post("/", content=iter(body)).status_code == 201
