"""Tests the workers that sync buckets and sweep."""

from collections.abc import Callable

import pytest

from svc_daemon.operations.index import syncing
from svc_daemon.operations.index.indexing import claim_indexing
from svc_daemon.operations.index.syncing import claim_syncs
from svc_daemon.operations.remove import sweeping
from svc_daemon.process.indexing_scheduler import IndexingScheduler
from svc_daemon.provider.errors import ProviderFailed
from tests.api.answers import body_of
from tests.api.daemons import Daemon
from tests.provider.samples import put
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


def test_a_document_lost_later_is_indexed_again_when_its_source_joins_a_bucket(working: Daemon) -> None:
    source_id = working.add_ready()
    working.provider.delete_document(working.team_id, source_id)
    working.make_bucket("second")
    join(working, source_id)
    working.wait_ready(source_id)
    for bucket in ("inbox", "second"):
        assert working.found("quay", buckets=[bucket]) == [source_id]


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


def test_deletes_are_cleared_without_waiting_for_the_round(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start, more deletes than one step handles; later, a single one."""
    monkeypatch.setattr(sweeping, "STEP_LIMIT", 2)
    monkeypatch.setattr("svc_daemon.workers.sweeping.ROUND_S", 3600.0)
    for _ in range(5):
        delete(daemon, daemon.add_source())
    assert daemon.count("tombstones") == 5
    daemon.start("sweeping")
    daemon.wait(lambda: daemon.count("tombstones") == 0, "all tombstones are cleared")
    daemon.start("indexing", "syncing")
    delete(daemon, daemon.add_ready())
    daemon.wait(lambda: daemon.count("tombstones") == 0, "the later tombstone is cleared")
    assert daemon.blob_names() == []


def test_the_start_clears_orphaned_documents(daemon: Daemon) -> None:
    put(daemon.provider, "src_orphan", "quay", team_id=daemon.team_id)
    daemon.start("sweeping")
    wait_gone(daemon, "src_orphan")


def wait_round(daemon: Daemon, condition: Callable[[], bool], what: str) -> None:
    """Wait while advancing the clock, which wakes the sweeper each time; that must not delay its round."""

    def came_true() -> bool:
        daemon.advance(11)
        return condition()

    daemon.wait(came_true, what)


def test_a_round_releases_expired_leases_of_indexing_tasks(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    daemon.loop.run(claim_indexing(daemon.context, IndexingScheduler(2)))
    daemon.start("sweeping")
    wait_round(daemon, lambda: daemon.task(source_id)["status"] == "queued", "the task is released")


def test_a_round_deletes_expired_idempotency_keys_and_keeps_newer_ones(daemon: Daemon) -> None:
    daemon.add_source(repeat_key="old")
    daemon.advance(2 * 86_400)
    young = daemon.add_source(repeat_key="young")
    daemon.start("sweeping")
    daemon.advance(5 * 86_400)
    wait_round(daemon, lambda: daemon.count("idempotency") < 2, "the old key is forgotten")
    assert body_of(daemon.upload(repeat_key="young"))["id"] == young


def test_a_round_releases_expired_leases_of_syncs(daemon: Daemon) -> None:
    source_id = add_unsynced(daemon)
    daemon.loop.run(claim_syncs(daemon.context))
    daemon.start("sweeping")
    wait_round(daemon, lambda: daemon.source(source_id)["bucket_sync_status"] == "queued", "the sync is released")


def test_a_round_ends_pauses_that_a_clock_set_back_has_made_too_long(daemon: Daemon) -> None:
    source_id = add_unsynced(daemon)
    daemon.advance(-365 * 86_400)
    daemon.start("sweeping", "syncing")
    wait_round(daemon, lambda: bool(daemon.source(source_id)["ready"]), "the source is ready")
