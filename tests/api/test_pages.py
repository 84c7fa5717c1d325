"""Web pages as sources: the article is indexed, each URL is stored once for a team, and bad URLs are refused."""

from typing import Any

import httpx
import pytest

from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.sites import Site

PATH = "/v1/buckets/inbox/pages"


def add_page(daemon: Daemon, url: str, bucket: str = "inbox", key: str | None = None, **fields: Any) -> httpx.Response:
    return daemon.ask("POST", f"/v1/buckets/{bucket}/pages", key=key, json={"url": url, **fields})


@pytest.mark.rule("service.kinds", "service.urls", "source.found", "upload.pages")
def test_search_finds_the_article_of_a_page_but_not_the_text_around_it(working: Daemon, site: Site) -> None:
    source = body_of(add_page(working, site.url("/page")), 201)
    expected = {"type": "page", "title": "Quays & stones", "filename": "page.html", "http_status": 200}
    expected |= {"final_url": site.url("/page")}
    assert {name: source[name] for name in expected} == expected
    working.wait_ready(source["id"])
    (hit,) = body_of(working.search("vermilion"))["data"]
    assert (hit["location"]["headings"], hit["source_url"]) == (["Quays", "Repairs"], site.url("/page"))
    assert [working.found(word) for word in ("ochre", "imprint", "basket", "reserved")] == [[source["id"]], [], [], []]
    counts = working.show("/v1/buckets/inbox")["counts"]
    assert (counts["website"], counts["file"], counts["retrievable"]) == (1, 0, 1)
    working.make_bucket("second")
    working.post("/v1/buckets/second/sources", json={"source_id": source["id"]})
    working.wait_ready(source["id"])
    assert working.members(type="page") == working.found("ochre", buckets=["second"]) == [source["id"]]


def test_page_with_a_php_url_is_stored_as_html(working: Daemon, site: Site) -> None:
    source = body_of(add_page(working, site.url("/index.php")), 201)
    assert (source["filename"], source["content_type"]) == ("index.php.html", "text/html")
    working.wait_ready(source["id"])
    assert working.source(source["id"])["content_type"] == "text/html"


@pytest.mark.rule("error.source-id", "website_url_exists")
def test_team_stores_a_page_once_under_all_spellings_of_its_url_until_it_is_deleted(daemon: Daemon, site: Site) -> None:
    source_id = body_of(add_page(daemon, site.url("/page")), 201)["id"]
    asked = len(site.server.requests)
    daemon.make_bucket("second")
    for spelled in ("/page", "/page#top", "/%70age", "/x/../page"):
        for bucket in ("inbox", "second"):
            details = details_of(add_page(daemon, site.url(spelled), bucket), "website_url_exists")
            assert details == {"source_id": source_id}, spelled
    details_of(add_page(daemon, site.url("/page"), dry_run=True), "website_url_exists")
    assert len(site.server.requests) == asked
    other = daemon.add_team()
    daemon.make_bucket("theirs", key=other)
    body_of(add_page(daemon, site.url("/page"), "theirs", key=other), 201)
    body_of(daemon.ask("DELETE", f"/v1/sources/{source_id}"))
    assert body_of(add_page(daemon, site.url("/page")), 201)["id"] != source_id


def test_concurrent_requests_for_one_page_store_it_once(daemon: Daemon, site: Site) -> None:
    answers = daemon.ask_together(*[daemon.asking("POST", PATH, json={"url": site.url("/page")})] * 8)
    (source_id,) = (answer.json()["id"] for answer in answers if answer.status_code == 201)
    late = [answer for answer in answers if answer.status_code != 201]
    assert [details_of(answer, "website_url_exists")["source_id"] for answer in late] == [source_id] * 7
    assert daemon.blob_names() == [source_id]
    assert list(daemon.files.staging.iterdir()) == []


@pytest.mark.rule("upload.pages", "rule3.cross-referral", "error.suggestion", "website_analysis_failed")
def test_url_that_is_missing_empty_blocked_or_a_file_is_refused(daemon: Daemon, site: Site) -> None:
    for path, reason in (("/missing", "http_status"), ("/empty", "empty")):
        assert details_of(add_page(daemon, site.url(path)), "website_analysis_failed")["reason"] == reason
    details_of(add_page(daemon, "http://10.0.0.1/"), "url_fetch_blocked")
    details = details_of(add_page(daemon, site.url("/file.pdf")), "url_is_file")
    assert details["suggested_endpoint"] == "/v1/buckets/inbox/files/import"
    assert daemon.count("sources") == 0
    source = body_of(add_page(daemon, site.url("/file.pdf"), force=True), 201)
    assert (source["type"], source["content_type"], source["filename"]) == ("page", "application/pdf", "file.pdf")
