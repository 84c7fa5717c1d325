"""The bucket sync worker: refusals, documents that the index lost, and going on."""

import pytest

from svc_daemon.provider.errors import ProviderFailed
from tests.acceptance.installations import wait_until
from tests.api.answers import body_of
from tests.api.daemons import Daemon
from tests.api.holds import PATIENCE_S

BUSY = ProviderFailed("The engine is busy.", retryable=True)


def test_a_refused_sync_is_tried_again_without_end(working: Daemon) -> None:
    working.provider.fail("set_buckets", BUSY, times=5)
    source_id = working.add_source()

    def attempts() -> int:
        return int(working.read(lambda c: c.execute("SELECT attempt FROM memberships").fetchone()[0]))

    for attempt in range(1, 6):
        wait_until(lambda: attempts() == attempt, f"attempt {attempt}", PATIENCE_S)  # noqa: B023
        failed = "the sync has failed"
        wait_until(lambda: working.source(source_id)["bucket_sync_status"] == "failed", failed, PATIENCE_S)
        assert working.source(source_id)["status"] == "active"
        working.advance(100)
    working.wait_ready(source_id)
    assert working.task(source_id)["status"] == "succeeded"


def test_a_document_that_the_index_lost_is_read_again(working: Daemon) -> None:
    with working.provider.held("set_buckets") as hold:
        source_id = working.add_source()
        hold.wait_entered()
        first = working.source(source_id)["task"]["id"]
        working.provider.delete_document(working.team_id, source_id)
    working.wait_ready(source_id)
    assert working.source(source_id)["task"]["id"] != first
    assert working.found("quay") == [source_id]


def test_a_document_lost_later_is_read_again_when_it_joins_a_bucket(working: Daemon) -> None:
    source_id = working.add_ready()
    working.provider.delete_document(working.team_id, source_id)
    working.make_bucket("second")
    body_of(working.ask("POST", "/v1/buckets/second/sources", json={"source_id": source_id}))
    working.wait_ready(source_id)
    for bucket in ("inbox", "second"):
        assert working.found("quay", buckets=[bucket]) == [source_id]


def test_a_stop_in_a_sync_is_made_up_for(daemon: Daemon) -> None:
    daemon.start()
    with daemon.provider.held("set_buckets") as hold:
        source_id = daemon.add_source()
        hold.wait_entered()
        daemon.stop()
    assert daemon.source(source_id)["ready"] is False
    daemon.start("syncing", "sweeping")

    def is_ready_in_time() -> bool:
        daemon.advance(11)
        return bool(daemon.source(source_id)["ready"])

    wait_until(is_ready_in_time, "the sync is claimed again", PATIENCE_S)


def test_deleting_during_a_sync_wins(working: Daemon) -> None:
    with working.provider.held("set_buckets") as hold:
        source_id = working.add_source()
        hold.wait_entered()
        body_of(working.ask("DELETE", f"/v1/sources/{source_id}"))
    gone = "the index forgets the source"
    wait_until(lambda: working.provider.get_document(working.team_id, source_id) is None, gone, PATIENCE_S)
    assert (working.count("sources"), working.count("memberships")) == (0, 0)


@pytest.mark.parametrize("count", [1, 150])
def test_any_number_of_syncs_become_active(daemon: Daemon, count: int) -> None:
    daemon.start("indexing")
    made = [daemon.add_source(f"Quay number {number}.\n".encode()) for number in range(count)]
    for source_id in made:
        daemon.wait_status(source_id, "active")
    daemon.start("syncing")
    daemon.wait_ready(*made)
    assert daemon.members() == made
