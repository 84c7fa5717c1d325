"""Sources that keep themselves up to date: what a schedule fetches, when, and what stays when a try fails."""

import re
import threading
from datetime import timedelta
from typing import Any

import httpx
import pytest

from svc_daemon.core.access import api_keys
from svc_daemon.core.times import from_text, to_text
from svc_daemon.operations.remove.sweeping import recall_far_pauses
from svc_daemon.settings.limits import Limits
from tests.acceptance.installations import PATIENCE_S, wait_until
from tests.api.answers import body_of, details_of, refused_field
from tests.api.asking import DOORS, ask
from tests.api.daemons import LOOPBACK, NOTES, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.sites import DAY, PAGE, Site, add, receiving, schedule, try_again, updates
from tests.fetch.servers import Exchange, serving


def hit(daemon: Daemon, query: str) -> dict[str, Any]:
    found: dict[str, Any] = body_of(daemon.search(query))["data"][0]
    return found


@pytest.fixture
def page(working: Daemon, site: Site) -> str:
    """A page that is ready, and is fetched again once a day."""
    return add(working, site.url("/page"))


@pytest.mark.rule("source.refresh")
def test_a_page_with_an_interval_is_found_by_its_new_text_and_keeps_its_id_and_url(
    working: Daemon, site: Site, page: str
) -> None:
    before = working.source(page)
    assert (before["refresh"]["every_seconds"], before["refresh"]["on_gone"]) == (DAY, "report")
    site.put("/new-place", PAGE.replace(b"ochre", b"crimson"))
    site.put("/page", b"", status=301, location="/new-place")
    try_again(working, page)
    working.wait(lambda: working.found("crimson") == [page], "the new text is found")
    after = working.source(page)
    assert working.found("ochre") == []
    assert (after["ready"], after["task"], after["sha256"] == before["sha256"]) == (True, before["task"], False)
    assert (after["source_url"], after["final_url"]) == (site.url("/page"), site.url("/new-place"))
    assert b"crimson" in working.ask("GET", f"/v1/sources/{page}/content").content
    assert [each["outcome"] for each in updates(working)] == ["changed"]
    assert len(working.blob_names()) == 1


def ledger(number: int, edition: int) -> bytes:
    """Return a page whose text says its edition."""
    said = f"Ledger{number} of the harbour is in its edition e{number}x{edition} now."
    return f"<html><body><article><h1>Ledger</h1><p>{said}</p></article></body></html>".encode()


def editions(answer: httpx.Response, page: str) -> list[int]:
    """Return the editions of the page that a search has found."""
    texts = [hit["text"] for hit in body_of(answer)["data"] if hit["source_id"] == page]
    return [int(found) for text in texts for found in re.findall(r" e\d+x(\d+) ", text)]


@pytest.mark.rule("source.refresh")
def test_searches_find_one_edition_of_each_page_of_a_site_that_changes_again_and_again(
    working: Daemon, site: Site
) -> None:
    pages = [add(working, site.put(f"/ledger{number}", ledger(number, 1))) for number in range(5)]
    allowed, wrong, count, is_over = {1}, list[str](), 0, threading.Event()

    def search() -> None:
        nonlocal count
        while not is_over.wait(0.03):
            for number, page in enumerate(pages):
                before = set(allowed)
                answer = working.search(f"ledger{number}", buckets=["inbox"])
                if answer.status_code == 504:
                    # The clock was set ahead during the search.
                    continue
                found = editions(answer, page)
                if len(found) != 1 or not set(found) <= before | allowed:
                    wrong.append(f"{page}: {found}, not {before}")
                count += 1

    thread = threading.Thread(target=search)
    thread.start()
    try:
        for edition in range(2, 6):
            allowed.add(edition)
            for number in range(len(pages)):
                site.put(f"/ledger{number}", ledger(number, edition))
            working.advance(1.2 * DAY)
            for number, page in enumerate(pages):
                # A try that meets the end of the one before is put off by a minute.
                wait_until(
                    lambda: editions(working.search(f"ledger{number}"), page) == [edition],  # noqa: B023
                    f"edition {edition} is found",
                    3 * PATIENCE_S,
                )
            allowed.remove(edition - 1)
    finally:
        is_over.set()
        thread.join()
    assert (wrong, count >= len(pages)) == ([], True)


def test_a_page_whose_bytes_differ_and_whose_text_does_not_is_unchanged(working: Daemon, site: Site, page: str) -> None:
    before = working.source(page)
    site.put("/page", PAGE.replace(b"<body>", b"<body><!-- token 4711 -->"), etag='"new"')
    try_again(working, page)
    after = working.source(page)
    assert (after["sha256"], after["etag"], updates(working)) == (before["sha256"], '"new"', [])
    assert after["fetched_at"] > before["fetched_at"]
    assert len(working.blob_names()) == 1


def test_neither_the_create_rate_nor_the_quota_is_charged_and_no_webhook_is_called(
    make_daemon: MakeDaemon, site: Site
) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=1, bytes_per_minute=len(NOTES)))
    daemon.make_bucket()
    daemon.start()
    with receiving() as receiver:
        body = {"url": site.url("/notes.md"), "refresh": {"every_seconds": DAY}, "webhook": {"url": receiver.url}}
        source_id = str(daemon.post("/v1/buckets/inbox/files/import", 201, json=body)["id"])
        daemon.wait(lambda: len(receiver.calls) == 1, "the webhook is called")
        site.put("/notes.md", NOTES * 2 + b"And cobalt.", "text/markdown")
        try_again(daemon, source_id)
        daemon.wait(lambda: daemon.found("cobalt") == [source_id], "the new text is found")
        assert (len(receiver.calls), daemon.count("deliveries")) == (1, 1)


@pytest.mark.parametrize(
    ("body", "content_type", "status", "code"),
    [
        (b"down", "text/html", 503, "website_analysis_failed"),
        (b"%PDF-1.4\n", "application/pdf", 200, "url_is_file"),
        (b"<html><body> </body></html>", "text/html", 200, "no_extractable_text"),
        (b"", "text/html", 200, "website_analysis_failed"),
    ],
)
def test_a_try_that_fails_keeps_the_old_text_and_is_reported_everywhere(
    working: Daemon, site: Site, page: str, body: bytes, content_type: str, status: int, code: str
) -> None:
    assert (hit(working, "ochre")["stale"], hit(working, "ochre")["stale_reason"]) == (False, None)
    before = working.source(page)
    site.put("/page", body, content_type, status)
    failed = try_again(working, page)
    assert (failed["failures"], failed["error"]["code"], failed["gone"]) == (1, code, False)
    found = hit(working, "ochre")
    assert (found["stale"], found["fetched_at"]) == (True, before["fetched_at"])
    assert failed["error"]["message"] in found["stale_reason"]
    for door in DOORS:
        (quoted,) = ask(working, "What was the ochre quay built of?", door)["sources"]
        assert all(quoted[name] == found[name] for name in ("fetched_at", "stale", "stale_reason"))
    after = working.source(page)
    same = ("ready", "sha256", "fetched_at", "status", "error", "etag")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert working.show("/v1/buckets/inbox")["bucketStore"]["stale_member_count"] == 1
    assert [(each["outcome"], each["error"]["code"]) for each in updates(working)] == [("failed", code)]
    assert len(working.blob_names()) == 1
    site.put("/page", PAGE.replace(b"ochre", b"crimson"))
    assert try_again(working, page, 1000)["failures"] == 0
    working.wait(lambda: working.found("crimson") == [page], "the new text is found")
    assert hit(working, "crimson")["stale"] is False


@pytest.mark.parametrize(
    ("status", "asked", "least_s"),
    [
        (429, {"retry_after": "7200"}, 7200),
        (503, {"retry_after": "Thu, 01 Jan 2026 02:00:00 GMT", "date": "Thu, 01 Jan 2026 00:00:00 GMT"}, 7200),
        (503, {"retry_after": "999999999999"}, DAY),
        (503, {"retry_after": "soon"}, 0),
        (503, {"retry_after": "Thu, 01 Jan 99999999999 00:00:00 GMT", "date": "Thu, 01 Jan 2026 00:00:00 GMT"}, 0),
        (429, {"retry_after": "Thu, 01 Jan 2026 00:00:00 +99999999999999"}, 0),
        (404, {"retry_after": "999999999999"}, DAY * 0.9),
    ],
)
def test_a_host_that_asks_for_a_pause_gets_it_for_all_its_pages(
    working: Daemon, site: Site, status: int, asked: Any, least_s: float
) -> None:
    page = add(working, site.url("/page"))
    other = add(working, site.url("/notes.md"), "files/import", every=2 * DAY)
    site.put("/page", b"busy", status=status, **asked)
    tried = try_again(working, page)
    pause_s = (from_text(tried["next_at"]) - from_text(tried["tried_at"])).total_seconds()
    assert least_s <= pause_s < DAY * 1.1 + 1
    if asked["retry_after"] != "soon" and status != 404:
        assert schedule(working, other)["next_at"] >= to_text(from_text(tried["tried_at"]) + timedelta(seconds=least_s))


def test_a_blocked_address_is_refused_by_each_try(make_daemon: MakeDaemon, site: Site) -> None:
    daemon = make_daemon()
    daemon.make_bucket()
    daemon.start()
    page = add(daemon, site.url("/page"))
    daemon.close()
    strict = make_daemon(fetch_allow=f"{LOOPBACK}:1")
    strict.start()
    asked = len(site.server.requests)
    assert try_again(strict, page)["error"]["code"] == "url_fetch_blocked"
    assert len(site.server.requests) == asked


@pytest.mark.parametrize("status", [404, 410])
def test_a_page_that_is_gone_is_reported_and_never_deleted(working: Daemon, site: Site, page: str, status: int) -> None:
    site.put("/page", b"not here", status=status)
    tries = [try_again(working, page) for _ in range(4)]
    assert [(each["failures"], each["gone"]) for each in tries] == [(1, False), (2, False), (3, True), (4, True)]
    assert (working.found("ochre"), working.source(page)["ready"]) == ([page], True)
    assert [(each["outcome"], each["failures"]) for each in updates(working)] == [("gone", 1), ("gone", 3)]


def test_a_page_that_is_gone_is_deleted_only_if_that_was_asked_for(working: Daemon, site: Site) -> None:
    page = add(working, site.url("/page"), on_gone="delete")
    site.put("/page", b"not here", status=404)
    for _ in range(2):
        try_again(working, page)
    assert working.found("ochre") == [page]
    working.advance(1.2 * DAY)
    working.wait(lambda: working.ask("GET", f"/v1/sources/{page}").status_code == 404, "the source is deleted")
    assert [event["type"] for event in working.show("/v1/events")["data"]][-1] == "source.deleted"
    working.wait(lambda: not working.blob_names(), "the bytes are removed")


def test_a_page_that_an_agent_names_is_not_deleted(working: Daemon, site: Site) -> None:
    page = add(working, site.url("/page"), on_gone="delete")
    policy = {"scope": "sources", "source_ids": [page]}
    working.post("/v1/agents", 201, json={"agent_id": "guide", "name": "Guide", "policy": policy})
    site.put("/page", b"not here", status=404)
    assert [try_again(working, page)["gone"] for _ in range(3)] == [False, False, True]
    assert working.found("ochre") == [page]


def test_a_second_import_of_a_page_with_an_interval_only_sets_it(working: Daemon, site: Site) -> None:
    url = site.url("/page")
    first = working.post("/v1/buckets/inbox/pages", 201, json={"url": url})
    working.wait_ready(first["id"])
    asked = len(site.server.requests)
    details_of(working.ask("POST", "/v1/buckets/inbox/pages", json={"url": url}), "website_url_exists")
    body = {"url": url, "title": "Ignored", "refresh": {"every_seconds": 2 * DAY}}
    answers = [working.ask("POST", "/v1/buckets/inbox/pages", json=body, repeat_key="again") for _ in range(2)]
    for answer in answers:
        set_now = body_of(answer)
        assert (set_now["id"], set_now["refresh"]["every_seconds"]) == (first["id"], 2 * DAY)
        assert set_now["title"] == first["title"]
    would = working.post("/v1/buckets/inbox/pages", json={**body, "dry_run": True})
    assert would["would_create"] is None
    working.make_bucket("elsewhere")
    details_of(working.ask("POST", "/v1/buckets/elsewhere/pages", json=body), "website_url_exists")
    assert (len(site.server.requests), working.count("sources")) == (asked, 1)


def test_a_schedule_is_changed_and_ended_by_a_patch(working: Daemon, site: Site, page: str) -> None:
    path = f"/v1/sources/{page}"
    choices = [{"every_seconds": 900, "on_gone": "delete"}, {"every_seconds": 2 * DAY}]
    shown = [working.patch(path, refresh=choice)["refresh"] for choice in choices]
    assert [(each["every_seconds"], each["on_gone"]) for each in shown] == [(900, "delete"), (2 * DAY, "delete")]
    assert working.patch(path, title="Another", refresh=None)["refresh"] is not None
    assert working.patch(path, refresh=None)["refresh"] is None
    assert working.patch(path, refresh={"every_seconds": DAY})["refresh"]["failures"] == 0
    assert working.patch(path, refresh={"every_seconds": 0})["refresh"] is None
    asked = len(site.server.requests)
    working.advance(10 * DAY)
    other = add(working, site.url("/notes.md"), "files/import")
    try_again(working, other)
    assert len(site.server.requests) == asked + 2


@pytest.mark.parametrize("every", [1, 899, 366 * DAY + 1, -1, 1.5, "1d", None])
def test_an_interval_out_of_bounds_is_refused(shared: Daemon, site: Site, every: Any) -> None:
    asked = len(site.server.requests)
    body = {"url": site.url("/page"), "refresh": {"every_seconds": every}}
    for answer in (
        shared.ask("POST", "/v1/buckets/inbox/pages", json=body),
        shared.ask("PATCH", f"/v1/sources/{shared.add_source()}", json={"refresh": body["refresh"]}),
    ):
        assert refused_field(answer).startswith("refresh.every_seconds")
    assert len(site.server.requests) == asked


def test_only_what_came_from_a_url_has_a_schedule_and_only_who_may_delete_asks_for_it(
    shared: Daemon, site: Site
) -> None:
    source_id = shared.add_source()
    assert source_id and shared.source(source_id)["refresh"] is None
    assert "URL" in shared.ask("PATCH", f"/v1/sources/{source_id}", json={"refresh": {"every_seconds": DAY}}).text
    key = shared.add_key(api_keys.FILE_CREATE)
    body = {"url": site.url("/page"), "refresh": {"every_seconds": DAY, "on_gone": "delete"}}
    details = details_of(shared.ask("POST", "/v1/buckets/inbox/pages", json=body, key=key), "forbidden_project_key")
    assert details["required_capability"] == api_keys.SOURCE_DELETE


def test_deleted_and_detached_sources_are_not_tried_and_tried(working: Daemon, site: Site, page: str) -> None:
    notes = add(working, site.url("/notes.md"), "files/import")
    working.delete(f"/v1/sources/{page}")
    working.delete(f"/v1/buckets/inbox/sources/{notes}")
    asked = len(site.server.requests)
    try_again(working, notes)
    assert [each.path for each in site.server.requests[asked:]] == ["/notes.md"]
    assert working.count("sources") == 1


def test_a_host_that_another_node_is_asking_is_left_alone_meanwhile(working: Daemon, site: Site, page: str) -> None:
    other = add(working, site.server.url("/notes.md", host="localhost"), "files/import")
    asked = len(site.server.requests)
    with working.holding("refresh 127.0.0.1"):
        try_again(working, other)
        assert [each.path for each in site.server.requests[asked:]] == ["/notes.md"]
    working.wait(lambda: schedule(working, page)["tried_at"] is not None, "the page is tried")


def test_each_host_is_asked_one_url_at_a_time(working: Daemon) -> None:
    is_slow, released = threading.Event(), threading.Event()

    def answer(exchange: Exchange) -> None:
        if is_slow.is_set() and exchange.request.headers["host"].startswith("127.0.0.1"):
            assert released.wait(PATIENCE_S)
        exchange.answer(200, NOTES + exchange.request.path.encode(), content_type="text/markdown")

    with serving(answer) as server:
        pages = [add(working, server.url(f"/{number}.md"), "files/import") for number in range(3)]
        other = add(working, server.url("/other.md", host="localhost"), "files/import")
        is_slow.set()
        asked = len(server.requests)
        try_again(working, other)
        hosts = [each.headers["host"].partition(":")[0] for each in server.requests[asked:]]
        assert sorted(hosts) == ["127.0.0.1", "localhost"]
        released.set()
        for each in pages:
            working.wait(lambda: schedule(working, each)["tried_at"] is not None, "every page is tried")  # noqa: B023


def test_sources_of_archived_buckets_are_not_tried_until_a_bucket_is_active_again(
    working: Daemon, site: Site, page: str
) -> None:
    working.patch("/v1/buckets/inbox", status="archived")
    working.make_bucket("outbox")
    body = {"url": site.url("/notes.md"), "refresh": {"every_seconds": DAY}}
    other = str(working.post("/v1/buckets/outbox/files/import", 201, json=body)["id"])
    working.wait_ready(other)
    asked = len(site.server.requests)
    try_again(working, other)
    assert [each.path for each in site.server.requests[asked:]] == ["/notes.md"]
    working.patch("/v1/buckets/inbox", status="active")
    working.wake()
    working.wait(lambda: schedule(working, page)["tried_at"] is not None, "the page is tried")


def test_a_source_deleted_during_its_refresh_stays_deleted(working: Daemon, site: Site, page: str) -> None:
    site.put("/page", PAGE.replace(b"ochre", b"crimson"))
    with working.provider.held("put_documents") as hold:
        working.advance(1.2 * DAY)
        hold.wait_entered()
        assert working.found("ochre") == [page], "the old text is found until the new one is"
        working.delete(f"/v1/sources/{page}")
    other = add(working, site.url("/notes.md"), "files/import")
    assert (working.found("crimson"), working.found("ochre"), working.found("umber")) == ([], [], [other])
    working.wait(lambda: len(working.blob_names()) == 1, "the bytes of both versions are removed")


def test_a_manual_refresh_ends_failures_and_begins_the_interval_anew(working: Daemon, site: Site, page: str) -> None:
    site.put("/page", b"down", status=503)
    failed = try_again(working, page)
    site.put("/page", PAGE)
    refreshed = body_of(working.ask("POST", f"/v1/sources/{page}/refresh"))["refresh"]
    assert (failed["failures"], refreshed["failures"], refreshed["error"]) == (1, 0, None)
    assert refreshed["next_at"] > failed["next_at"]


def test_a_manual_refresh_that_fails_counts_but_for_pages_that_are_gone_only_once(
    working: Daemon, site: Site, page: str
) -> None:
    site.put("/page", b"down", status=503)
    refused = working.ask("POST", f"/v1/sources/{page}/refresh")
    details_of(refused, "website_analysis_failed")
    assert working.source(page)["refresh"]["failures"] == 1
    assert [row["id"] for row in working.show("/v1/buckets/inbox/sources", stale="true")["sources"]] == [page]
    assert working.show("/v1/buckets/inbox")["bucketStore"]["stale_member_count"] == 1
    body_of(working.ask("PATCH", f"/v1/sources/{page}", json={"refresh": {"every_seconds": DAY, "on_gone": "delete"}}))
    site.put("/page", b"not here", status=404)
    for _ in range(4):
        details_of(working.ask("POST", f"/v1/sources/{page}/refresh"), "website_analysis_failed")
    assert (working.source(page)["refresh"]["gone"], working.found("ochre")) == (False, [page])


def test_a_clock_that_was_wrong_by_years_delays_nothing_for_years(working: Daemon, site: Site, page: str) -> None:
    working.stop()
    far = working.context.clock.timestamp(10 * 366 * DAY)
    working.write(lambda rows: rows.execute("UPDATE sources SET refresh_due_at = :far", {"far": far}))
    assert working.loop.run(recall_far_pauses(working.context)) == 1
    working.start()
    working.wait(lambda: schedule(working, page)["tried_at"] is not None, "the source is tried")
