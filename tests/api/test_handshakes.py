"""TLS at our own door: the limits of a connection hold from its first packet on, and for what follows the handshake."""

import logging
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace

import pytest
import trustme
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from svc_daemon.api.middleware.guards import ClientLimits
from tests.acceptance.installations import PATIENCE_S
from tests.api.servers import connected, count, hardened, is_closed, post, read_answer, refuse, serving

LIMITS = ClientLimits(linger_s=PATIENCE_S, linger_bytes=20_000_000, max_connections=20)
#: For clients that run out of time.
HURRIED = replace(LIMITS, head_s=1, body_grace_s=0.2, keep_alive_s=1, linger_s=0.5)
POURED_BYTES = 5_000_000
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
UNFINISHED = (b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", GET, b"\x00" * 100)


async def hello(request: Request) -> Response:
    return JSONResponse({"url": str(request.url)})


async def pour(request: Request) -> Response:
    return Response(b"x" * POURED_BYTES)


ROUTES = [
    Route("/", hello),
    Route("/pour", pour),
    Route("/refuse", refuse, methods=["POST"]),
    Route("/read", count, methods=["POST"]),
]


@pytest.fixture(scope="module")
def trust(authority: trustme.CA) -> ssl.SSLContext:
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    return trust


@contextmanager
def secured(authority: trustme.CA, limits: ClientLimits = LIMITS) -> Iterator[int]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    with serving(hardened(ROUTES, limits=limits), limits, tls) as port:
        yield port


@pytest.fixture(scope="module")
def port(authority: trustme.CA) -> Iterator[int]:
    with secured(authority) as port:
        yield port


@pytest.fixture(scope="module")
def hurried(authority: trustme.CA) -> Iterator[int]:
    with secured(authority, HURRIED) as port:
        yield port


@contextmanager
def shaken(port: int, trust: ssl.SSLContext) -> Iterator[ssl.SSLSocket]:
    """A connection whose handshake has ended."""
    with connected(port) as bare, closing(trust.wrap_socket(bare, server_hostname="localhost")) as client:
        yield client


def test_requests_are_answered_over_tls_with_https_urls(port: int, trust: ssl.SSLContext) -> None:
    with shaken(port, trust) as client:
        for _ in range(3):
            client.sendall(GET)
            assert read_answer(client).document == {"url": "https://localhost/"}
        client.sendall(post("/read", 3_000_000) + b"x" * 3_000_000)
        assert read_answer(client).document == {"size": 3_000_000}


def test_a_request_that_comes_with_the_end_of_the_handshake_is_answered(port: int, trust: ssl.SSLContext) -> None:
    arrived, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trust.wrap_bio(arrived, leaving, server_hostname="localhost")
    with connected(port) as client:
        shake(client, tls, arrived, leaving)
        tls.write(GET)
        client.sendall(leaving.read())
        seen = b""
        while b"https://localhost/" not in seen:
            received = client.recv(65536)
            assert received, seen
            arrived.write(received)
            try:
                seen += tls.read()
            except ssl.SSLWantReadError:
                continue


def shake(client: socket.socket, tls: ssl.SSLObject, arrived: ssl.MemoryBIO, leaving: ssl.MemoryBIO) -> None:
    """Do the client's part of the handshake, but for its last bytes, which stay in `leaving`."""
    while True:
        try:
            return tls.do_handshake()
        except ssl.SSLWantReadError:
            client.sendall(leaving.read())
            arrived.write(client.recv(65536))


def test_an_early_refusal_reaches_a_client_that_is_still_sending(port: int, trust: ssl.SSLContext) -> None:
    with shaken(port, trust) as client:
        client.sendall(post("/refuse", 15_000_000))
        for _ in range(150):
            client.sendall(b"x" * 100_000)
        answer = read_answer(client)
        assert (answer.status, answer.headers["connection"]) == (401, "close")
    with shaken(port, trust) as client, pytest.raises(OSError):
        client.sendall(post("/refuse", 9_000_000_000))
        for _ in range(1000):
            client.sendall(b"x" * 100_000)


def test_a_client_that_reads_late_gets_all_of_the_last_answer(hurried: int, trust: ssl.SSLContext) -> None:
    with shaken(hurried, trust) as client:
        client.sendall(b"GET /pour HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        # Longer than the server waits for a client that goes on sending.
        time.sleep(3 * HURRIED.linger_s)
        received = 0
        while data := client.recv(65536):
            received += len(data)
    assert received > POURED_BYTES


def test_a_connection_ends_although_its_client_says_nothing_to_that(hurried: int, trust: ssl.SSLContext) -> None:
    arrived, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trust.wrap_bio(arrived, leaving, server_hostname="localhost")
    with connected(hurried) as client:
        shake(client, tls, arrived, leaving)
        tls.write(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        client.sendall(leaving.read())
        # The end of TLS arrives, and this client does not answer it.
        assert is_ended(client)


def test_a_client_that_ends_its_body_early_gets_an_answer(port: int, trust: ssl.SSLContext) -> None:
    with shaken(port, trust) as client:
        client.sendall(post("/read", 100) + b"x")
        # Python refuses to end TLS because the answer arrives first.
        with pytest.raises(ssl.SSLError, match="APPLICATION_DATA_AFTER_CLOSE_NOTIFY"):
            client.unwrap()


def test_a_handshake_that_is_not_finished_is_cut_off(
    hurried: int, trust: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(connected(hurried)) for _ in UNFINISHED]
        for client, sent in zip(clients, UNFINISHED, strict=True):
            client.sendall(sent)
        assert all(map(is_ended, clients))
    with shaken(hurried, trust) as client:
        client.sendall(GET)
        assert read_answer(client).status == 200
    # Scanners of the network must not fill the log.
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def is_ended(client: socket.socket) -> bool:
    """Whether the server has ended the connection, perhaps after an alert."""
    client.settimeout(PATIENCE_S)
    try:
        while client.recv(4096):
            pass
    except ConnectionResetError:
        pass
    return True


def test_sockets_that_begin_no_handshake_keep_nobody_out(authority: trustme.CA, trust: ssl.SSLContext) -> None:
    with ExitStack() as stack:
        limits = ClientLimits(head_s=60, max_connections=20)
        port = stack.enter_context(secured(authority, limits))
        silent = [stack.enter_context(connected(port)) for _ in range(limits.max_connections * 3)]
        for _ in range(5):
            client = stack.enter_context(shaken(port, trust))
            client.sendall(GET)
            assert read_answer(client).status == 200
        assert is_closed(silent[0])
        # The server ends with the block, although some of these handshakes have a minute left.
