"""Refreshing: unchanged costs nothing, changed is a new generation, and what goes wrong leaves the old content."""

from collections import Counter
from typing import Any

import httpx

from svc_daemon.operations.leftovers import sort_leftovers
from svc_daemon.operations.sweeping import clean_tombstones
from svc_daemon.settings import Limits
from svc_daemon.store.sources import find_source
from svc_daemon.wire.sources import SourceRefreshed
from tests.acceptance.installations import wait_until
from tests.api.answers import body_of, details_of
from tests.api.daemons import NOTES, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.holds import PATIENCE_S
from tests.api.sites import PAGE, PDF, Site

NEWER = b"# Notes\n\nThe cobalt quay was built of white stone.\n"


def refresh(daemon: Daemon, source_id: str, **fields: Any) -> httpx.Response:
    options: dict[str, Any] = {"json": fields} if fields else {}
    return daemon.ask("POST", f"/v1/sources/{source_id}/refresh", **options)


def add(daemon: Daemon, url: str, door: str = "files/import") -> str:
    """The id of a source from the URL that is ready."""
    source_id = str(daemon.post(f"/v1/buckets/inbox/{door}", 201, json={"url": url})["id"])
    daemon.wait_ready(source_id)
    return source_id


def generation(daemon: Daemon, source_id: str) -> int:
    source = daemon.read(lambda connection: find_source(connection, daemon.team_id, source_id))
    assert source is not None
    return source.generation


def blobs(daemon: Daemon) -> list[bytes]:
    return sorted(path.read_bytes() for path in daemon.files.blobs.iterdir())


def test_a_host_that_says_unchanged_costs_nothing(make_daemon: MakeDaemon, site: Site) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=1, bytes_per_minute=len(NOTES)))
    daemon.make_bucket()
    daemon.start()
    source_id = add(daemon, site.url("/notes.md"))
    before = daemon.source(source_id)
    daemon.advance(5)
    told = body_of(refresh(daemon, source_id))
    assert SourceRefreshed.model_validate(told, extra="forbid")
    assert site.server.requests[-1].headers["if-none-match"] == '"v1"'
    assert site.server.requests[-1].headers["if-modified-since"] == "Thu, 01 Jan 2026"
    assert (told["changed"], told["ready"]) == (False, True)
    assert told["fetched_at"] > before["fetched_at"]
    same = ("task", "sha256", "etag", "http_status", "final_url", "updated_at")
    assert {name: told[name] for name in same} == {name: before[name] for name in same}
    assert (generation(daemon, source_id), daemon.count("tasks")) == (1, 1)


def test_the_same_bytes_cost_nothing_either(working: Daemon, site: Site) -> None:
    source_id = add(working, site.put("/plain.txt", NOTES, "text/plain"))
    told = body_of(refresh(working, source_id))
    assert (told["changed"], generation(working, source_id), working.count("tasks")) == (False, 1, 1)
    assert blobs(working) == [NOTES]
    assert list(working.files.staging.iterdir()) == []


def test_changed_content_is_a_new_generation_of_the_same_source(working: Daemon, site: Site) -> None:
    source_id = add(working, site.url("/notes.md"))
    site.put("/notes.md", NEWER, "text/markdown", etag='"v2"')
    told = body_of(refresh(working, source_id), 202)
    assert (told["id"], told["changed"], told["status"], told["ready"]) == (source_id, True, "queued", False)
    assert (told["etag"], told["last_modified"], told["size_bytes"]) == ('"v2"', None, len(NEWER))
    working.wait_ready(source_id)
    assert (working.found("cobalt"), working.found("umber")) == ([source_id], [])
    assert working.ask("GET", f"/v1/sources/{source_id}/content").content == NEWER
    assert (generation(working, source_id), blobs(working)) == (2, [NEWER])
    assert body_of(refresh(working, source_id))["changed"] is False


def test_a_source_that_has_lost_its_bytes_gets_them_again_though_the_host_has_no_others(
    working: Daemon, site: Site
) -> None:
    source_id = add(working, site.url("/notes.md"))
    (working.files.blobs / source_id).unlink()
    assert body_of(refresh(working, source_id), 202)["changed"] is True
    working.wait_ready(source_id)
    assert working.ask("GET", f"/v1/sources/{source_id}/content").content == NOTES


def test_the_bytes_that_a_refresh_replaced_have_a_tombstone(working: Daemon, site: Site) -> None:
    source_id = add(working, site.url("/notes.md"))
    working.stop()
    site.put("/notes.md", NEWER, "text/markdown")
    body_of(refresh(working, source_id), 202)
    (working.files.blobs / source_id).write_bytes(NOTES)  # the kill came before they were removed
    assert working.loop.run(clean_tombstones(working.context)) == 1
    assert (blobs(working), working.count("tombstones")) == ([NEWER], 0)


def test_a_page_is_refreshed_as_a_page(working: Daemon, site: Site) -> None:
    source_id = add(working, site.url("/page"), "pages")
    site.put("/page", PAGE.replace(b"ochre", b"cobalt"))
    body_of(refresh(working, source_id), 202)
    working.wait_ready(source_id)
    assert (working.found("cobalt"), working.found("ochre")) == ([source_id], [])


def test_refreshed_bytes_survive_a_start_and_go_with_their_source(make_daemon: MakeDaemon, site: Site) -> None:
    daemon = make_daemon()
    daemon.make_bucket()
    daemon.start()
    source_id = add(daemon, site.url("/notes.md"))
    site.put("/notes.md", NEWER, "text/markdown")
    body_of(refresh(daemon, source_id), 202)
    daemon.wait_ready(source_id)
    (daemon.files.blobs / f"{source_id}_{'0' * 26}").write_bytes(b"left by a kill between the blob and the commit")
    daemon.close()
    again = make_daemon()
    again.loop.run(repair(again))
    assert blobs(again) == [NEWER]
    again.start()
    body_of(again.ask("DELETE", f"/v1/sources/{source_id}"))
    wait_until(lambda: not any(again.files.blobs.iterdir()), "the bytes are gone", PATIENCE_S)


async def repair(daemon: Daemon) -> Counter[str]:
    return await sort_leftovers(daemon.context)


def test_a_host_that_fails_leaves_the_old_content(working: Daemon, site: Site) -> None:
    file, page = add(working, site.url("/notes.md")), add(working, site.url("/page"), "pages")
    site.put("/notes.md", b"gone", status=410)
    site.put("/page", b"gone", status=503)
    assert details_of(refresh(working, file), "url_fetch_failed")["http_status"] == 410
    assert details_of(refresh(working, page), "website_analysis_failed")["http_status"] == 503
    assert (working.source(file)["ready"], working.source(page)["ready"]) == (True, True)
    assert working.found("umber") == [file]


def test_a_log_in_form_does_not_take_the_place_of_a_file(working: Daemon, site: Site) -> None:
    file, page = add(working, site.url("/notes.md")), add(working, site.url("/page"), "pages")
    site.put("/notes.md", PAGE)
    site.put("/page", PDF, "application/pdf")
    details_of(refresh(working, file), "url_is_web_page")
    details_of(refresh(working, page), "url_is_file")
    assert working.found("umber") == [file]
    assert body_of(refresh(working, file, force=True), 202)["content_type"] == "text/html"


def test_what_is_still_being_indexed_is_not_refreshed(daemon: Daemon, site: Site) -> None:
    source_id = daemon.post("/v1/buckets/inbox/files/import", 201, json={"url": site.url("/notes.md")})["id"]
    asked = len(site.server.requests)
    assert "retry_after_seconds" in details_of(refresh(daemon, source_id), "request_in_progress")
    assert len(site.server.requests) == asked


def test_of_two_refreshes_at_once_one_is_taken(working: Daemon, site: Site) -> None:
    source_id = add(working, site.url("/notes.md"))
    working.stop()
    site.put("/notes.md", NEWER, "text/markdown")
    asks = [working.asking("POST", f"/v1/sources/{source_id}/refresh") for _ in range(4)]
    statuses = sorted(answer.status_code for answer in working.ask_together(*asks))
    assert statuses == [202, 409, 409, 409]
    assert (generation(working, source_id), blobs(working)) == (2, [NEWER])
    working.start()
    working.wait_ready(source_id)
    assert working.found("cobalt") == [source_id]


def test_a_failed_source_can_be_cured_by_a_refresh(working: Daemon, site: Site) -> None:
    url = site.url("/blank.txt")
    source_id = working.post("/v1/buckets/inbox/files/import", 201, json={"url": url})["id"]
    working.wait_status(source_id, "failed")
    site.put("/blank.txt", NEWER, "text/plain")
    body_of(refresh(working, source_id), 202)
    working.wait_ready(source_id)


def test_what_did_not_come_from_a_url_is_refused(shared: Daemon) -> None:
    assert "URL" in refresh(shared, shared.add_source()).json()["error"]["message"]
    details_of(refresh(shared, "src_none"), "source_not_found")


def test_more_than_the_quota_is_refused_and_leaves_the_old_content(make_daemon: MakeDaemon, site: Site) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=0, bytes_per_minute=len(NOTES)))
    daemon.make_bucket()
    daemon.start()
    source_id = add(daemon, site.url("/notes.md"))
    site.put("/notes.md", NEWER, "text/markdown")
    details_of(refresh(daemon, source_id), "quota_exceeded")
    assert (daemon.source(source_id)["ready"], blobs(daemon)) == (True, [NOTES])
