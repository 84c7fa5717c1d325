"""Refreshing a source from its URL: unchanged content, changed content, and errors that keep the old content."""

from typing import Any

import httpx
import pytest

from svc_daemon.core.uploads.web_pages import LOGIN_WARNING, SHELL_WARNING
from svc_daemon.operations.remove.setting_aside import sort_leftovers
from svc_daemon.operations.remove.sweeping import clean_tombstones
from svc_daemon.settings.limits import Limits
from svc_daemon.store.rows.sources.sources import SourceRow, find_source
from tests.acceptance.installations import PATIENCE_S
from tests.api import sites
from tests.api.answers import body_of, details_of, without_id
from tests.api.daemons import NOTES, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.sites import DAY, PAGE, PDF, Site

BLANK_PAGE = b"<html><body> </body></html>"
LOGIN = b"<html><body><h1>Log in</h1><form>One moment: <input type=password></form></body></html>"
SHELL = b"<html><body><p>Just a moment, please.</p><script src=a.js></script></body></html>"
NEWER = b"# Notes\n\nThe cobalt quay was built of white stone.\n"


def refresh(daemon: Daemon, source_id: str, **fields: Any) -> httpx.Response:
    options: dict[str, Any] = {"json": fields} if fields else {}
    return daemon.ask("POST", f"/v1/sources/{source_id}/refresh", **options)


def add(daemon: Daemon, url: str, route: str = "files/import") -> str:
    """Create a source from the URL and return its id."""
    return str(daemon.post(f"/v1/buckets/inbox/{route}", 201, json={"url": url})["id"])


def add_ready(daemon: Daemon, url: str, route: str = "files/import") -> str:
    source_id = add(daemon, url, route)
    daemon.wait_ready(source_id)
    return source_id


def refresh_ready(daemon: Daemon, source_id: str) -> dict[str, Any]:
    """Refresh the source, whose content has changed, wait until it is ready, and return the response."""
    answer = body_of(refresh(daemon, source_id), 202)
    assert answer["changed"] is True
    daemon.wait_ready(source_id)
    return answer


def row_of(daemon: Daemon, source_id: str) -> SourceRow:
    source = daemon.read(lambda connection: find_source(connection, daemon.team_id, source_id))
    assert source is not None
    return source


def generation(daemon: Daemon, source_id: str) -> int:
    return row_of(daemon, source_id).generation


def blobs(daemon: Daemon) -> list[bytes]:
    return sorted(map(daemon.read_blob, daemon.blob_names()))


@pytest.fixture
def limited(make_daemon: MakeDaemon) -> Daemon:
    """A working daemon that accepts one create a second, and as many bytes a minute as NOTES has."""
    daemon = make_daemon(limits=Limits(creates_per_second=1, bytes_per_minute=len(NOTES)))
    daemon.make_bucket()
    daemon.start()
    return daemon


def test_refresh_answered_with_304_changes_only_the_time_of_the_fetch(limited: Daemon, site: Site) -> None:
    source_id = add_ready(limited, site.url("/notes.md"))
    before, events, kept = limited.source(source_id), limited.count("events"), limited.kept()
    limited.advance(5)
    refreshed = body_of(refresh(limited, source_id))
    headers = site.server.requests[-1].headers
    assert (headers["if-none-match"], headers["if-modified-since"]) == ('"v1"', "Thu, 01 Jan 2026")
    assert (refreshed["changed"], refreshed["ready"]) == (False, True)
    assert refreshed["fetched_at"] > before["fetched_at"]
    same = ("task", "sha256", "etag", "http_status", "final_url", "updated_at")
    assert {name: refreshed[name] for name in same} == {name: before[name] for name in same}
    assert (generation(limited, source_id), limited.count("events"), limited.kept()) == (1, events, kept)


def test_refresh_beyond_the_quota_is_refused_and_keeps_the_old_content(limited: Daemon, site: Site) -> None:
    source_id = add_ready(limited, site.url("/notes.md"))
    limited.advance(5)
    site.put("/notes.md", NEWER, "text/markdown")
    details_of(refresh(limited, source_id), "quota_exceeded")
    assert (limited.source(source_id)["ready"], blobs(limited)) == (True, [NOTES])


def test_refresh_with_changed_content_creates_a_new_generation_of_the_source(working: Daemon, site: Site) -> None:
    source_id, page = add_ready(working, site.url("/notes.md")), add_ready(working, site.url("/page"), "pages")
    site.put("/notes.md", NEWER, "text/markdown", etag='"v2"')
    site.put("/page", PAGE.replace(b"ochre", b"crimson"))
    refreshed = refresh_ready(working, source_id)
    assert (refreshed["id"], refreshed["status"], refreshed["ready"]) == (source_id, "active", True)
    assert (refreshed["etag"], refreshed["last_modified"], refreshed["size_bytes"]) == ('"v2"', None, len(NEWER))
    refresh_ready(working, page)
    assert [working.found(word) for word in ("cobalt", "umber", "crimson", "ochre")] == [[source_id], [], [page], []]
    assert working.ask("GET", f"/v1/sources/{source_id}/content").content == NEWER
    assert (generation(working, source_id), len(blobs(working))) == (2, 2)
    assert body_of(refresh(working, source_id))["changed"] is False


def test_the_old_text_is_found_until_the_index_has_the_new_one(working: Daemon, site: Site) -> None:
    source_id = add_ready(working, site.url("/notes.md"))
    site.put("/notes.md", NEWER, "text/markdown")
    with working.provider.held("put_documents") as hold:
        refreshing = working.loop.begin(working.asking("POST", f"/v1/sources/{source_id}/refresh")())
        hold.wait_entered()
        assert (working.found("umber"), working.found("cobalt")) == ([source_id], [])
        assert working.source(source_id)["ready"] is True
    assert body_of(refreshing.result(PATIENCE_S), 202)["changed"] is True
    assert (working.found("umber"), working.found("cobalt")) == ([], [source_id])
    (told,) = (event["data"] for event in working.show("/v1/events", types="source.updated")["data"])
    assert (told["refresh"]["outcome"], told["sha256"]) == ("changed", working.source(source_id)["sha256"])


def test_refresh_restores_lost_bytes_even_if_the_content_has_not_changed(working: Daemon, site: Site) -> None:
    source_id = add_ready(working, site.url("/notes.md"))
    working.lose_blob(source_id)
    refresh_ready(working, source_id)
    assert working.ask("GET", f"/v1/sources/{source_id}/content").content == NOTES


def test_replaced_bytes_are_removed_through_their_tombstone_after_a_kill(working: Daemon, site: Site) -> None:
    source_id = add_ready(working, site.url("/notes.md"))
    working.stop()
    site.put("/notes.md", NEWER, "text/markdown")
    body_of(refresh(working, source_id), 202)
    (working.files.blobs / source_id).write_bytes(NOTES)  # as after a kill before the old bytes were removed
    assert working.loop.run(clean_tombstones(working.context)) == 1
    assert (blobs(working), working.count("tombstones")) == ([NEWER], 0)


def test_refreshed_bytes_survive_a_restart_and_are_removed_with_their_source(
    make_daemon: MakeDaemon, site: Site
) -> None:
    daemon = make_daemon()
    daemon.make_bucket()
    daemon.start()
    source_id = add_ready(daemon, site.url("/notes.md"))
    site.put("/notes.md", NEWER, "text/markdown")
    refresh_ready(daemon, source_id)
    (daemon.files.blobs / f"{source_id}_{'0' * 26}").write_bytes(b"left by a kill between the blob and the commit")
    daemon.close()
    again = make_daemon()
    again.loop.run(sort_leftovers(again.context))
    assert blobs(again) == [NEWER]
    again.start()
    body_of(again.ask("DELETE", f"/v1/sources/{source_id}"))
    again.wait(lambda: not again.blob_names(), "the bytes are removed")


@pytest.mark.parametrize(
    ("route", "body", "content_type", "status", "code", "expected"),
    [
        ("files/import", b"gone", "text/plain", 410, "url_fetch_failed", {"http_status": 410}),
        ("files/import", b" \n", "text/markdown", 200, "url_fetch_failed", {"reason": "no_extractable_text"}),
        ("files/import", PAGE, "text/html", 200, "url_is_web_page", {}),  # such as a login form
        ("pages", b"gone", "text/plain", 503, "website_analysis_failed", {"http_status": 503}),
        ("pages", BLANK_PAGE, "text/html", 200, "website_analysis_failed", {"reason": "no_extractable_text"}),
        ("pages", PDF, "application/pdf", 200, "url_is_file", {}),
    ],
)
def test_refresh_that_fails_keeps_the_old_content(
    working: Daemon,
    site: Site,
    route: str,
    body: bytes,
    content_type: str,
    status: int,
    code: str,
    expected: dict[str, Any],
) -> None:
    path = "/page" if route == "pages" else "/notes.md"
    source_id = add_ready(working, site.url(path), route)
    before, stored = without_id(working.source(source_id)), blobs(working)
    site.put(path, body, content_type, status)
    assert expected.items() <= details_of(refresh(working, source_id), code).items()
    assert without_id(working.source(source_id)) == before
    assert blobs(working) == stored
    if code.startswith("url_is"):
        assert "so the old text stays" in refresh(working, source_id).json()["error"]["message"]
    if code == "url_is_web_page":
        assert body_of(refresh(working, source_id, force=True), 202)["content_type"] == "text/html"


def test_source_that_is_being_indexed_or_has_no_url_is_not_refreshed(daemon: Daemon, site: Site) -> None:
    source_id = add(daemon, site.url("/notes.md"))
    asked = len(site.server.requests)
    assert "retry_after_seconds" in details_of(refresh(daemon, source_id), "request_in_progress")
    assert "URL" in refresh(daemon, daemon.add_source()).json()["error"]["message"]
    details_of(refresh(daemon, "src_none"), "source_not_found")
    assert len(site.server.requests) == asked


def test_only_one_of_several_concurrent_refreshes_is_accepted(working: Daemon, site: Site) -> None:
    source_id = add_ready(working, site.url("/notes.md"))
    working.stop()
    site.put("/notes.md", NEWER, "text/markdown")
    asks = [working.asking("POST", f"/v1/sources/{source_id}/refresh") for _ in range(4)]
    assert sorted(answer.status_code for answer in working.ask_together(*asks)) == [202, 409, 409, 409]
    assert (generation(working, source_id), blobs(working)) == (2, [NEWER])
    working.start()
    working.wait_ready(source_id)
    assert working.found("cobalt") == [source_id]


def test_failed_source_becomes_ready_after_a_refresh_with_new_content(working: Daemon, site: Site) -> None:
    source_id = add(working, site.url("/blank.txt"))
    working.wait_status(source_id, "failed")
    site.put("/blank.txt", NEWER, "text/plain")
    refresh_ready(working, source_id)


@pytest.mark.parametrize("every", [DAY, 0])
def test_after_a_kill_in_the_middle_of_a_swap_the_next_start_ends_it(
    make_daemon: MakeDaemon, site: Site, every: int
) -> None:
    daemon = make_daemon()
    daemon.make_bucket()
    daemon.start()
    page = sites.add(daemon, site.url("/page"), every=every)
    site.put("/page", PAGE.replace(b"ochre", b"crimson"))
    with daemon.provider.held("put_documents") as hold:
        if every:
            daemon.advance(1.2 * DAY)
        else:
            refreshing = daemon.loop.begin(daemon.asking("POST", f"/v1/sources/{page}/refresh")())
        hold.wait_entered()
        if not every:
            refreshing.cancel()
        daemon.stop()
        assert (daemon.found("ochre"), daemon.source(page)["ready"]) == ([page], True)
    daemon.wait(lambda: len(daemon.found("quay")) == 1, "the held call has ended")
    daemon.close()
    again = make_daemon()
    assert len(again.found("quay")) == 1
    again.start()
    again.wait(lambda: again.found("crimson") == [page], "the new text is found")
    again.wait(lambda: [each["outcome"] for each in sites.updates(again)] == ["changed"], "the change is reported")
    assert (again.found("ochre"), len(again.blob_names())) == ([], 1)
    source = row_of(again, page)
    assert (source.rechunk, source.valid_from, source.is_swapping) == (False, None, False)


@pytest.mark.parametrize(
    ("body", "reason", "warning"), ((LOGIN, "login_form", LOGIN_WARNING), (SHELL, "needs_scripts", SHELL_WARNING))
)
def test_page_in_whose_place_another_is_shown_keeps_its_text(
    working: Daemon, site: Site, body: bytes, reason: str, warning: str
) -> None:
    source_id = add_ready(working, site.url("/page"), "pages")
    site.put("/page", body)
    assert details_of(refresh(working, source_id), "website_analysis_failed")["reason"] == reason
    assert (working.found("ochre"), working.found("moment")) == ([source_id], [])
    body_of(refresh(working, source_id, force=True), 202)
    assert working.source(source_id)["warnings"] == [warning]
    site.put("/page", body.replace(b"moment", b"minute"))
    refresh_ready(working, source_id)
