"""The client's HTTP connections: reuse, TLS verification, truncated responses and time limits."""

import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
import trustme

from svc_cli import http_responses
from svc_cli.client import Client, NetworkFailed, connection_pools
from svc_cli.client.connection_pools import ConnectionPool
from svc_cli.client.retries import RetryPolicy
from svc_cli.daemon.probes import tls_context
from svc_cli.errors import UsageError
from svc_cli.http_responses import OddResponse
from tests.acceptance.installations import PATIENCE_S
from tests.cli.odd_servers import serving

ONCE = RetryPolicy(attempts=1)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@contextmanager
def served(
    *connections: tuple[bytes, ...], tls: ssl.SSLContext | None = None, closed: threading.Event | None = None
) -> Iterator[str]:
    """Yield a URL that sends each tuple of answers on one connection and closes it; set `closed` after a close."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for answers in connections:
            connection, _ = listener.accept()
            with closing(connection), closing(tls.wrap_socket(connection, True) if tls else connection) as line:
                for answer in answers:
                    line.recv(65536)
                    line.sendall(answer)
            if closed is not None:
                closed.set()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with closing(listener):
        yield f"http{'s' if tls else ''}://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(PATIENCE_S)


@pytest.mark.parametrize("has_poll", [True, False], ids=["", "on Windows, which has no poll"])
def test_connection_is_reused_and_replaced_once_the_server_closes_it(
    has_poll: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_poll:
        monkeypatch.delattr(select, "poll")
    closed = threading.Event()
    with served((ANSWER, ANSWER), (ANSWER,), closed=closed) as url, Client(url, "sk-test", policy=ONCE) as client:
        assert [len(client.limits()), len(client.limits())] == [0, 0]
        assert closed.wait(PATIENCE_S)
        assert len(client.limits()) == 0


def test_time_limit_of_one_response_does_not_apply_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pools, "KEEP_S", 1000)
    with served((ANSWER, ANSWER)) as url, closing(ConnectionPool(PATIENCE_S, tls_context)) as kept:
        for limit_s in (PATIENCE_S, None):
            with kept.exchange("GET", urlsplit(f"{url}/"), None, {}, PATIENCE_S, limit_s) as response:
                assert response.read() == b"{}"
            # For the next response, this time limit has passed.
            later = SimpleNamespace(monotonic=lambda: time.monotonic() + 2 * PATIENCE_S)
            monkeypatch.setattr(connection_pools, "time", later)


def test_connection_is_not_reused_after_an_error_or_a_connection_close_header() -> None:
    closing_answer = ANSWER.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    refusal = ANSWER.replace(b"200 OK", b"404 Not Found")
    with served((closing_answer,), (refusal,), (ANSWER,)) as url, Client(url, "sk-test", policy=ONCE) as client:
        assert len(client.limits()) == 0
        with pytest.raises(Exception, match="404"):
            client.limits()
        assert len(client.limits()) == 0


@pytest.mark.parametrize("cut", [b"Content-Length: 9\r\n\r\nhalf", b"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"])
def test_truncated_body_raises_network_failed(cut: bytes) -> None:
    answer = b"HTTP/1.1 200 OK\r\n" + cut
    with served((answer,), (answer,)) as url, Client(url, "sk-test", policy=ONCE) as client:
        with pytest.raises(NetworkFailed):
            client.limits()
        blocks = client.source_content("src_1")
        assert next(blocks) == b"half"
        with pytest.raises(NetworkFailed):
            next(blocks)


@pytest.mark.parametrize("cut", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Ty"])
def test_truncated_headers_raise_network_failed(cut: bytes) -> None:
    with served((cut,)) as url, Client(url, "sk-test", policy=ONCE) as client, pytest.raises(NetworkFailed):
        client.limits()


def test_error_quotes_a_response_that_is_not_http_in_one_line() -> None:
    with served((b"SSH-2.0-odd\r\n",)) as url, Client(url, "sk-test", policy=ONCE) as client:
        with pytest.raises(NetworkFailed) as failed:
            client.limits()
        assert failed.value.message.endswith(": SSH-2.0-odd.")


def test_informational_responses_are_skipped() -> None:
    interim = b"".join(b"HTTP/1.1 %d Soon\r\nLink: </a>\r\n\r\n" % status for status in (103, 100, 102))
    with served((interim + ANSWER, ANSWER)) as url, Client(url, "sk-test", policy=ONCE) as client:
        assert [len(client.limits()), len(client.limits())] == [0, 0]


def test_fragment_of_the_base_url_is_not_sent() -> None:
    with serving() as odd, Client(f"{odd.url}/#/", "sk-test", policy=ONCE) as client:
        odd.answers["GET /v1/limits"] = (200, {}, {})
        assert len(client.limits()) == 0


def test_https_verifies_certificates_against_ssl_cert_file_or_certifi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, tls = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    with served((ANSWER,), tls=tls) as url, Client(url, "sk-test", policy=ONCE) as client:
        assert len(client.limits()) == 0
    for unusable in ("none.pem", ""):
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / unusable))
        with pytest.raises(UsageError, match="SSL_CERT_FILE names"):
            Client("https://127.0.0.1:9", "sk-test", policy=ONCE).limits()
    monkeypatch.delenv("SSL_CERT_FILE")
    with (
        pytest.raises(NetworkFailed, match="CERTIFICATE_VERIFY_FAILED") as failed,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        threading.Thread(target=_shake_hands, args=(listener, tls), daemon=True).start()
        Client(f"https://127.0.0.1:{listener.getsockname()[1]}", "sk-test", policy=ONCE).limits()
    assert failed.value.is_dead


def _shake_hands(listener: socket.socket, tls: ssl.SSLContext) -> None:
    connection, _ = listener.accept()
    with pytest.raises(OSError), closing(connection):
        tls.wrap_socket(connection, True)


def test_response_that_trickles_in_forever_ends_at_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    # So that the limit for any head is not the one that ends it.
    monkeypatch.setattr(http_responses, "HEAD_S", PATIENCE_S)
    listener, is_over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with closing(connection), suppress(OSError):
            while not is_over.wait(0.02):
                connection.sendall(b"H")

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    address, began_s = urlsplit(f"http://127.0.0.1:{listener.getsockname()[1]}/"), time.monotonic()
    with closing(listener), closing(ConnectionPool(PATIENCE_S, ssl.create_default_context)) as connections:
        with pytest.raises(OddResponse), connections.exchange("GET", address, None, {}, PATIENCE_S, 0.3):
            pass
        assert time.monotonic() - began_s < PATIENCE_S
        is_over.set()
        thread.join(PATIENCE_S)
