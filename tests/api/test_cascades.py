"""`DELETE /v1/buckets/{bucket}`: what it answers, and that the bucket is out of reach from the answer on."""

from typing import Any

from tests.api.answers import body_of, details_of, refused_field, without_id
from tests.api.daemons import Daemon

INBOX, FORCE = "/v1/buckets/inbox", {"force": "true"}


def delete(daemon: Daemon, bucket: str = "inbox", **options: Any) -> dict[str, Any]:
    return body_of(daemon.ask("DELETE", f"/v1/buckets/{bucket}", params=FORCE, **options))


def test_the_answer_shows_the_deletion_and_the_next_call_its_task(daemon: Daemon) -> None:
    bucket_id = daemon.make_bucket()
    daemon.add_source()
    answer = without_id(delete(daemon))
    deletion = answer.pop("deletion")
    assert answer == {"id": bucket_id, "slug": "inbox", "object": "bucket", "status": "deleting"}
    task_id = deletion.pop("task_id")
    assert deletion == {"total": 1, "deleted": 0, "detached": 0, "failed": 0}
    task = daemon.show(f"/v1/knowledge/tasks/{task_id}")
    assert (task["type"], task["status"], task["bucket_id"]) == ("bucket_delete_cascade", "queued", bucket_id)
    details = details_of(daemon.ask("DELETE", INBOX, params=FORCE), "delete_in_progress")
    assert details == {"task_id": task_id, "retry_after_seconds": 1}
    details_of(daemon.ask("PATCH", INBOX, json={"name": "x"}), "delete_in_progress")


def test_without_force_nothing_happens(daemon: Daemon) -> None:
    daemon.add_source()
    for params in ({}, {"force": "false"}):
        assert details_of(daemon.ask("DELETE", INBOX, params=params), "force_required") == {"member_count": 1}
    assert refused_field(daemon.ask("DELETE", INBOX, params={"force": "yes"})) == "force"
    assert daemon.show(INBOX)["status"] == "active"


def test_an_archived_bucket_can_be_deleted_by_either_name(shared: Daemon) -> None:
    for by_id in (True, False):
        slug = f"archived-{by_id}".lower()
        bucket_id = shared.make_bucket(slug)
        shared.patch(f"/v1/buckets/{slug}", status="archived")
        assert delete(shared, bucket_id if by_id else slug)["status"] == "deleting"


def test_from_the_answer_on_nothing_finds_or_lists_it(working: Daemon) -> None:
    lone, shared = working.add_ready(), working.add_ready()
    second = working.make_bucket("second")
    working.post("/v1/buckets/second/sources", json={"source_id": shared})
    working.wait_ready(shared)
    working.stop()
    delete(working)
    assert working.found("quay") == [shared]
    details_of(working.search("quay", buckets=["inbox"]), "bucket_not_found")
    details_of(working.ask("GET", f"{INBOX}/sources"), "bucket_not_found")
    for query in ({}, {"include_archived": "true"}):
        assert [bucket["slug"] for bucket in working.show("/v1/buckets", **query)["buckets"]] == ["second"]
    for source_id, expected in ((lone, (False, [])), (shared, (True, [second]))):
        source = working.source(source_id)
        assert (source["ready"], source["bucket_ids"]) == expected
    shown = working.show(INBOX)
    assert (shown["status"], shown["knowledgeIds"], shown["counts"]["retrievable"]) == ("deleting", [], 0)


def test_a_search_that_began_before_the_answer_misses_it_too(working: Daemon) -> None:
    working.add_ready()
    with working.provider.held("search") as hold:
        search = working.loop.begin(working.asking("POST", "/v1/search", json={"query": "quay"})())
        hold.wait_entered()
        working.stop()
        delete(working)
    assert body_of(search.result(30))["data"] == []


def test_nothing_new_comes_into_it_and_its_sources_can_be_deleted(daemon: Daemon) -> None:
    daemon.make_bucket("second")
    inside, outside = daemon.add_source(), daemon.add_source(bucket="second")
    delete(daemon)
    details_of(daemon.upload(), "bucket_not_found")
    details_of(daemon.ask("POST", f"{INBOX}/sources", json={"source_id": outside}), "bucket_not_found")
    session = {"filename": "a.txt", "size_bytes": 1}
    details_of(daemon.ask("POST", f"{INBOX}/uploads", json=session), "bucket_not_found")
    assert details_of(daemon.ask("PUT", INBOX), "bucket_slug_exists")["status"] == "deleting"
    daemon.delete(f"/v1/sources/{inside}")
    assert (daemon.count("sources"), daemon.count("memberships")) == (1, 1)


def test_a_key_needs_the_bucket_to_delete_it_and_to_see_the_task(daemon: Daemon) -> None:
    kept = daemon.add_key(buckets=(daemon.make_bucket(),))
    elsewhere = daemon.add_key(buckets=(daemon.make_bucket("second"),))
    for key in (elsewhere, daemon.add_team()):
        details_of(daemon.ask("DELETE", INBOX, params=FORCE, key=key), "bucket_not_found")
    path = f"/v1/knowledge/tasks/{delete(daemon, key=kept)['deletion']['task_id']}"
    assert daemon.show(path, key=kept)["type"] == "bucket_delete_cascade"
    details_of(daemon.ask("GET", path, key=elsewhere), "task_not_found")
