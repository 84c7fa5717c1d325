"""`DELETE /v1/buckets/{bucket}`: what it answers, and that the bucket is out of reach from the answer on."""

from typing import Any

import pytest

from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import Daemon

FORCE = {"force": "true"}


def delete(daemon: Daemon, bucket: str = "inbox", **options: Any) -> dict[str, Any]:
    return body_of(daemon.ask("DELETE", f"/v1/buckets/{bucket}", params=FORCE, **options))


def test_the_answer_tells_what_is_going_on(daemon: Daemon) -> None:
    bucket_id = daemon.make_bucket()
    daemon.add_source()
    answer = delete(daemon)
    deletion = answer.pop("deletion")
    answer.pop("request_id")
    assert answer == {"id": bucket_id, "slug": "inbox", "object": "bucket", "status": "deleting"}
    task_id = deletion.pop("task_id")
    assert deletion == {"total": 1, "deleted": 0, "detached": 0, "failed": 0}
    task = body_of(daemon.ask("GET", f"/v1/knowledge/tasks/{task_id}"))
    assert (task["type"], task["status"], task["bucket_id"]) == ("bucket_delete_cascade", "queued", bucket_id)


@pytest.mark.parametrize("params", [{}, {"force": "false"}])
def test_without_force_nothing_happens(daemon: Daemon, params: dict[str, str]) -> None:
    daemon.add_source()
    answer = daemon.ask("DELETE", "/v1/buckets/inbox", params=params)
    assert details_of(answer, "force_required") == {"member_count": 1}
    assert body_of(daemon.ask("GET", "/v1/buckets/inbox"))["status"] == "active"


def test_a_force_that_is_no_boolean_is_refused(daemon: Daemon) -> None:
    assert refused_field(daemon.ask("DELETE", "/v1/buckets/inbox", params={"force": "yes"})) == "force"


def test_the_same_call_while_it_runs_names_the_task(daemon: Daemon) -> None:
    task_id = delete(daemon)["deletion"]["task_id"]
    details = details_of(daemon.ask("DELETE", "/v1/buckets/inbox", params=FORCE), "delete_in_progress")
    assert details == {"task_id": task_id, "retry_after_seconds": 1}
    details_of(daemon.ask("PATCH", "/v1/buckets/inbox", json={"name": "x"}), "delete_in_progress")


@pytest.mark.parametrize("by", ["slug", "id"])
def test_an_archived_bucket_can_be_deleted_by_either_name(daemon: Daemon, by: str) -> None:
    name = daemon.make_bucket() if by == "id" else "inbox"
    body_of(daemon.ask("PATCH", "/v1/buckets/inbox", json={"status": "archived"}))
    assert delete(daemon, name)["status"] == "deleting"


def test_from_the_answer_on_nothing_finds_or_lists_it(working: Daemon) -> None:
    lone, shared = working.add_ready(), working.add_ready()
    second = working.make_bucket("second")
    body_of(working.ask("POST", "/v1/buckets/second/sources", json={"source_id": shared}))
    working.wait_ready(shared)
    working.stop()
    delete(working)
    assert working.found("quay") == [shared]
    details_of(working.search("quay", buckets=["inbox"]), "bucket_not_found")
    details_of(working.ask("GET", "/v1/buckets/inbox/sources"), "bucket_not_found")
    for params in ({}, {"include_archived": "true"}):
        listed = body_of(working.ask("GET", "/v1/buckets", params=params))["buckets"]
        assert [bucket["slug"] for bucket in listed] == ["second"]
    assert (working.source(lone)["ready"], working.source(lone)["bucket_ids"]) == (False, [])
    assert (working.source(shared)["ready"], working.source(shared)["bucket_ids"]) == (True, [second])
    shown = body_of(working.ask("GET", "/v1/buckets/inbox"))
    assert (shown["status"], shown["knowledgeIds"], shown["counts"]["retrievable"]) == ("deleting", [], 0)


def test_a_search_that_began_before_the_answer_misses_it_too(working: Daemon) -> None:
    working.add_ready()
    with working.provider.held("search") as hold:
        search = working.loop.begin(working.asking("POST", "/v1/search", json={"query": "quay"})())
        hold.wait_entered()
        working.stop()
        delete(working)
    assert body_of(search.result(30))["data"] == []


def test_nothing_new_comes_into_it(daemon: Daemon) -> None:
    daemon.make_bucket("second")
    source_id = daemon.add_source(bucket="second")
    session = {"filename": "a.txt", "size_bytes": 1}
    delete(daemon)
    details_of(daemon.upload(), "bucket_not_found")
    details_of(daemon.ask("POST", "/v1/buckets/inbox/sources", json={"source_id": source_id}), "bucket_not_found")
    details_of(daemon.ask("POST", "/v1/buckets/inbox/uploads", json=session), "bucket_not_found")
    assert details_of(daemon.ask("PUT", "/v1/buckets/inbox"), "bucket_slug_exists")["status"] == "deleting"


def test_a_source_can_be_deleted_while_its_bucket_is(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    delete(daemon)
    body_of(daemon.ask("DELETE", f"/v1/sources/{source_id}"))
    assert (daemon.count("sources"), daemon.count("memberships")) == (0, 0)


def test_a_key_needs_the_capability_and_the_bucket(daemon: Daemon) -> None:
    without = daemon.add_key("knowledge:bucket:create", "knowledge:bucket:update", "knowledge:source:delete")
    answer = daemon.ask("DELETE", "/v1/buckets/inbox", params=FORCE, key=without)
    assert details_of(answer, "forbidden_project_key")["required_capability"] == "knowledge:bucket:delete"
    elsewhere = daemon.add_key(buckets=(daemon.make_bucket("second"),))
    details_of(daemon.ask("DELETE", "/v1/buckets/inbox", params=FORCE, key=elsewhere), "bucket_not_found")
    details_of(daemon.ask("DELETE", "/v1/buckets/inbox", params=FORCE, key=daemon.add_team()), "bucket_not_found")


def test_a_key_that_is_kept_to_the_bucket_sees_the_task(daemon: Daemon) -> None:
    kept = daemon.add_key(buckets=(daemon.make_bucket(),))
    task_id = delete(daemon, key=kept)["deletion"]["task_id"]
    assert body_of(daemon.ask("GET", f"/v1/knowledge/tasks/{task_id}", key=kept))["id"] == task_id
    elsewhere = daemon.add_key(buckets=(daemon.make_bucket("second"),))
    details_of(daemon.ask("GET", f"/v1/knowledge/tasks/{task_id}", key=elsewhere), "task_not_found")
