"""Tests the bucket sync worker: retries, documents that the index lost, stops, and deletes."""

import pytest

from svc_daemon.operations import syncing
from svc_daemon.provider.errors import ProviderFailed
from tests.api.daemons import Daemon
from tests.workers.rebuilds import add_unsynced, delete, join, joining, wait_gone


def test_a_failing_sync_is_retried_more_often_than_an_indexing_task(daemon: Daemon) -> None:
    source_id = add_unsynced(daemon)
    daemon.provider.fail("set_buckets", ProviderFailed("The engine is busy.", retryable=True), times=5)
    daemon.start()
    for attempt in range(1, 6):

        def has_failed(attempt: int = attempt) -> bool:
            attempts = daemon.read(lambda c: c.execute("SELECT attempt FROM memberships").fetchone()[0])
            return bool(attempts == attempt and daemon.source(source_id)["bucket_sync_status"] == "failed")

        daemon.wait(has_failed, f"attempt {attempt} has failed")
        assert daemon.source(source_id)["status"] == "active"
        daemon.advance(100)
    daemon.wait_ready(source_id)
    assert daemon.task(source_id)["status"] == "succeeded"


def test_a_document_that_is_lost_during_a_sync_is_indexed_again(working: Daemon) -> None:
    with joining(working) as source_id:
        first = working.source(source_id)["task"]["id"]
        working.provider.delete_document(working.team_id, source_id)
    working.wait_ready(source_id)
    assert working.source(source_id)["task"]["id"] != first and working.found("quay") == [source_id]


def test_a_document_lost_later_is_indexed_again_when_its_source_joins_a_bucket(working: Daemon) -> None:
    source_id = working.add_ready()
    working.provider.delete_document(working.team_id, source_id)
    working.make_bucket("second")
    join(working, source_id)
    working.wait_ready(source_id)
    for bucket in ("inbox", "second"):
        assert working.found("quay", buckets=[bucket]) == [source_id]


def test_an_interrupted_sync_is_claimed_again_after_its_lease_expires(daemon: Daemon) -> None:
    daemon.start()
    with joining(daemon) as source_id:
        daemon.stop()
    assert daemon.source(source_id)["ready"] is False
    daemon.start("syncing", "sweeping")

    def is_ready_in_time() -> bool:
        daemon.advance(11)
        return bool(daemon.source(source_id)["ready"])

    daemon.wait(is_ready_in_time, "the sync is claimed again")


def test_a_source_that_is_deleted_during_a_sync_stays_deleted(working: Daemon) -> None:
    with joining(working) as source_id:
        delete(working, source_id)
    wait_gone(working, source_id)
    assert (working.count("sources"), working.count("memberships")) == (0, 0)


def test_more_syncs_than_one_claim_takes_become_active(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syncing, "CLAIM_LIMIT", 4)
    daemon.start("indexing")
    made = [daemon.add_source(f"Quay number {number}.\n".encode()) for number in range(10)]
    daemon.wait_ready(*made)
    daemon.make_bucket("second")
    for source_id in made:
        join(daemon, source_id)
    assert daemon.members("second") == []
    daemon.start("syncing")
    daemon.wait_ready(*made)
    assert daemon.members() == daemon.members("second") == made
