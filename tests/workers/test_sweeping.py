"""The sweeper: clears soon after a delete, and looks round however busy it is."""

from collections.abc import Callable

from svc_daemon.operations.indexing import claim_indexing
from svc_daemon.operations.syncing import claim_syncs
from tests.acceptance.installations import wait_until
from tests.api.answers import body_of
from tests.api.daemons import Daemon
from tests.api.holds import PATIENCE_S
from tests.provider.samples import make_document


def test_deletes_are_cleared_without_waiting_for_the_round(working: Daemon) -> None:
    made = [working.add_ready() for _ in range(3)]
    for source_id in made:
        body_of(working.ask("DELETE", f"/v1/sources/{source_id}"))
    wait_until(lambda: working.count("tombstones") == 0, "all stones are gone", 5)
    assert list(working.files.blobs.iterdir()) == []


def test_more_stones_than_one_step_takes_are_cleared_in_one_go(daemon: Daemon) -> None:
    for _ in range(120):
        body_of(daemon.ask("DELETE", f"/v1/sources/{daemon.add_source()}"))
    assert daemon.count("tombstones") == 120
    daemon.start("sweeping")
    wait_until(lambda: daemon.count("tombstones") == 0, "all stones are gone", 5)


def test_the_start_clears_documents_of_no_source(daemon: Daemon) -> None:
    daemon.provider.put_document(daemon.team_id, make_document("src_orphan", "quay"), [])
    daemon.start("sweeping")
    gone = "the orphan is gone"
    wait_until(lambda: daemon.provider.get_document(daemon.team_id, "src_orphan") is None, gone, PATIENCE_S)


def wait_round(daemon: Daemon, condition: Callable[[], bool], what: str) -> None:
    """Wait while time flies, and the sweeper is woken all the while: that must not put off its look-round."""

    def came_true() -> bool:
        daemon.advance(11)
        return condition()

    wait_until(came_true, what, PATIENCE_S)


def test_the_round_releases_leases_that_ran_out(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    daemon.loop.run(claim_indexing(daemon.context, [daemon.team_id]))
    daemon.start("sweeping")
    wait_round(daemon, lambda: daemon.task(source_id)["status"] == "queued", "the task is released")


def test_the_round_releases_syncs_that_ran_out(daemon: Daemon) -> None:
    daemon.start("indexing")
    source_id = daemon.add_source()
    daemon.wait_status(source_id, "active")
    daemon.stop()
    daemon.loop.run(claim_syncs(daemon.context))
    daemon.start("sweeping")
    wait_round(daemon, lambda: daemon.source(source_id)["bucket_sync_status"] == "queued", "the sync is released")


def test_the_round_ends_pauses_that_a_moved_wall_clock_made_endless(daemon: Daemon) -> None:
    daemon.start("indexing")
    source_id = daemon.add_source()
    daemon.wait_status(source_id, "active")
    daemon.stop()
    daemon.advance(-365 * 86_400)
    daemon.start("sweeping", "syncing")
    wait_round(daemon, lambda: bool(daemon.source(source_id)["ready"]), "the source is ready")


def test_a_round_forgets_old_keys(daemon: Daemon) -> None:
    daemon.add_source(repeat_key="old")
    daemon.start("sweeping")
    daemon.advance(8 * 86_400)
    wait_round(daemon, lambda: daemon.count("idempotency") == 0, "the old key is forgotten")
