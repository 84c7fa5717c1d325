"""Sources, their tasks and memberships over HTTP: status, changes, content, text, buckets, lists and deletion."""

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest

from svc_daemon.core.access import api_keys
from svc_daemon.provider.errors import ProviderFailed
from tests.acceptance.installations import wait_until
from tests.api.answers import body_of, details_of, refused_field, without_id
from tests.api.daemons import NOTES, Daemon
from tests.samples import make_pdf

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def verify(daemon: Daemon, source_id: str) -> Any:
    return daemon.show(f"/v1/sources/{source_id}", verify="provider")["provider"]


def attach(daemon: Daemon, bucket: str, source_id: str, key: str | None = None) -> Any:
    return daemon.ask("POST", f"/v1/buckets/{bucket}/sources", key=key, json={"source_id": source_id})


def patch(daemon: Daemon, source_id: str, change: Any, key: str | None = None) -> Any:
    return daemon.ask("PATCH", f"/v1/sources/{source_id}", key=key, json=change)


def revision(daemon: Daemon) -> int:
    return int(daemon.show("/v1/buckets/inbox")["revision"])


@pytest.mark.rule("service.ready", "status.source")
def test_ready_source_shows_its_status_and_extraction_on_both_routes(working: Daemon) -> None:
    source_id = working.add_ready()
    source, legacy = (working.show(f"/v1/{route}/{source_id}") for route in ("sources", "knowledge/files"))
    assert without_id(legacy) == without_id(source)
    assert (source["status"], source["ready"], source["bucket_sync_status"]) == ("active", True, "active")
    characters = source["extraction"].pop("characters")
    pages = (source["extraction"].pop("pages"), source["extraction"].pop("pages_without_text"))
    assert pages == (None, [])
    assert source["extraction"] == {"chunks": 1, "language": None, "title": "Notes", "hidden": 0, "parts": {}}
    assert (characters > 0, source["task"]["status"]) == (True, "succeeded")
    assert all(TIMESTAMP.fullmatch(source[name]) for name in ("created_at", "updated_at"))


@pytest.mark.rule("source.verify", "status.source")
def test_verify_provider_reads_the_index_instead_of_the_stored_status(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    assert verify(daemon, source_id) == {"state": "STATE_PENDING", "document_id": None}
    daemon.start("indexing", "syncing")
    daemon.wait_ready(source_id)
    there = verify(daemon, source_id)
    assert (there["state"], bool(there["document_id"])) == ("STATE_ACTIVE", True)
    daemon.provider.delete_document(daemon.team_id, source_id)
    assert daemon.source(source_id)["ready"] is True
    assert verify(daemon, source_id) == {"state": "STATE_PENDING", "document_id": None}
    for value in ("", "state", "Provider"):
        assert refused_field(daemon.ask("GET", f"/v1/sources/{source_id}", params={"verify": value})) == "verify"


@pytest.mark.rule("source.verify")
def test_source_without_text_fails_and_can_be_retried(working: Daemon) -> None:
    failed = working.add_source(b" \n", filename="blank.txt")
    path = f"/v1/sources/{failed}"
    first = working.wait_status(failed, "failed")
    assert (first["error"]["code"], first["error"]["retryable"]) == ("no_extractable_text", False)
    assert verify(working, failed) == {"state": "STATE_FAILED", "document_id": None}
    details_of(working.ask("GET", f"{path}/text"), "invalid_request")
    working.stop()
    again = working.post(f"{path}/retry")
    assert (again["status"], again["error"], again["task"]["status"]) == ("queued", None, "queued")
    assert again["task"]["id"] != first["task"]["id"]
    details_of(working.ask("POST", f"{path}/retry"), "invalid_request")
    working.start()
    working.wait_status(failed, "failed")
    details_of(working.ask("POST", f"/v1/sources/{working.add_ready()}/retry"), "invalid_request")


def test_limited_key_cannot_change_or_delete_a_source_that_is_in_another_bucket_too(shared: Daemon) -> None:
    limited = shared.add_key(buckets=(shared.make_bucket("mine"),))
    source_id = shared.add_source()
    body_of(attach(shared, "mine", source_id))
    before = shared.source(source_id)
    for method, path, body, needed in (
        ("PATCH", "", {"title": "mine"}, api_keys.FILE_CREATE),
        ("PATCH", "", {}, api_keys.FILE_CREATE),
        ("POST", "/refresh", {}, api_keys.FILE_CREATE),
        ("DELETE", "", None, api_keys.SOURCE_DELETE),
    ):
        answer = shared.ask(method, f"/v1/sources/{source_id}{path}", key=limited, json=body)
        assert details_of(answer, "forbidden_project_key") == {"required_capability": needed}, (method, path)
    assert without_id(shared.source(source_id)) == without_id(before)
    body_of(shared.ask("DELETE", f"/v1/buckets/inbox/sources/{source_id}"))
    assert body_of(patch(shared, source_id, {"title": "mine"}, limited))["title"] == "mine"
    body_of(shared.ask("DELETE", f"/v1/buckets/mine/sources/{source_id}", key=limited))


def test_patch_changes_only_the_fields_that_it_names(daemon: Daemon) -> None:
    source_id = daemon.add_source(tags="a", metadata='{"n": 1}')
    before, moved = daemon.source(source_id), revision(daemon)
    daemon.advance(1)
    change = {"title": "New", "filename": "dir/new.md", "tags": ["b", "b", "c"], "metadata": {"n": [1]}}
    after = body_of(patch(daemon, source_id, change))
    changed = {**change, "filename": "new.md", "tags": ["b", "c"], "updated_at": after["updated_at"]}
    assert without_id(after) == without_id(before) | changed
    assert (after["updated_at"] > before["updated_at"], revision(daemon) > moved) == (True, True)
    assert without_id(daemon.source(source_id)) == without_id(after)


def test_patch_without_values_changes_nothing(daemon: Daemon) -> None:
    source_id = daemon.add_source(tags="a")
    before, stayed = without_id(daemon.source(source_id)), revision(daemon)
    daemon.advance(1)
    for change in ({}, {"title": None, "tags": None, "metadata": None}, {"colour": "red"}):
        assert without_id(body_of(patch(daemon, source_id, change))) == before, change
    assert revision(daemon) == stayed


#: Invalid values of a change, by field.
BAD_CHANGES: dict[str, list[Any]] = {
    "title": ["a\nb", 7],
    "filename": ["..", ""],
    "tags": ["a,b", [""], ["t" * 65]],
    "metadata": [[1]],
    "team_id": ["team_x"],
}


def test_patch_with_an_invalid_field_is_refused_and_changes_nothing(shared: Daemon) -> None:
    source_id = shared.add_source()
    for name, values in BAD_CHANGES.items():
        for value in values:
            details_of(patch(shared, source_id, {"title": "New", name: value}), "invalid_request")
    details_of(patch(shared, source_id, {"title": "New", "tags": [*map(str, range(21))]}), "too_many_tags")
    details_of(patch(shared, source_id, {"title": "New", "metadata": {"k": "v" * 8192}}), "metadata_too_large")
    assert shared.source(source_id)["title"] == "notes.md"


def test_new_title_is_searchable_at_once_and_not_stored_if_the_index_fails(working: Daemon) -> None:
    source_id = working.add_ready()
    working.provider.fail("set_title", ProviderFailed("The engine is on fire.", retryable=True))
    details_of(patch(working, source_id, {"title": "Vermilion"}), "search_failed")
    assert (working.source(source_id)["title"], working.found("vermilion")) == ("notes.md", [])
    body_of(patch(working, source_id, {"title": "Vermilion harbours"}))
    assert working.found("vermilion") == [source_id]


@pytest.mark.rule("source.sha256")
def test_content_returns_all_stored_bytes_even_for_a_range_request(daemon: Daemon) -> None:
    source_id = daemon.add_source(b"<script>1</script>", filename="päge.html")
    path = f"/v1/sources/{source_id}/content"
    answer = daemon.ask("GET", path)
    assert (answer.status_code, answer.content) == (200, b"<script>1</script>")
    expected = {"Content-Type": "text/html", "Content-Length": "18", "X-Content-Type-Options": "nosniff"}
    expected |= {"Content-Disposition": "attachment; filename*=utf-8''p%C3%A4ge.html"}
    expected |= {"Content-Security-Policy": "sandbox"}
    assert {name: answer.headers[name].partition("; charset")[0] for name in expected} == expected
    assert answer.headers["X-Request-Id"].startswith("req_")
    for asked in ("bytes=0-3", "bytes=9999-", "bytes=x", "lines=1-2", "bytes=0-1,4-5"):
        ranged = daemon.ask("GET", path, headers={"Range": asked})
        assert (ranged.status_code, ranged.content) == (200, answer.content), asked
    daemon.lose_blob(source_id)
    details_of(daemon.ask("GET", path), "source_not_found")


def test_text_of_a_source_has_its_chunks_with_their_locations(working: Daemon) -> None:
    working.stop()
    source_id = working.add_source()
    details_of(working.ask("GET", f"/v1/sources/{source_id}/text"), "bucket_store_indexing_pending")
    working.start()
    working.wait_ready(source_id)
    shown = working.show(f"/v1/sources/{source_id}/text")
    (chunk,) = shown["chunks"]
    location = chunk["location"]
    assert shown["text"][location["char_start"] : location["char_end"]] == chunk["text"]
    assert "The umber quay was built of grey stone." in chunk["text"]
    assert (location["headings"], location["line_end"]) == (["Notes"], 3)


@pytest.mark.rule("status.delete")
def test_deleted_source_disappears_at_once_and_its_bytes_and_document_after_cleanup(working: Daemon) -> None:
    other, source_id = working.add_ready(b"Another quay.\n"), working.add_ready()
    moved, path = revision(working), f"/v1/sources/{source_id}"
    working.stop()
    assert source_id in working.found("quay")
    deleted = body_of(working.ask("DELETE", path, params={"force": "true"}))
    assert without_id(deleted) == {"id": source_id, "object": "knowledge_file", "deleted": True}
    assert working.provider.get_document(working.team_id, source_id) is not None
    assert (working.found("quay"), working.members(status="all")) == ([other], [other])
    assert revision(working) > moved
    for method in ("GET", "DELETE"):
        assert details_of(working.ask(method, path), "source_not_found") == {}
    working.start()
    wait_until(lambda: working.count("tombstones") == 0, "the tombstone is removed")
    assert source_id not in working.blob_names()
    assert working.provider.get_document(working.team_id, source_id) is None


@pytest.mark.rule("source.task", "indexing.queued", "status.task")
def test_new_task_is_shown_as_queued(shared: Daemon) -> None:
    source_id = shared.add_source()
    task = shared.task(source_id)
    assert re.fullmatch(r"task_[0-9a-z]{26}", task["id"])
    expected: dict[str, Any] = {"object": "task", "type": "provider_file_search_indexing", "status": "queued"}
    expected |= {"source_id": source_id, "attempt": 0, "max_attempts": 3, "error": None}
    expected |= {"progress": {"stage": None, "chunks_done": 0, "chunks_total": None}}
    expected |= dict.fromkeys(("next_attempt_at", "started_at", "finished_at"))
    assert {name: task[name] for name in expected} == expected


def blob_of(daemon: Daemon, source_id: str) -> Path:
    (blob,) = daemon.files.blobs.glob(f"*{source_id}*")
    return blob


def reread(daemon: Daemon, source_id: str) -> dict[str, Any]:
    return daemon.show(f"/v1/sources/{source_id}/text", verify="content")


def test_verified_text_equals_the_indexed_text_and_does_not_need_the_index(working: Daemon) -> None:
    source_id = working.add_ready(make_pdf(["One page.", "Another page."]), filename="two.pdf")
    path = f"/v1/sources/{source_id}/text"
    again, indexed = reread(working, source_id), working.show(path)
    assert (again["text"], again["chunks"]) == (indexed["text"], indexed["chunks"])
    sha256 = working.source(source_id)["sha256"]
    assert again["content"] == {"sha256": sha256, "unchanged": True, "error": None}
    working.context.provider.delete_document(working.team_id, source_id)
    assert reread(working, source_id)["text"] == indexed["text"]
    assert refused_field(working.ask("GET", path, params={"verify": "provider"})) == "verify"


@pytest.mark.folders
def test_verified_text_reports_bytes_that_are_changed_missing_or_unreadable(working: Daemon) -> None:
    source_id = working.add_ready(NOTES)
    blob = blob_of(working, source_id)
    blob.write_bytes(NOTES.replace(b"grey", b"gray"))
    again = reread(working, source_id)
    assert (again["content"]["unchanged"], "gray" in again["text"]) == (False, True)
    assert again["content"]["sha256"] != working.source(source_id)["sha256"]
    blob.unlink()
    assert reread(working, source_id)["content"] == {"sha256": None, "unchanged": False, "error": None}
    source_id = working.add_ready(make_pdf(["One page."]), filename="one.pdf")
    blob_of(working, source_id).write_bytes(b"%PDF-1.7\nbroken")
    again = reread(working, source_id)
    assert (again["text"], again["chunks"], again["content"]["unchanged"]) == ("", [], False)
    assert again["content"]["error"]["code"] == "document_unreadable"


INBOX = "/v1/buckets/inbox/sources"


def detach(daemon: Daemon, source_id: str) -> Any:
    return daemon.ask("DELETE", f"{INBOX}/{source_id}")


@pytest.mark.rule("source.ready", "buckets.detach")
def test_source_is_ready_only_when_every_membership_is_indexed(working: Daemon) -> None:
    inbox, second = working.make_bucket(), working.make_bucket("second")
    source_id = working.add_ready()
    before = revision(working)
    assert body_of(attach(working, "inbox", source_id))["ready"] is True
    assert revision(working) == before
    working.stop()
    attached = body_of(attach(working, "second", source_id))
    assert (attached["status"], attached["ready"], attached["bucket_sync_status"]) == ("active", False, "queued")
    assert attached["bucket_ids"] == [inbox, second]
    assert (working.members("inbox"), working.members("second")) == ([source_id], [])
    (member,) = working.show(INBOX)["sources"]
    assert (member["ready"], member["bucket_sync_status"], member["bucketSyncStatus"]) == (True, "active", "active")
    assert working.found("quay", buckets=["inbox"]) == [source_id]
    details_of(working.search("quay", buckets=["second"]), "bucket_store_indexing_pending")
    working.start()
    working.wait_ready(source_id)
    assert working.members("second") == working.found("quay", buckets=["second"]) == [source_id]
    working.stop()
    assert body_of(detach(working, source_id))["bucket_ids"] == [second]
    details_of(working.search("quay", buckets=["inbox"]), "bucket_store_indexing_pending")
    (hit,) = body_of(working.search("quay"))["data"]
    assert hit["bucket_ids"] == [second]


def test_failed_source_that_was_attached_to_another_bucket_is_ready_in_both_after_a_retry(working: Daemon) -> None:
    working.make_bucket("second")
    working.provider.fail("put_documents", ProviderFailed("No.", retryable=False))
    source_id = working.add_source()
    working.wait_status(source_id, "failed")
    body_of(attach(working, "second", source_id))
    working.post(f"/v1/sources/{source_id}/retry")
    working.wait_ready(source_id)
    assert working.members("inbox") == working.members("second") == [source_id]


@pytest.mark.rule("buckets.detach")
def test_detached_source_keeps_its_bytes_and_can_be_attached_again(working: Daemon) -> None:
    source_id = working.add_ready()
    moved = revision(working)
    detached = {"detached": True, "bucket_id": working.make_bucket(), "bucket_ids": []}
    assert without_id(body_of(detach(working, source_id))) == detached | {"id": source_id, "object": "knowledge_file"}
    source = working.source(source_id)
    assert (source["bucket_ids"], source["ready"], source["status"]) == ([], False, "active")
    assert (working.members(status="all"), working.found("quay")) == ([], [])
    assert revision(working) > moved
    details_of(detach(working, source_id), "source_not_found")
    assert working.ask("GET", f"/v1/sources/{source_id}/content").content == NOTES
    body_of(attach(working, "inbox", source_id))
    working.wait_ready(source_id)
    assert working.found("quay") == [source_id]


@pytest.mark.parametrize("body", [{}, *({"source_id": wrong} for wrong in ("", None, 7, "s" * 65))])
def test_attaching_needs_a_source_id(shared: Daemon, body: dict[str, Any]) -> None:
    assert refused_field(shared.ask("POST", INBOX, json=body)) == "source_id"


@pytest.mark.rule("bucket.synced", "source.sync-status", "buckets.sources")
def test_listing_shows_active_sources_unless_another_status_is_requested(working: Daemon) -> None:
    failed = working.add_source(b" \n", filename="blank.txt")
    working.wait_status(failed, "failed")
    ready = working.add_ready()
    working.stop()
    queued = working.add_source()
    page = working.show(INBOX)
    assert [source["id"] for source in page["sources"]] == [ready]
    assert (page["bucket_id"], page["revision"]) == (working.make_bucket(), revision(working))
    assert not {"has_more", "last_id"} & set(page)
    by_status = {"all": [failed, ready, queued], "queued": [queued], "failed": [failed], "active": [ready]}
    assert {status: working.members(status=status) for status in by_status} == by_status
    for name, value in (("status", "ready"), ("type", "mail")):
        assert refused_field(working.ask("GET", INBOX, params={name: value})) == name


SHA256 = hashlib.sha256(b"two").hexdigest()
#: Queries, and the numbers of the sources that each of them finds.
FILTERS = [
    ("tag=re tag=%25 q=_ title=Bet type=qa", []),
    ("q=ALPHA", [0]),
    (f"q=.txt title=Beta tag=red&q=beta sha256={SHA256}", [1]),
    ("mapping=docs", [2]),
    ("tag=red", [0, 1]),
    ("type=file", [0, 1, 2]),
]


def test_listing_is_filtered(daemon: Daemon) -> None:
    made = [
        daemon.add_source(b"one", filename="alpha.md", tags="red"),
        daemon.add_source(b"two", filename="x.txt", title="Beta", tags="red,green"),
        daemon.add_source(b"three", filename="c.md", mapping="docs"),
    ]
    for query, expected in [(query, expected) for queries, expected in FILTERS for query in queries.split()]:
        found = [source["id"] for source in daemon.show(f"{INBOX}?status=all&{query}")["sources"]]
        assert found == [made[number] for number in expected], query
    for name in ("q", "title", "tag", "sha256", "mapping", "status", "type", "after"):
        for text in ("%00", "notes%00", "%00notes"):
            details_of(daemon.ask("GET", f"{INBOX}?{name}={text}"), "invalid_request")
