"""Tests the worker that deletes buckets: complete deletions, sources that can't be deleted, and stops."""

from typing import Any

import pytest

from svc_daemon.operations.remove import bucket_deletions
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.holds import allow, refuse
from tests.workers.rebuilds import contents, join, wait_rebuilt

FORCE = {"force": "true"}


def empty(daemon: Daemon) -> str:
    """Delete the inbox, and return the id of the task that empties it."""
    return str(daemon.delete("/v1/buckets/inbox", **FORCE)["deletion"]["task_id"])


def wait_emptied(daemon: Daemon) -> dict[str, Any]:
    return wait_rebuilt(daemon, empty(daemon))


@pytest.mark.rule("buckets.shared")
def test_deleting_a_bucket_deletes_its_sources_but_only_detaches_shared_ones(working: Daemon) -> None:
    _, shared = working.add_ready(), working.add_ready()
    second = working.make_bucket("second")
    join(working, shared)
    working.wait_ready(shared)
    task = wait_emptied(working)
    assert (task["status"], task["progress"]) == ("succeeded", {"stage": "delete", "chunks_done": 2, "chunks_total": 2})
    assert task["deletion"] == {"task_id": task["id"], "total": 2, "deleted": 1, "detached": 1, "failed": 0}
    details_of(working.ask("GET", "/v1/buckets/inbox"), "bucket_not_found")
    details_of(working.ask("DELETE", "/v1/buckets/inbox", params=FORCE), "bucket_not_found")
    assert (working.found("quay"), working.members("second")) == ([shared], [shared])
    working.wait(lambda: working.blob_names() == [shared], "the blob is deleted")
    working.wait(lambda: contents(working) == {shared: (1, (second,), 1)}, "the index no longer has the bucket")
    # Its slug can be used again.
    answer = body_of(working.ask("PUT", "/v1/buckets/inbox"), 201)
    assert (answer["created"], answer["counts"]["total"]) == (True, 0)


@pytest.mark.rule("deletion.partial")
def test_a_source_that_cannot_be_deleted_restores_the_bucket_which_can_be_deleted_again(working: Daemon) -> None:
    kept, *others = [working.add_ready() for _ in range(4)]
    refuse(working, "DELETE", "sources", f"OLD.id = '{kept}'")
    task = wait_emptied(working)
    assert task["status"] == "failed"
    assert task["deletion"] == {"task_id": task["id"], "total": 4, "deleted": 3, "detached": 0, "failed": 1}
    bucket = working.show("/v1/buckets/inbox")
    assert (bucket["status"], bucket["counts"]["total"]) == ("active", 1)
    # The database's own error message is only in the log.
    message = "1 of 4 sources could not be deleted: Something unexpected went wrong; the log has the cause."
    assert bucket["lastDeleteError"] == message
    working.wait_ready(kept)
    assert (working.found("quay"), working.members()) == ([kept], [kept])
    for source_id in others:
        details_of(working.ask("GET", f"/v1/sources/{source_id}"), "source_not_found")

    allow(working, "sources")
    assert wait_emptied(working)["status"] == "succeeded"
    assert (working.count("sources"), working.count("buckets")) == (0, 0)


def test_a_restored_bucket_is_searchable_again_after_the_index_had_lost_it(working: Daemon) -> None:
    shared = working.add_ready()
    working.make_bucket("second")
    working.stop()
    task_id = empty(working)
    # While the bucket is being deleted, its member joins another: the index gets only that one.
    join(working, shared)
    working.start("syncing")
    working.wait_ready(shared)
    working.stop()
    refuse(working, "DELETE", "memberships")
    working.start()
    assert wait_rebuilt(working, task_id)["status"] == "failed"
    working.wait_ready(shared)
    working.wait(
        lambda: working.found("quay", buckets=["inbox"]) == [shared], "the source is found in the bucket again"
    )


def test_a_deletion_that_is_stopped_is_finished_after_the_next_start(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_deletions, "STEP_LIMIT", 2)
    for _ in range(60):
        daemon.add_source(b"x")
    task_id = empty(daemon)
    daemon.start("cascading")
    daemon.wait(lambda: daemon.count("sources") < 60, "the first step")
    daemon.stop()
    daemon.start("cascading")
    task = wait_rebuilt(daemon, task_id)
    assert (task["status"], task["attempt"]) == ("succeeded", 1)
    assert (daemon.count("sources"), daemon.count("memberships"), daemon.count("buckets")) == (0, 0, 0)


def test_deleting_a_bucket_fails_its_open_batches(working: Daemon) -> None:
    manifest = {"version": 1, "items": [{"client_file_id": "a", "filename": "a.txt", "title": "a"}]}
    files = [{"client_file_id": "a", "filename": "a.txt", "content_type": "text/plain", "size_bytes": 3}]
    batch = working.post("/v1/buckets/inbox/batches", 201, json={"manifest": manifest, "files": files})
    wait_emptied(working)
    status = working.show(f"/v1/knowledge/batches/{batch['batch_id']}", include_items="true")
    assert (status["status"], status["terminal"]) == ("failed", True)
    assert status["items"][0]["error"]["code"] == "bucket_not_found"
