"""Tests the steps of a bucket sync: stale claims, leases, failures, detached buckets and changed titles."""

import pytest

from svc_daemon.operations.index import syncing
from svc_daemon.operations.index.syncing import Sync
from svc_daemon.provider.errors import ProviderFailed
from tests.acceptance.installations import PATIENCE_S
from tests.api.answers import body_of
from tests.api.daemons import Daemon
from tests.workers.rebuilds import add_unsynced, join, leave

BUSY = ProviderFailed("The engine is busy.", retryable=True)


@pytest.fixture
def ready(working: Daemon) -> str:
    """A source that was ready when the workers stopped."""
    source_id = working.add_ready()
    working.stop()
    return source_id


@pytest.fixture
def indexed(daemon: Daemon) -> str:
    """A source that is indexed and not yet synced."""
    return add_unsynced(daemon)


def claim(daemon: Daemon) -> list[Sync]:
    return daemon.loop.run(syncing.claim_syncs(daemon.context))


def complete(daemon: Daemon, syncs: list[Sync]) -> None:
    daemon.loop.run(syncing.complete_syncs(daemon.context, syncs))


def status(daemon: Daemon, source_id: str) -> tuple[str, bool]:
    source = daemon.source(source_id)
    return source["bucket_sync_status"], source["ready"]


def revision(daemon: Daemon) -> int:
    return int(daemon.show("/v1/buckets/inbox")["revision"])


def clean(daemon: Daemon) -> int:
    return daemon.loop.run(syncing.clean_detachments(daemon.context))


@pytest.mark.rule("indexing.active")
def test_each_step_of_a_sync_changes_the_shown_status_and_the_revision(daemon: Daemon, indexed: str) -> None:
    seen = [revision(daemon)]
    assert status(daemon, indexed) == ("queued", False)
    (sync,) = claim(daemon)
    seen.append(revision(daemon))
    assert status(daemon, indexed) == ("syncing", False)
    daemon.loop.run(syncing.fail_sync(daemon.context, sync, jitter=0))
    seen.append(revision(daemon))
    assert status(daemon, indexed) == ("failed", False)
    store = daemon.show("/v1/buckets/inbox")["bucketStore"]
    assert (store["status"], store["pending_member_count"]) == ("degraded", 1)
    assert claim(daemon) == []
    daemon.advance(60)
    complete(daemon, claim(daemon))
    seen.append(revision(daemon))
    assert (status(daemon, indexed), len(set(seen))) == (("active", True), 4)


def test_completing_a_sync_of_a_detached_or_requeued_source_changes_nothing(daemon: Daemon, indexed: str) -> None:
    (sync,) = claim(daemon)
    for _ in range(2):
        daemon.loop.run(syncing.reindex_missing(daemon.context, sync))
        complete(daemon, [sync])
        assert (daemon.source(indexed)["status"], status(daemon, indexed)) == ("queued", ("queued", False))
        assert daemon.count("tasks") == 2
    with daemon.provider.held("put_documents") as hold:
        daemon.start("indexing")
        hold.wait_entered()
        join(daemon, indexed)
    daemon.wait_status(indexed, "active")
    syncs = claim(daemon)
    for bucket in ("inbox", "second"):
        leave(daemon, indexed, bucket)
    complete(daemon, syncs)
    assert (daemon.source(indexed)["bucket_ids"], daemon.members(status="all")) == ([], [])


def test_a_bucket_detached_during_another_detachment_is_also_removed_from_the_index(working: Daemon) -> None:
    def indexed_in() -> tuple[str, ...]:
        document = working.provider.get_document(working.team_id, source_id)
        assert document is not None
        return document.bucket_ids

    source_id = working.add_ready()
    second = working.make_bucket("second")
    join(working, source_id)
    working.wait_ready(source_id)
    working.stop()
    leave(working, source_id, "inbox")
    with working.provider.held("set_buckets") as hold:
        cleaning = working.loop.begin(syncing.clean_detachments(working.context))
        hold.wait_entered()
        leave(working, source_id)
    assert (cleaning.result(), indexed_in()) == (1, (second,))
    working.provider.fail("set_buckets", BUSY)
    assert (clean(working), working.count("detachments")) == (0, 1)
    assert (clean(working), indexed_in()) == (1, ())
    assert clean(working) == working.count("detachments") == 0


def test_detachments_that_the_index_refuses_do_not_block_the_others(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncing, "CLAIM_LIMIT", 3)
    for _ in range(5):
        leave(daemon, daemon.add_source(), "inbox")
    daemon.provider.fail("set_title", BUSY, times=4)
    # A call ends after the first batch in which anything was cleaned.
    assert [(clean(daemon), daemon.count("detachments")) for _ in range(3)] == [(1, 4), (3, 1), (1, 0)]


def test_a_stale_title_in_the_index_is_corrected(working: Daemon, ready: str) -> None:
    working.patch(f"/v1/sources/{ready}", title="Vermilion")
    # As after another change that wrote to the index, and then was killed or overtaken before it wrote to the state.
    working.provider.set_title(working.team_id, ready, "Ochre")
    assert (working.found("ochre"), clean(working)) == ([ready], 1)
    assert (working.found("vermilion"), working.found("ochre")) == ([ready], [])
    assert clean(working) == working.count("detachments") == 0


def test_a_pending_title_stays_recorded_until_the_state_has_the_title(working: Daemon, ready: str) -> None:
    with working.provider.held("set_title") as hold:
        patch = working.asking("PATCH", f"/v1/sources/{ready}", json={"title": "Vermilion"})
        changing = working.loop.begin(patch())
        hold.wait_entered()
        assert (clean(working), working.count("detachments")) == (0, 1)
    body_of(changing.result(PATIENCE_S))
    assert working.found("vermilion") == [ready]
    assert (clean(working), clean(working), working.count("detachments")) == (1, 0, 0)


def test_a_title_that_changes_while_the_index_is_corrected_is_corrected_too(working: Daemon, ready: str) -> None:
    working.patch(f"/v1/sources/{ready}", title="Vermilion")
    with working.provider.held("set_buckets") as hold:
        cleaning = working.loop.begin(syncing.clean_detachments(working.context))
        hold.wait_entered()
        working.patch(f"/v1/sources/{ready}", title="Ochre")
    assert (cleaning.result(), working.count("detachments"), clean(working)) == (1, 1, 1)
    assert (working.found("vermilion"), working.found("ochre")) == ([], [ready])


def test_buckets_that_a_stale_sync_wrote_to_the_index_are_corrected(working: Daemon, ready: str) -> None:
    second = working.make_bucket("second")
    join(working, ready)
    (late,) = claim(working)
    third = working.make_bucket("third")
    join(working, ready, "third")
    (fresh,) = claim(working)
    for sync in (fresh, late):
        source = sync.source
        working.provider.set_buckets(source.team_id, source.id, source.generation, source.searched_places)
        complete(working, [sync])
    assert (working.count("detachments"), clean(working), status(working, ready)) == (1, 1, ("active", True))
    document = working.provider.get_document(working.team_id, ready)
    assert document is not None
    assert {second, third} <= set(document.bucket_ids)
