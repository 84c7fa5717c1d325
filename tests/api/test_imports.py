"""Files from URLs: the fetch policy, the sniffing, replays by key alone, and what an import leaves behind."""

import hashlib
import threading
from typing import Any

import httpx
import pytest

from svc_daemon.settings import Limits
from svc_daemon.wire.sources import SourceAnswer
from tests.acceptance.installations import wait_until
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import NOTES, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.holds import PATIENCE_S
from tests.api.sites import PAGE, PDF, Site
from tests.fetch.servers import Exchange, serving

PATH = "/v1/buckets/inbox/files/import"


def take(
    daemon: Daemon, url: str, repeat_key: str | None = None, key: str | None = None, **fields: Any
) -> httpx.Response:
    headers = {} if repeat_key is None else {"Idempotency-Key": repeat_key}
    return daemon.ask("POST", PATH, key=key, headers=headers, json={"url": url, **fields})


def stored(daemon: Daemon) -> tuple[int, ...]:
    """How much there is of everything that an import may leave."""
    rows = [daemon.count(table) for table in ("sources", "memberships", "tasks", "idempotency", "deliveries")]
    files = [len(list(folder.iterdir())) for folder in (daemon.files.blobs, daemon.files.staging)]
    return (*rows, *files)


def test_a_file_from_a_url_is_found_by_a_search(working: Daemon, site: Site) -> None:
    source = body_of(take(working, site.url("/moved"), tags=["red"], metadata={"year": 2026}, mapping="docs"), 201)
    assert SourceAnswer.model_validate(source, extra="forbid")
    assert (source["type"], source["filename"], source["title"]) == ("file", "notes.md", "notes.md")
    assert (source["status"], source["size_bytes"]) == ("queued", len(NOTES))
    assert source["sha256"] == hashlib.sha256(NOTES).hexdigest()
    assert (source["tags"], source["metadata"], source["mapping"]) == (["red"], {"year": 2026}, "docs")
    assert (source["source_url"], source["final_url"]) == (site.url("/moved"), site.url("/notes.md"))
    assert (source["http_status"], source["etag"], source["last_modified"]) == (200, '"v1"', "Thu, 01 Jan 2026")
    assert source["fetched_at"].endswith("Z")
    working.wait_ready(source["id"])
    assert working.found("umber") == [source["id"]]
    assert working.ask("GET", f"/v1/sources/{source['id']}/content").content == NOTES


def test_a_file_takes_the_title_it_is_given(daemon: Daemon, site: Site) -> None:
    assert body_of(take(daemon, site.url("/notes.md"), title="A title"), 201)["title"] == "A title"


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "a.localhost", "[::1]", "[::ffff:127.0.0.1]", "127.1", "2130706433", "0x7f000001"),
        *("0177.0.0.1", "0.0.0.0", "169.254.169.254", "10.0.0.1", "192.168.1.1", "[fd00::1]", "[fe80::1]"),
        *("127.0.0.1.", "①27.0.0.1"),
    ],
)
def test_by_default_no_spelling_of_an_inner_address_is_fetched(make_daemon: MakeDaemon, host: str) -> None:
    daemon = make_daemon(fetch_allow="")
    daemon.make_bucket()
    before = stored(daemon)
    with serving(lambda exchange: exchange.answer(body=NOTES)) as server:
        details_of(take(daemon, f"http://{host}:{server.port}/notes.md"), "url_fetch_blocked")
        details_of(take(daemon, f"http://{host}/notes.md"), "url_fetch_blocked")
        assert server.requests == []
    assert stored(daemon) == before


def test_what_is_no_plain_web_url_is_refused(shared: Daemon) -> None:
    cases: list[str] = ["", "notes.md", "ftp://a.example/x", "http://jo:pw@a.example/", "file:///etc/passwd"]
    for url in cases:
        answer = take(shared, url)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == ("invalid_request" if not url else "url_fetch_blocked")


def test_a_redirect_to_an_inner_address_is_refused(make_daemon: MakeDaemon) -> None:
    with serving(lambda exchange: exchange.answer(body=NOTES)) as inner:
        to_inner = f"http://127.0.0.1:{inner.port}/secret"
        with serving(lambda exchange: exchange.answer(302, location=to_inner)) as outer:
            daemon = make_daemon(fetch_allow=f"127.0.0.1:{outer.port}")
            daemon.make_bucket()
            details_of(take(daemon, outer.url()), "url_fetch_blocked")
        assert inner.requests == []


def test_a_web_page_is_sent_to_the_other_door_unless_forced(working: Daemon, site: Site) -> None:
    before = stored(working)
    details = details_of(take(working, site.url("/page"), "k1"), "url_is_web_page")
    assert details["suggested_endpoint"] == "/v1/buckets/inbox/pages"
    assert stored(working) == before
    source = body_of(take(working, site.url("/page"), "k1", force=True), 201)
    assert (source["type"], source["content_type"]) == ("file", "text/html")
    working.wait_ready(source["id"])
    assert body_of(working.ask("POST", details["suggested_endpoint"], json={"url": site.url("/page")}), 201)


@pytest.mark.parametrize("path", ["/missing", "/loop"])
def test_a_host_that_does_not_serve_the_file_is_told(daemon: Daemon, site: Site, path: str) -> None:
    site.put("/loop", b"", status=302, location="/loop")
    before = stored(daemon)
    details = details_of(take(daemon, site.url(path), "k1"), "url_fetch_failed")
    assert details["reason"] == ("too_many_redirects" if path == "/loop" else "http_status")
    assert stored(daemon) == before
    assert body_of(take(daemon, site.url("/notes.md"), "k1"), 201)


def test_nothing_and_too_much_are_refused(make_daemon: MakeDaemon, site: Site) -> None:
    daemon = make_daemon(limits=Limits(file_bytes=40))
    daemon.make_bucket()
    before = stored(daemon)
    details_of(take(daemon, site.url("/empty")), "empty_file")
    assert details_of(take(daemon, site.url("/notes.md")), "file_too_large")["max_bytes"] == 40
    assert stored(daemon) == before


def test_a_checksum_is_held_against_what_came(daemon: Daemon, site: Site) -> None:
    right = hashlib.sha256(NOTES).hexdigest()
    details = details_of(take(daemon, site.url("/notes.md"), sha256="0" * 64), "checksum_mismatch")
    assert details["actual"] == right
    assert body_of(take(daemon, site.url("/notes.md"), sha256=right), 201)


def test_the_key_alone_decides_whether_an_import_is_a_replay(daemon: Daemon, site: Site) -> None:
    first = body_of(take(daemon, site.url("/notes.md"), "k1"), 201)
    before, asked = stored(daemon), len(site.server.requests)
    again = take(daemon, site.url("/file.pdf"), "k1", title="Another", force=True)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert body_of(again)["id"] == first["id"]
    assert (stored(daemon), len(site.server.requests)) == (before, asked)


def test_the_key_of_an_import_is_no_key_for_pages(daemon: Daemon, site: Site) -> None:
    body_of(take(daemon, site.url("/notes.md"), "k1"), 201)
    headers = {"Idempotency-Key": "k1"}
    other = daemon.ask("POST", "/v1/buckets/inbox/pages", headers=headers, json={"url": site.url("/page")})
    details_of(other, "idempotency_key_conflict")


def test_an_import_costs_a_create_and_its_bytes_and_its_replay_costs_neither(
    make_daemon: MakeDaemon, site: Site
) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=2, bytes_per_minute=len(NOTES)))
    daemon.make_bucket()
    body_of(take(daemon, site.url("/notes.md"), "k1"), 201)
    assert details_of(take(daemon, site.url("/notes.md"), "k2"), "quota_exceeded")["requested_bytes"] == len(NOTES)
    details_of(take(daemon, site.url("/notes.md"), "k3"), "upload_rate_limited")
    assert body_of(take(daemon, site.url("/notes.md"), "k1"))
    daemon.advance(61)
    body_of(take(daemon, site.url("/notes.md"), "k2"), 201)


def test_a_retry_that_comes_too_early_hears_so(daemon: Daemon) -> None:
    goes_on, inside = threading.Event(), threading.Event()

    def slow(exchange: Exchange) -> None:
        inside.set()
        assert goes_on.wait(PATIENCE_S)
        exchange.answer(body=NOTES, content_type="text/plain")

    with serving(slow) as server:
        asked = {"headers": {"Idempotency-Key": "k1"}, "json": {"url": server.url("/notes.md")}}
        first = daemon.loop.begin(daemon.asking("POST", PATH, **asked)())
        wait_until(inside.is_set, "the fetch has begun", PATIENCE_S)
        details_of(take(daemon, server.url("/notes.md"), "k1"), "request_in_progress")
        goes_on.set()
        source = body_of(first.result(PATIENCE_S), 201)
        assert body_of(take(daemon, server.url("/notes.md"), "k1"))["id"] == source["id"]
        assert len(server.requests) == 1


def test_a_dry_run_asks_no_host_and_leaves_nothing(daemon: Daemon, site: Site) -> None:
    before = stored(daemon)
    told = body_of(take(daemon, site.url("/notes.md"), "k1", dry_run=True, title="T"))
    assert (told["dry_run"], told["valid"]) == (True, True)
    assert told["would_create"]["source_url"] == site.url("/notes.md")
    details_of(take(daemon, "http://10.0.0.1/", dry_run=True), "url_fetch_blocked")
    details_of(take(daemon, site.url("/x"), dry_run=True, webhook={"url": "http://10.0.0.1/"}), "url_fetch_blocked")
    assert (stored(daemon), site.server.requests) == (before, [])


def test_a_webhook_that_may_not_be_called_is_refused_before_the_fetch(daemon: Daemon, site: Site) -> None:
    before = stored(daemon)
    details_of(take(daemon, site.url("/notes.md"), webhook={"url": "http://192.168.1.1/hook"}), "url_fetch_blocked")
    details_of(take(daemon, site.url("/notes.md"), webhook={"url": "mailto:jo@a.example"}), "url_fetch_blocked")
    assert refused_field(take(daemon, site.url("/notes.md"), webhook={"metadata": {}})) == "webhook.url"
    too_much = {"url": site.url("/hook"), "metadata": {"text": "x" * 9000}}
    details_of(take(daemon, site.url("/notes.md"), webhook=too_much), "metadata_too_large")
    assert (stored(daemon), site.server.requests) == (before, [])


def test_an_import_takes_the_place_of_the_source_that_it_replaces(working: Daemon, site: Site) -> None:
    old = working.add_ready(b"The umber quay of old.\n", filename="old.txt")
    new = body_of(take(working, site.url("/notes.md"), replaces=old), 201)["id"]
    working.wait_ready(new)
    assert working.members() == [new]
    assert details_of(take(working, site.url("/notes.md"), replaces="src_none"), "source_not_found") == {}


def test_bytes_without_text_end_failed(working: Daemon, site: Site) -> None:
    failed = body_of(take(working, site.url("/blank.txt")), 201)
    assert working.wait_status(failed["id"], "failed")["error"]["code"] == "no_extractable_text"


def test_the_samples_are_what_their_names_say() -> None:
    assert b"<html" in PAGE
    assert PDF.startswith(b"%PDF-")
