"""Tests the steps of deleting a bucket: claims, removing its members, ending its uploads, retries and failure."""

import json
from typing import Any

import pytest

from svc_daemon.errors import ERRORS
from svc_daemon.operations import bucket_deletions
from svc_daemon.operations.bucket_deletions import CascadeClaim
from svc_daemon.operations.indexing import release_expired
from svc_daemon.wire.error_codes import ErrorCode
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.workers.rebuilds import join
from tests.workers.rebuilds import show as task


def delete(daemon: Daemon, bucket: str = "inbox") -> str:
    """Delete the bucket, and return the id of the task that empties it."""
    return str(daemon.delete(f"/v1/buckets/{bucket}", force="true")["deletion"]["task_id"])


def claim(daemon: Daemon) -> CascadeClaim:
    found = daemon.loop.run(bucket_deletions.claim_cascade(daemon.context))
    assert found is not None
    return found


def finish(daemon: Daemon, held: CascadeClaim) -> None:
    daemon.loop.run(bucket_deletions.finish_cascade(daemon.context, held))


def remove(daemon: Daemon, held: CascadeClaim, *source_ids: str) -> None:
    daemon.loop.run(bucket_deletions.remove_members(daemon.context, held, source_ids))


def test_a_released_claim_changes_nothing_and_the_next_one_continues_its_work(daemon: Daemon) -> None:
    first, second = daemon.add_source(), daemon.add_source()
    task_id = delete(daemon)
    stale = claim(daemon)
    remove(daemon, stale, first)
    daemon.advance(3600)
    assert daemon.loop.run(release_expired(daemon.context, daemon.context.clock.lease_s())) == 1
    assert task(daemon, task_id)["status"] == "queued"
    fresh = claim(daemon)
    remove(daemon, stale, second)
    finish(daemon, stale)
    assert (daemon.count("sources"), task(daemon, task_id)["status"]) == (1, "running")
    assert [bucket_deletions.next_members(daemon.context, held) for held in (stale, fresh)] == [[], [second]]


def test_expired_leases_do_not_count_as_attempts_of_a_bucket_deletion(daemon: Daemon) -> None:
    daemon.add_source()
    delete(daemon)
    for _ in range(10):
        assert claim(daemon).task.attempt == 1
        daemon.loop.run(release_expired(daemon.context, float("inf")))
    assert daemon.ask("GET", "/v1/buckets/inbox").json()["status"] == "deleting"


def test_a_failed_deletion_is_retried_and_the_last_failure_restores_the_bucket(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    task_id = delete(daemon)
    for _ in range(3):
        held = claim(daemon)
        daemon.loop.run(bucket_deletions.give_back_cascade(daemon.context, held, "the disk is full", 0.0))
        assert task(daemon, task_id)["error"]["retryable"] is ERRORS[ErrorCode.INTERNAL_ERROR].retryable
        daemon.advance(100)
    ended, bucket = task(daemon, task_id), daemon.show("/v1/buckets/inbox")
    assert (ended["status"], ended["attempt"], daemon.source(source_id)["bucket_ids"]) == ("failed", 3, [bucket["id"]])
    reason = "1 of 1 sources could not be deleted: the disk is full"
    assert (bucket["status"], bucket["lastDeleteError"]) == ("active", reason)


def test_a_source_in_two_buckets_that_are_both_being_deleted_is_deleted(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    daemon.make_bucket("second")
    join(daemon, source_id)
    tasks = [delete(daemon), delete(daemon, "second")]
    for _ in tasks:
        held = claim(daemon)
        for step in iter(lambda: bucket_deletions.next_members(daemon.context, held), []):  # noqa: B023
            remove(daemon, held, *step)
        finish(daemon, held)
    assert [task(daemon, task_id)["deletion"]["deleted"] for task_id in tasks] == [1, 1]
    assert (daemon.count("sources"), daemon.count("buckets")) == (0, 0)


@pytest.mark.parametrize("slug", ["inbox", "second"])
def test_deleting_a_bucket_cancels_the_sessions_that_have_no_other_bucket(daemon: Daemon, slug: str) -> None:
    ids = {name: daemon.make_bucket(name) for name in ("inbox", "second")}
    fields = {"filename": "a.txt", "size_bytes": 3}
    lone, both = (daemon.post(f"/v1/buckets/{slug}/uploads", 201, json=fields) for _ in range(2))
    placed = {"ids": json.dumps(list(ids.values())), "id": both["session_id"]}
    daemon.write(lambda c: c.execute("UPDATE uploads SET bucket_ids = :ids WHERE id = :id", placed).rowcount)
    for session in (lone, both):
        daemon.ask("PUT", session["upload_url"], content=b"ab", headers={"Content-Range": "bytes 0-1/3"})
    delete(daemon, slug)
    daemon.loop.run(bucket_deletions.end_uploads(daemon.context, claim(daemon)))
    put: dict[str, Any] = {"content": b"c", "headers": {"Content-Range": "bytes 2-2/3"}}
    details_of(daemon.ask("PUT", lone["upload_url"], **put), "session_canceled")
    body_of(daemon.ask("PUT", both["upload_url"], **put))
    assert daemon.part_ids() == [both["session_id"]]
