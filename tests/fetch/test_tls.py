"""Fetches over TLS send the name in the handshake and verify that the certificate is for it."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
import trustme

from svc_daemon.core.access.urls import AddressPolicy
from svc_daemon.fetch.contract import Fetched, FetchFailed
from svc_daemon.fetch.fetchers import Fetcher
from tests.fetch.servers import Exchange, Kept, Names, Script, Server, serving

NAME = "files.example"


@dataclass(slots=True)
class Secure:
    """A server with a certificate, and the names that clients sent in their handshakes."""

    server: Server
    #: Trusts the authority that issued the certificate.
    trust: ssl.SSLContext
    greeted: list[str | None] = field(default_factory=list)


@contextmanager
def secure(authority: trustme.CA, script: Script, *names: str) -> Iterator[Secure]:
    """Start a server whose certificate is for these names."""
    context, trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert(*names, key_type=trustme.KeyType.ECDSA).configure_cert(context)
    authority.configure_trust(trust)
    greeted: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: greeted.append(name)
    with serving(script, context) as server:
        yield Secure(server, trust, greeted)


def fetch(server: Server, trust: ssl.SSLContext | None, host: str = NAME) -> Fetched:
    fetcher = Fetcher(server.policy, resolver=Names(files_example=[["127.0.0.1"]]), tls=trust)
    fetched = asyncio.run(fetcher.fetch(server.url(host=host, scheme="https"), Kept()))
    assert isinstance(fetched, Fetched)
    return fetched


def answer(exchange: Exchange) -> None:
    exchange.answer(body=b"secure")


def test_fetch_sends_the_name_in_the_handshake_and_the_host_header(authority: trustme.CA) -> None:
    with secure(authority, answer, NAME) as secured:
        assert fetch(secured.server, secured.trust).size_bytes == len(b"secure")
    assert secured.greeted == [NAME]
    assert secured.server.requests[0].headers["host"] == f"{NAME}:{secured.server.port}"


def test_certificate_for_another_name_or_of_an_unknown_authority_fails(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        secure(authority, answer, "other.example", "127.0.0.1") as other,
        secure(authority, answer, NAME) as own,
        serving(answer) as plain,
        authority.cert_pem.tempfile() as path,
    ):
        fetch(other.server, other.trust, "127.0.0.1")
        # The fetcher ignores the environment's certificates.
        monkeypatch.setenv("SSL_CERT_FILE", path)
        for server, trust in ((other.server, other.trust), (own.server, None), (plain, own.trust)):
            asked = len(server.requests)
            with pytest.raises(FetchFailed) as failed:
                fetch(server, trust)
            assert failed.value.details == {"reason": "tls"}
            assert "other.example" not in str(failed.value)
            assert len(server.requests) == asked


def test_redirect_from_https_to_http_is_followed_and_reported(authority: trustme.CA) -> None:
    with (
        serving(answer) as plain,
        secure(authority, lambda exchange: exchange.answer(301, location=plain.url("/a")), "127.0.0.1") as secured,
    ):
        policy = AddressPolicy(plain.policy.allowed + secured.server.policy.allowed)
        url = secured.server.url(scheme="https")
        fetched = asyncio.run(Fetcher(policy, tls=secured.trust).fetch(url, Kept()))
        assert isinstance(fetched, Fetched)
        assert fetched.final_url == plain.url("/a")
