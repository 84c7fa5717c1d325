"""Memberships over the API: attach, detach, and the listing of a bucket's sources."""

import hashlib
from typing import Any

from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.wire.sources import BucketSources
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import NOTES, Daemon


def attach(daemon: Daemon, bucket: str, source_id: str) -> Any:
    return daemon.ask("POST", f"/v1/buckets/{bucket}/sources", json={"source_id": source_id})


def revision(daemon: Daemon, bucket: str = "inbox") -> int:
    return int(daemon.show(f"/v1/buckets/{bucket}")["revision"])


def test_ready_means_every_membership(working: Daemon) -> None:
    second = working.make_bucket("second")
    source_id = working.add_ready()
    working.stop()
    attached = body_of(attach(working, "second", source_id))
    assert (attached["status"], attached["ready"], attached["bucket_sync_status"]) == ("active", False, "queued")
    assert attached["bucket_ids"] == [working.make_bucket(), second]
    assert (working.members("inbox"), working.members("second")) == ([source_id], [])
    (member,) = working.show("/v1/buckets/inbox/sources")["sources"]
    assert (member["ready"], member["bucket_sync_status"], member["bucketSyncStatus"]) == (True, "active", "active")
    assert working.found("quay", buckets=["inbox"]) == [source_id]
    details_of(working.search("quay", buckets=["second"]), "bucket_store_indexing_pending")
    working.start()
    working.wait_ready(source_id)
    assert working.members("second") == working.found("quay", buckets=["second"]) == [source_id]


def test_attaching_a_member_again_changes_nothing(working: Daemon) -> None:
    source_id = working.add_ready()
    before = revision(working)
    assert body_of(attach(working, "inbox", source_id))["ready"] is True
    assert revision(working) == before


def test_a_failed_source_can_be_attached_and_is_tried_in_both_buckets(working: Daemon) -> None:
    working.make_bucket("second")
    working.provider.fail("put_document", ProviderFailed("No.", retryable=False))
    source_id = working.add_source()
    working.wait_status(source_id, "failed")
    body_of(attach(working, "second", source_id))
    working.post(f"/v1/sources/{source_id}/retry")
    working.wait_ready(source_id)
    assert working.members("inbox") == working.members("second") == [source_id]


def test_a_detached_source_stays(working: Daemon) -> None:
    source_id = working.add_ready()
    moved = revision(working)
    told = body_of(working.ask("DELETE", f"/v1/buckets/inbox/sources/{source_id}"))
    assert {**told, "request_id": ""} == {
        "id": source_id,
        "object": "knowledge_file",
        "bucket_id": working.make_bucket(),
        "detached": True,
        "bucket_ids": [],
        "request_id": "",
    }
    source = working.source(source_id)
    assert (source["bucket_ids"], source["ready"], source["status"]) == ([], False, "active")
    assert (working.members(status="all"), working.found("quay")) == ([], [])
    assert revision(working) > moved
    details_of(working.ask("DELETE", f"/v1/buckets/inbox/sources/{source_id}"), "source_not_found")
    assert working.ask("GET", f"/v1/sources/{source_id}/content").content == NOTES
    body_of(attach(working, "inbox", source_id))
    working.wait_ready(source_id)
    assert working.found("quay") == [source_id]


def test_a_source_detached_from_one_bucket_is_found_in_the_other(working: Daemon) -> None:
    working.make_bucket("second")
    source_id = working.add_ready()
    body_of(attach(working, "second", source_id))
    working.wait_ready(source_id)
    working.stop()
    left = body_of(working.ask("DELETE", f"/v1/buckets/inbox/sources/{source_id}"))
    assert left["bucket_ids"] == [working.make_bucket("second")]
    details_of(working.search("quay", buckets=["inbox"]), "bucket_store_indexing_pending")
    (hit,) = body_of(working.search("quay"))["data"]
    assert hit["bucket_ids"] == left["bucket_ids"]


def test_what_is_in_no_bucket_of_ours_cannot_be_attached(shared: Daemon) -> None:
    theirs = shared.add_team()
    foreign_bucket = shared.make_bucket("theirs", key=theirs)
    foreign = shared.add_source(bucket="theirs", key=theirs)
    mine = shared.add_source()
    details_of(attach(shared, "inbox", foreign), "source_not_found")
    details_of(attach(shared, foreign_bucket, mine), "bucket_not_found")
    for body in ({}, {"source_id": ""}, {"source_id": None}, {"source_id": 7}, {"source_id": "s" * 65}):
        answer = shared.ask("POST", "/v1/buckets/inbox/sources", json=body)
        assert refused_field(answer) == "source_id"


def test_a_listing_shows_active_members_unless_asked_for_others(working: Daemon) -> None:
    failed = working.add_source(b" \n", filename="blank.txt")
    working.wait_status(failed, "failed")
    ready = working.add_ready()
    working.stop()
    queued = working.add_source()
    told = working.show("/v1/buckets/inbox/sources")
    assert BucketSources.model_validate(told, extra="forbid")
    assert [source["id"] for source in told["sources"]] == [ready]
    assert (told["bucket_id"], told["revision"]) == (working.make_bucket(), revision(working))
    assert not {"has_more", "last_id"} & set(told)
    by_status = {"all": [failed, ready, queued], "queued": [queued], "failed": [failed], "active": [ready]}
    for status, expected in by_status.items():
        assert working.members(status=status) == expected
    assert refused_field(working.ask("GET", "/v1/buckets/inbox/sources?status=ready")) == "status"
    assert refused_field(working.ask("GET", "/v1/buckets/inbox/sources?type=mail")) == "type"


FILTERS: list[tuple[dict[str, str], list[int]]] = [
    ({"tag": "red"}, [0, 1]),
    ({"tag": "re"}, []),
    ({"tag": "%"}, []),
    ({"q": "ALPHA"}, [0]),
    ({"q": ".txt"}, [1]),
    ({"q": "_"}, []),
    ({"title": "Beta"}, [1]),
    ({"title": "Bet"}, []),
    ({"sha256": hashlib.sha256(b"two").hexdigest()}, [1]),
    ({"mapping": "docs"}, [2]),
    ({"type": "file"}, [0, 1, 2]),
    ({"type": "qa"}, []),
    ({"tag": "red", "q": "beta"}, [1]),
]


def test_a_listing_is_narrowed_by_its_filters(daemon: Daemon) -> None:
    made = [
        daemon.add_source(b"one", filename="alpha.md", tags="red"),
        daemon.add_source(b"two", filename="x.txt", title="Beta", tags="red,green"),
        daemon.add_source(b"three", filename="c.md", mapping="docs"),
    ]
    for query, expected in FILTERS:
        assert daemon.members(status="all", **query) == [made[number] for number in expected], query


def test_a_filter_with_nul_is_refused(shared: Daemon) -> None:
    cases: list[str] = ["q", "title", "tag", "sha256", "mapping", "status", "type", "after"]
    for name in cases:
        for text in ("%00", "notes%00", "%00notes"):
            details_of(shared.ask("GET", f"/v1/buckets/inbox/sources?{name}={text}"), "invalid_request")


def test_a_page_of_members_leads_to_the_next(daemon: Daemon) -> None:
    made = [daemon.add_source() for _ in range(5)]
    seen: list[str] = []
    more, after = True, ""
    while more:
        query = {"status": "all", "limit": "2", "after": after}
        page = daemon.show("/v1/buckets/inbox/sources", **query)
        seen += [source["id"] for source in page["sources"]]
        more, after = page["has_more"], page["last_id"]
    assert seen == made
