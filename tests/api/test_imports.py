"""Sources of other kinds over HTTP: files and pages from URLs, and questions."""

import hashlib
import threading
from typing import Any

import httpx
import pytest

from svc_daemon.provider.contract import SearchQuery
from tests.acceptance.installations import PATIENCE_S
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import NOTES, Daemon
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


@pytest.mark.rule("url_fetch_blocked")
def test_a_webhook_that_may_not_be_called_is_refused_before_the_fetch(shared: Daemon, site: Site) -> None:
    before = shared.kept()
    details_of(take(shared, "http://10.0.0.1/", dry_run=True), "url_fetch_blocked")
    for url in ("http://192.168.1.1/hook", "mailto:jo@a.example"):
        for dry_run in (False, True):
            refused = take(shared, site.url("/notes.md"), webhook={"url": url}, dry_run=dry_run)
            details_of(refused, "url_fetch_blocked")
            assert refused.json()["error"]["message"].startswith("webhook.url: ")
    assert refused_field(take(shared, site.url("/notes.md"), webhook={"metadata": {}})) == "webhook.url"
    too_much = {"url": site.url("/hook"), "metadata": {"text": "x" * 9000}}
    details_of(take(shared, site.url("/notes.md"), webhook=too_much), "metadata_too_large")
    assert (shared.kept(), site.server.requests) == (before, [])


PAGES = "/v1/buckets/inbox/pages"


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
    answers = daemon.ask_together(*[daemon.asking("POST", PAGES, json={"url": site.url("/page")})] * 8)
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


ASKED = {
    "question": "When are  refunds\npaid?",
    "answer": "Within five days, to the celadon account.",
    "alternate_questions": ["When do I get my money back?"],
}


def ask(daemon: Daemon, **fields: Any) -> httpx.Response:
    return daemon.ask("POST", "/v1/buckets/inbox/qa", json={**ASKED, **fields})


@pytest.mark.rule("source.counted")
def test_question_becomes_ready_and_is_counted_as_qa(working: Daemon) -> None:
    source = body_of(ask(working, tags=["money"], metadata={"year": 2026}), 201)
    expected: dict[str, Any] = ASKED | dict.fromkeys(("question", "title"), "When are refunds paid?")
    expected |= {"type": "qa", "status": "queued", "tags": ["money"], "metadata": {"year": 2026}, "source_url": None}
    assert {name: source[name] for name in expected} == expected
    working.wait_ready(source["id"])
    bucket = working.show("/v1/buckets/inbox")
    assert [bucket["counts"][name] for name in ("qa", "total", "retrievable")] == [1, 1, 0]
    assert bucket["knowledgeIds"] == working.members(type="qa") == [source["id"]]


@pytest.mark.rule("source.qa")
def test_api_searches_leave_questions_out_and_a_search_of_the_index_finds_them(working: Daemon) -> None:
    other = working.add_ready(b"The celadon quay was built of grey stone.\n", filename="other.txt")
    source_id = body_of(ask(working), 201)["id"]
    working.wait_ready(source_id)
    assert working.found("celadon") == working.found("celadon", buckets=["inbox"]) == [other]
    assert working.found("celadon", source_ids=[source_id, other]) == [other]
    page = working.provider.search(working.team_id, SearchQuery(text="refunds account"))
    assert [hit.source_id for hit in page.hits] == [source_id]
    working.make_bucket("second")
    working.post("/v1/buckets/second/sources", json={"source_id": source_id})
    working.wait_ready(source_id)
    body_of(working.ask("DELETE", f"/v1/buckets/second/sources/{source_id}"))
    working.wait_ready(source_id)
    assert working.found("celadon") == [other]


def test_question_with_a_bad_field_is_refused_with_the_name_of_the_field(shared: Daemon) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        *(({"question": question}, "question") for question in (" \n", "x" * 1025, 7)),
        ({"answer": " ?!"}, "answer"),
        ({"alternate_questions": ["one", ""]}, "alternate_questions.1"),
        ({"webhook": {"url": "http://a.example"}}, "webhook"),
    ]
    for fields, path in cases:
        assert refused_field(ask(shared, **fields)) == path, fields
