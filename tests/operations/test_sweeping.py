"""Tests the steps of the sweeper: clearing deleted sources, reconciling the index, and rebuilding a lost index."""

import errno
import os
from unittest.mock import Mock

import pytest

from svc_daemon.errors import StorageError
from svc_daemon.operations import sweeping
from svc_daemon.operations.indexing import Failure, IndexingClaim, claim_indexing, fail_indexing
from svc_daemon.operations.rebuilding import rebuild_after
from svc_daemon.operations.syncing import claim_syncs
from svc_daemon.process.indexing_turns import Turns
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.store.teams import list_team_ids
from svc_daemon.wire.error_codes import SourceErrorCode
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.provider.samples import make_document
from tests.workers.rebuilds import add_unsynced, contents, importing

BROKEN = ProviderFailed("The engine is on fire.", retryable=True)


def blobs(daemon: Daemon) -> set[str]:
    return set(daemon.blob_names())


def clean(daemon: Daemon) -> int:
    return daemon.loop.run(sweeping.clean_tombstones(daemon.context))


def recall(daemon: Daemon) -> int:
    return daemon.loop.run(sweeping.recall_far_pauses(daemon.context))


def reconcile(daemon: Daemon) -> int:
    return daemon.loop.run(sweeping.reconcile_index(daemon.context))


@pytest.mark.folders
def test_a_tombstone_is_kept_if_syncing_the_deletion_of_its_blob_fails(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.delete(f"/v1/sources/{daemon.add_source()}")
    with monkeypatch.context() as patched, pytest.raises(StorageError):
        patched.setattr(os, "fsync", Mock(side_effect=OSError(errno.EIO, "broken")))
        clean(daemon)
    assert daemon.count("tombstones") == 1


def test_the_tombstone_of_a_replaced_source_is_kept_after_its_blob_is_deleted(working: Daemon) -> None:
    old = working.add_ready()
    new = working.add_ready(b"The new quay.\n", replaces=old)
    working.stop()
    clean(working)
    assert (blobs(working), working.count("tombstones"), clean(working)) == ({new}, 1, 0)


def test_tombstones_that_cannot_be_cleared_do_not_block_the_others(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "STEP_LIMIT", 3)
    for _ in range(6):
        daemon.delete(f"/v1/sources/{daemon.add_source()}")
    daemon.provider.fail("delete_document", BROKEN, times=4)
    assert (clean(daemon), daemon.count("tombstones")) == (2, 4)
    assert (clean(daemon), daemon.count("tombstones"), blobs(daemon)) == (4, 0, set())


def test_a_failing_index_does_not_block_reconciling_the_index_of_another_team(daemon: Daemon) -> None:
    daemon.add_team()
    last = max(daemon.read(list_team_ids))
    daemon.provider.put_documents(last, [make_document("src_orphan", "quay")])
    daemon.provider.fail("list_documents", BROKEN)
    assert (reconcile(daemon), daemon.provider.get_document(last, "src_orphan")) == (1, None)


def test_reconciling_removes_orphaned_documents_and_requeues_sources_without_a_document(working: Daemon) -> None:
    kept, lost = working.add_ready(), working.add_ready()
    working.stop()
    working.provider.delete_document(working.team_id, lost)
    orphan = make_document("src_orphan", "quay", buckets=[working.make_bucket()])
    working.provider.put_documents(working.team_id, [orphan])
    assert reconcile(working) == 2
    assert [document.source_id for document in working.provider.list_documents(working.team_id)] == [kept]
    assert (working.source(kept)["ready"], working.source(lost)["status"]) == (True, "queued")
    working.start()
    working.wait_ready(lost)
    assert set(working.found("quay")) == {kept, lost}


@pytest.mark.rule("indexing.restored")
def test_reconciling_restores_the_buckets_of_documents(working: Daemon) -> None:
    """The state was restored from an older copy: after that copy, one source left its bucket and one joined another."""
    left, joined, same = (working.add_ready() for _ in range(3))
    second = working.make_bucket("second")
    # A question is in its bucket, but in none in the index, because searches of a bucket don't find it.
    words = {"question": "Where is it?", "answer": "On the mole."}
    question = working.ask("POST", "/v1/buckets/inbox/qa", json=words).json()["id"]
    working.wait_ready(question)
    working.stop()
    (bucket_id,) = working.source(same)["bucket_ids"]
    for source_id, buckets in ((left, []), (joined, [bucket_id, second])):
        working.provider.set_buckets(working.team_id, source_id, 1, buckets)
    assert reconcile(working) == 2
    working.start("syncing")
    expected = dict.fromkeys((left, joined, same), (bucket_id,)) | {question: ()}
    working.wait(
        lambda: {name: each[1] for name, each in contents(working).items()} == expected,
        "the index has the buckets of the state",
    )
    assert (set(working.found("quay")), reconcile(working)) == ({left, joined, same}, 0)


def test_a_sync_is_not_delayed_by_a_wall_clock_that_is_set_back(daemon: Daemon) -> None:
    add_unsynced(daemon)
    assert recall(daemon) == 0
    daemon.advance(-3600)
    assert daemon.loop.run(claim_syncs(daemon.context)) == []
    assert recall(daemon) == 1
    assert len(daemon.loop.run(claim_syncs(daemon.context))) == 1


def test_an_indexing_retry_is_not_delayed_by_a_wall_clock_that_is_set_back(daemon: Daemon) -> None:
    def claim() -> list[IndexingClaim] | None:
        return daemon.loop.run(claim_indexing(daemon.context, Turns(2)))

    daemon.add_source()
    first = claim()
    assert first is not None
    failure = Failure(SourceErrorCode.EXTRACTION_CRASHED, "It died.", retryable=True)
    daemon.loop.run(fail_indexing(daemon.context, [(first[0], failure)], jitter=0.9))
    assert (recall(daemon), claim()) == (0, None)
    daemon.advance(-3600)
    assert recall(daemon) == 1 and claim() is not None


def test_a_webhook_is_not_delayed_by_a_wall_clock_that_is_set_back(daemon: Daemon) -> None:
    with importing(daemon) as (source_id, receiver):
        daemon.start("indexing", "syncing")
        daemon.wait_ready(source_id)
        daemon.stop()
        assert recall(daemon) == 0
        daemon.advance(-3600)
        assert recall(daemon) == 1
        daemon.start("delivering")
        daemon.wait(lambda: bool(receiver.calls), "the webhook is called")


def test_a_lost_index_is_rebuilt_with_the_same_source_ids(working: Daemon, make_daemon: MakeDaemon) -> None:
    ids = {working.add_ready() for _ in range(3)}
    working.close()
    for path in working.files.index.iterdir():
        path.unlink()
    daemon = make_daemon()
    assert daemon.loop.run(sweeping.rebuild_lost(daemon.context)) == 1
    assert daemon.search("quay").json()["error"]["code"] == "team_store_maintenance"
    # Another start finds the rebuild in progress, and changes nothing.
    assert (daemon.loop.run(sweeping.rebuild_lost(daemon.context)), reconcile(daemon)) == (0, 0)
    daemon.start("rebuilding")
    daemon.wait(lambda: daemon.search("quay").status_code == 200, "searches work again")
    assert set(daemon.found("quay")) == ids
    # Another node, which had noticed the loss before that rebuild, starts no second one.
    daemon.loop.run(rebuild_after(daemon.context, daemon.team_id, None))
    assert daemon.search("quay").status_code == 200
    assert {document.generation for document in daemon.provider.list_documents(daemon.team_id)} == {1}
