"""Web pages: one for each URL of a team, the article that is found, and what a page that can't be had says."""

from typing import Any

import httpx
import pytest

from svc_daemon.wire.sources import SourceAnswer
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.sites import Site

PATH = "/v1/buckets/inbox/pages"


def take(daemon: Daemon, url: str, bucket: str = "inbox", key: str | None = None, **fields: Any) -> httpx.Response:
    return daemon.ask("POST", f"/v1/buckets/{bucket}/pages", key=key, json={"url": url, **fields})


def test_a_page_is_found_by_its_article(working: Daemon, site: Site) -> None:
    source = body_of(take(working, site.url("/page")), 201)
    assert SourceAnswer.model_validate(source, extra="forbid")
    assert (source["type"], source["title"], source["filename"]) == ("page", "Quays & stones", "page.html")
    assert (source["final_url"], source["http_status"]) == (site.url("/page"), 200)
    working.wait_ready(source["id"])
    assert working.found("ochre") == [source["id"]]
    (hit,) = body_of(working.search("vermilion"))["data"]
    assert (hit["location"]["headings"], hit["source_url"]) == (["Quays", "Repairs"], site.url("/page"))
    assert [working.found(word) for word in ("imprint", "basket", "reserved")] == [[], [], []]
    bucket = working.show("/v1/buckets/inbox")
    assert (bucket["counts"]["website"], bucket["counts"]["file"], bucket["counts"]["retrievable"]) == (1, 0, 1)
    assert working.members(type="page") == [source["id"]]


def test_what_a_program_made_is_a_page_and_not_its_source_code(working: Daemon, site: Site) -> None:
    source = body_of(take(working, site.url("/index.php")), 201)
    assert (source["filename"], source["content_type"]) == ("index.php.html", "text/html")
    working.wait_ready(source["id"])
    assert working.source(source["id"])["content_type"] == "text/html"


def test_a_team_has_each_page_once_however_its_url_is_spelled(daemon: Daemon, site: Site) -> None:
    source = body_of(take(daemon, site.url("/page")), 201)
    asked = len(site.server.requests)
    daemon.make_bucket("second")
    for spelled in ("/page", "/page#top", "/%70age", "/x/../page"):
        for bucket in ("inbox", "second"):
            details = details_of(take(daemon, site.url(spelled), bucket), "website_url_exists")
            assert details == {"source_id": source["id"]}
    details_of(take(daemon, site.url("/page"), dry_run=True), "website_url_exists")
    assert len(site.server.requests) == asked
    other = daemon.add_team()
    daemon.make_bucket("theirs", key=other)
    assert body_of(take(daemon, site.url("/page"), "theirs", key=other), 201)


def test_of_pages_that_come_in_together_one_stays(daemon: Daemon, site: Site) -> None:
    asks = [daemon.asking("POST", PATH, json={"url": site.url("/page")}) for _ in range(8)]
    answers = daemon.ask_together(*asks)
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 7
    (source_id,) = {answer.json()["id"] for answer in answers if answer.status_code == 201}
    for answer in answers:
        if answer.status_code == 409:
            assert details_of(answer, "website_url_exists")["source_id"] == source_id
    assert [path.name for path in daemon.files.blobs.iterdir()] == [source_id]
    assert list(daemon.files.staging.iterdir()) == []


def test_a_deleted_page_may_come_again(daemon: Daemon, site: Site) -> None:
    first = body_of(take(daemon, site.url("/page")), 201)["id"]
    body_of(daemon.ask("DELETE", f"/v1/sources/{first}"))
    assert body_of(take(daemon, site.url("/page")), 201)["id"] != first


def test_a_file_is_sent_to_the_other_door_unless_forced(daemon: Daemon, site: Site) -> None:
    details = details_of(take(daemon, site.url("/file.pdf")), "url_is_file")
    assert details["suggested_endpoint"] == "/v1/buckets/inbox/files/import"
    source = body_of(take(daemon, site.url("/file.pdf"), force=True), 201)
    assert (source["type"], source["content_type"], source["filename"]) == ("page", "application/pdf", "file.pdf")


@pytest.mark.parametrize(("path", "reason"), [("/missing", "http_status"), ("/empty", "empty")])
def test_a_page_that_cannot_be_had_is_not_a_file_that_cannot_be_had(
    daemon: Daemon, site: Site, path: str, reason: str
) -> None:
    assert details_of(take(daemon, site.url(path)), "website_analysis_failed")["reason"] == reason
    assert daemon.count("sources") == 0


def test_what_the_policy_refuses_is_refused_for_pages_too(daemon: Daemon) -> None:
    details_of(take(daemon, "http://10.0.0.1/"), "url_fetch_blocked")


def test_a_page_can_be_in_another_bucket_too(working: Daemon, site: Site) -> None:
    source = body_of(take(working, site.url("/page")), 201)["id"]
    working.make_bucket("second")
    working.post("/v1/buckets/second/sources", json={"source_id": source})
    working.wait_ready(source)
    assert working.found("ochre", buckets=["second"]) == [source]
