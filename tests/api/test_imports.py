"""Files from URLs: the fetch policy, the sniffing, replays by key alone, and what an import leaves behind."""

import hashlib
import threading
from typing import Any

import httpx
import pytest

from tests.acceptance.installations import PATIENCE_S
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import NOTES, Daemon
from tests.api.fixtures import LimitDaemon, MakeDaemon
from tests.api.sites import Site
from tests.fetch.servers import Exchange, serving

PATH = "/v1/buckets/inbox/files/import"
SHA256 = hashlib.sha256(NOTES).hexdigest()


def take(
    daemon: Daemon, url: str, repeat_key: str | None = None, key: str | None = None, **fields: Any
) -> httpx.Response:
    return daemon.ask("POST", PATH, key=key, repeat_key=repeat_key, json={"url": url, **fields})


def taken(daemon: Daemon, url: str, repeat_key: str | None = None, **fields: Any) -> dict[str, Any]:
    """The new source of an import that works."""
    return body_of(take(daemon, url, repeat_key, **fields), 201)


@pytest.mark.rule("service.kinds", "service.urls", "source.found", "upload.import")
def test_a_file_from_a_url_is_found_by_a_search(working: Daemon, site: Site) -> None:
    given: dict[str, Any] = {"tags": ["red"], "metadata": {"year": 2026}, "mapping": "docs"}
    source = taken(working, site.url("/moved"), **given)
    expected = {**given, "type": "file", "filename": "notes.md", "title": "notes.md", "status": "queued"}
    expected |= {"size_bytes": len(NOTES), "sha256": SHA256, "http_status": 200, "etag": '"v1"'}
    expected |= {"source_url": site.url("/moved"), "final_url": site.url("/notes.md")}
    expected |= {"last_modified": "Thu, 01 Jan 2026"}
    assert {name: source[name] for name in expected} == expected
    assert source["fetched_at"].endswith("Z")
    working.wait_ready(source["id"])
    assert working.found("umber") == [source["id"]]
    assert working.ask("GET", f"/v1/sources/{source['id']}/content").content == NOTES


def test_a_file_takes_the_title_and_checksum_it_is_given(shared: Daemon, site: Site) -> None:
    assert taken(shared, site.url("/notes.md"), title="A title", sha256=SHA256)["title"] == "A title"
    details = details_of(take(shared, site.url("/notes.md"), sha256="0" * 64), "checksum_mismatch")
    assert details["actual"] == SHA256


#: Spellings of addresses that are not public.
INNER = """127.0.0.1 localhost a.localhost [::1] [::ffff:127.0.0.1] 127.1 2130706433 0x7f000001 0177.0.0.1 0.0.0.0
    169.254.169.254 10.0.0.1 192.168.1.1 [fd00::1] [fe80::1] 127.0.0.1. ①27.0.0.1"""


@pytest.mark.rule("url_fetch_blocked")
def test_by_default_no_spelling_of_an_inner_address_is_fetched(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(fetch_allow="")
    daemon.make_bucket()
    before = daemon.kept()
    with serving(lambda exchange: exchange.answer(body=NOTES)) as server:
        for host in INNER.split():
            details_of(take(daemon, f"http://{host}:{server.port}/notes.md"), "url_fetch_blocked")
            details_of(take(daemon, f"http://{host}/notes.md"), "url_fetch_blocked")
        assert server.requests == []
    assert daemon.kept() == before


def test_what_is_no_plain_web_url_is_refused(shared: Daemon) -> None:
    details_of(take(shared, ""), "invalid_request")
    for url in ("notes.md", "ftp://a.example/x", "http://jo:pw@a.example/", "file:///etc/passwd"):
        details_of(take(shared, url), "url_fetch_blocked")


@pytest.mark.rule("upload.import", "rule3.cross-referral", "error.suggestion")
def test_a_web_page_is_sent_to_the_other_door_unless_forced(working: Daemon, site: Site) -> None:
    before = working.kept()
    details = details_of(take(working, site.url("/page"), "k1"), "url_is_web_page")
    assert (details["suggested_endpoint"], working.kept()) == ("/v1/buckets/inbox/pages", before)
    source = taken(working, site.url("/page"), "k1", force=True)
    assert (source["type"], source["content_type"]) == ("file", "text/html")
    working.wait_ready(source["id"])
    working.post(details["suggested_endpoint"], 201, json={"url": site.url("/page")})


@pytest.mark.rule("url_fetch_failed")
def test_a_host_that_does_not_serve_the_file_is_reported(shared: Daemon, site: Site) -> None:
    site.put("/loop", b"", status=302, location="/loop")
    before = shared.kept()
    for path, reason in (("/loop", "too_many_redirects"), ("/missing", "http_status")):
        assert details_of(take(shared, site.url(path), "host"), "url_fetch_failed")["reason"] == reason
    assert shared.kept() == before
    taken(shared, site.url("/notes.md"), "host")


@pytest.mark.rule("rule5.same-request")
def test_the_key_alone_decides_whether_an_import_is_a_replay(shared: Daemon, site: Site) -> None:
    first = taken(shared, site.url("/notes.md"), "alone")
    before, fetches = shared.kept(), len(site.server.requests)
    again = take(shared, site.url("/file.pdf"), "alone", title="Another", force=True)
    assert (body_of(again)["id"], again.headers["Idempotent-Replayed"]) == (first["id"], "true")
    page = shared.ask("POST", "/v1/buckets/inbox/pages", repeat_key="alone", json={"url": site.url("/page")})
    details_of(page, "idempotency_key_conflict")
    assert (shared.kept(), len(site.server.requests)) == (before, fetches)


@pytest.mark.rule("rule6.replay-free")
def test_an_import_costs_a_create_and_its_bytes_and_its_replay_costs_neither(limited: LimitDaemon, site: Site) -> None:
    daemon = limited(creates_per_second=2, bytes_per_minute=len(NOTES))
    taken(daemon, site.url("/notes.md"), "k1")
    assert details_of(take(daemon, site.url("/notes.md"), "k2"), "quota_exceeded")["requested_bytes"] == len(NOTES)
    details_of(take(daemon, site.url("/notes.md"), "k3"), "upload_rate_limited")
    assert body_of(take(daemon, site.url("/notes.md"), "k1"))
    daemon.advance(61)
    taken(daemon, site.url("/notes.md"), "k2")


def test_a_retry_that_comes_too_early_is_refused(daemon: Daemon) -> None:
    goes_on, inside = threading.Event(), threading.Event()

    def slow(exchange: Exchange) -> None:
        inside.set()
        assert goes_on.wait(PATIENCE_S)
        exchange.answer(body=NOTES, content_type="text/plain")

    with serving(slow) as server:
        url = server.url("/notes.md")
        first = daemon.loop.begin(daemon.asking("POST", PATH, repeat_key="k1", json={"url": url})())
        daemon.wait(inside.is_set, "the fetch has begun")
        details_of(take(daemon, url, "k1"), "request_in_progress")
        goes_on.set()
        source = body_of(first.result(PATIENCE_S), 201)
        assert body_of(take(daemon, url, "k1"))["id"] == source["id"]
        assert len(server.requests) == 1


def test_a_webhook_that_may_not_be_called_is_refused_before_the_fetch(shared: Daemon, site: Site) -> None:
    before = shared.kept()
    details_of(take(shared, "http://10.0.0.1/", dry_run=True), "url_fetch_blocked")
    for url in ("http://192.168.1.1/hook", "mailto:jo@a.example"):
        for dry_run in (False, True):
            refused = take(shared, site.url("/notes.md"), webhook={"url": url}, dry_run=dry_run)
            details_of(refused, "url_fetch_blocked")
    assert refused_field(take(shared, site.url("/notes.md"), webhook={"metadata": {}})) == "webhook.url"
    too_much = {"url": site.url("/hook"), "metadata": {"text": "x" * 9000}}
    details_of(take(shared, site.url("/notes.md"), webhook=too_much), "metadata_too_large")
    assert (shared.kept(), site.server.requests) == (before, [])


def test_an_import_takes_the_place_of_the_source_that_it_replaces(working: Daemon, site: Site) -> None:
    old = working.add_ready(b"The umber quay of old.\n", filename="old.txt")
    new = taken(working, site.url("/notes.md"), replaces=old)["id"]
    working.wait_ready(new)
    assert working.members() == [new]
    assert details_of(take(working, site.url("/notes.md"), replaces="src_none"), "source_not_found") == {}
