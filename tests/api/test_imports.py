"""Files from URLs: the fetch policy, the sniffing, replays by key alone, and what an import leaves behind."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook

from svc_daemon.core.webhooks import team_secret
from svc_daemon.wire.sources import SourceAnswer
from tests.acceptance.installations import wait_until
from tests.api.answers import body_of
from tests.api.daemons import NOTES, Daemon
from tests.fetch.servers import Exchange, Server, serving

PAGE = b"<!doctype html><html><head><title>Quays &amp; stones</title></head><body><p>Umber quay.</p></body></html>"


def site(exchange: Exchange) -> None:
    """A small web site."""
    match exchange.request.path:
        case "/notes.md":
            exchange.answer(200, NOTES, content_type="text/markdown", etag='"v1"', last_modified="Thu, 01 Jan 2026")
        case "/page" | "/index.php":
            exchange.answer(200, PAGE, content_type="text/html; charset=utf-8")
        case "/empty":
            exchange.answer(200, b"", content_type="text/plain")
        case "/moved":
            exchange.answer(302, location="/notes.md")
        case "/blank.txt":
            exchange.answer(200, b" \n", content_type="text/plain")
        case _:
            exchange.answer(404)


@contextmanager
def hosting() -> Iterator[Server]:
    with serving(site) as server:
        yield server


@pytest.fixture
def server() -> Iterator[Server]:
    with hosting() as server:
        yield server


def take(daemon: Daemon, url: str, repeat_key: str | None = None, **fields: Any) -> httpx.Response:
    headers = {} if repeat_key is None else {"Idempotency-Key": repeat_key}
    return daemon.ask("POST", "/v1/buckets/inbox/files/import", headers=headers, json={"url": url, **fields})


def test_a_file_from_a_url_becomes_ready_and_its_webhook_arrives_signed(working: Daemon, server: Server) -> None:
    with serving(lambda exchange: exchange.answer(204)) as receiver:
        webhook = {"url": receiver.url("/hook"), "metadata": {"ticket": 7}}
        source = body_of(take(working, server.url("/moved"), webhook=webhook), 201)
        assert SourceAnswer.model_validate(source, extra="forbid")
        assert (source["type"], source["filename"], source["status"]) == ("file", "notes.md", "queued")
        assert source["sha256"] == hashlib.sha256(NOTES).hexdigest()
        assert (source["source_url"], source["final_url"]) == (server.url("/moved"), server.url("/notes.md"))
        assert (source["http_status"], source["etag"], source["last_modified"]) == (200, '"v1"', "Thu, 01 Jan 2026")
        working.wait_ready(source["id"])
        call = wait_until(lambda: receiver.requests[:1], "the webhook arrives")[0]
    secret = team_secret(working.context.secret, working.team_id, 0)
    told = Webhook(secret).verify(call.body, dict(call.headers))
    assert told["id"] == call.headers["webhook-id"]
    assert told["id"].startswith("evt_")
    assert (told["type"], told["event"], told["source_id"]) == ("source.ready", "source.ready", source["id"])
    assert told["metadata"] == {"ticket": 7}
    assert (told["data"]["ready"], told["data"]["status"]) == (True, "active")
    assert working.found("umber") == [source["id"]]
