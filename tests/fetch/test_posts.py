"""A posted webhook arrives as it was signed, and only the status of the response is returned."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from svc_daemon.core.access.api_keys import secret_text
from svc_daemon.core.access.urls import AddressPolicy
from svc_daemon.errors import ServiceError
from svc_daemon.fetch.contract import FetchFailed, FetchLimits
from svc_daemon.fetch.fetchers import Fetcher
from svc_daemon.wire.light.webhook_calls import signed_headers
from tests.fetch.servers import Exchange, Names, Server, serving

SECRET = secret_text(bytes(range(32)))
BODY = json.dumps({"type": "source.ready", "metadata": {"name": "Zoë"}}, ensure_ascii=False).encode()


def post(server: Server, limits: FetchLimits | None = None) -> int:
    headers = signed_headers([SECRET], "evt_1", datetime.now(UTC), BODY)
    return asyncio.run(Fetcher(server.policy, limits).post(server.url("/hook?x=1"), BODY, headers))


def test_posted_webhook_arrives_unchanged_and_verifies() -> None:
    with serving(lambda exchange: exchange.answer(204)) as server:
        assert post(server) == 204
    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/hook?x=1", BODY)
    assert request.headers["content-type"] == "application/json"
    assert request.headers["content-length"] == str(len(BODY))
    assert Webhook(SECRET).verify(request.body, dict(request.headers)) == json.loads(BODY)


def test_post_returns_the_status_and_follows_no_redirect() -> None:
    statuses = (200, 202, 204, 301, 302, 303, 304, 307, 308, 400, 404, 410, 429, 500, 503)
    answers = iter(statuses)
    with serving(lambda exchange: exchange.answer(next(answers), b"body", location="/elsewhere")) as server:
        assert tuple(post(server) for _ in statuses) == statuses
    assert set(server.paths) == {"/hook?x=1"}


def test_post_does_not_wait_for_the_response_body() -> None:
    def script(exchange: Exchange) -> None:
        exchange.head(200, {"content-length": "1000000"})
        exchange.drip()

    with serving(script) as server:
        assert post(server) == 200


def test_post_fails_if_the_receiver_is_silent_or_disconnects() -> None:
    def silence(exchange: Exchange) -> None:
        assert exchange.connection.recv(1) == b""

    for script, reason in ((silence, "timeout"), (lambda exchange: None, "broken_off")):
        with serving(script) as server, pytest.raises(FetchFailed) as failed:
            post(server, limits=FetchLimits(post_s=0.2))
        assert failed.value.details == {"reason": reason}


def test_post_is_subject_to_the_same_address_policy() -> None:
    with serving(lambda exchange: exchange.answer()) as server:
        for fetcher, host in (
            (Fetcher(AddressPolicy()), "127.0.0.1"),
            (Fetcher(server.policy, resolver=Names(hooks_example=[["10.0.0.1"]])), "hooks.example"),
        ):
            with pytest.raises(ServiceError) as refused:
                asyncio.run(fetcher.post(server.url(host=host), BODY, {}))
            assert refused.value.code == "url_fetch_blocked", host
    assert server.requests == []


def test_default_fetch_limits_are_those_of_the_contract() -> None:
    assert FetchLimits() == FetchLimits(file_bytes=25 * 1024 * 1024, fetch_s=30, post_s=15, redirects=5)
