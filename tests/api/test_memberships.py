"""Memberships over the API: attaching and detaching a source, and listing the sources of a bucket."""

import hashlib
from typing import Any

import pytest

from svc_daemon.provider.errors import ProviderFailed
from tests.api.answers import body_of, details_of, refused_field, without_id
from tests.api.daemons import NOTES, Daemon

INBOX = "/v1/buckets/inbox/sources"


def attach(daemon: Daemon, bucket: str, source_id: str) -> Any:
    return daemon.ask("POST", f"/v1/buckets/{bucket}/sources", json={"source_id": source_id})


def detach(daemon: Daemon, source_id: str) -> Any:
    return daemon.ask("DELETE", f"{INBOX}/{source_id}")


def revision(daemon: Daemon) -> int:
    return int(daemon.show("/v1/buckets/inbox")["revision"])


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


def test_listing_is_filtered_and_paged(daemon: Daemon) -> None:
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
    made += [daemon.add_source() for _ in range(2)]
    seen: list[str] = []
    more, after = True, ""
    while more:
        page = daemon.show(INBOX, status="all", limit="2", after=after)
        seen += [source["id"] for source in page["sources"]]
        more, after = page["has_more"], page["last_id"]
    assert seen == made
