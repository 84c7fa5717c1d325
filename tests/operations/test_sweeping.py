"""Tests what a sweep does: tombstones, the index, clocks that are set back, and rows that ended long ago."""

import errno
import os
import shutil
from dataclasses import replace
from unittest.mock import Mock

import pytest

from svc_daemon.errors import StorageError
from svc_daemon.offline.verify import verify_directory
from svc_daemon.operations.index.indexing import Failure, IndexingClaim, claim_indexing, fail_indexing
from svc_daemon.operations.index.rebuilding import rebuild_after
from svc_daemon.operations.remove import sweeping
from svc_daemon.operations.remove.sweeping import expire_sessions
from svc_daemon.process.indexing_scheduler import IndexingScheduler
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.store.rows.teams import list_team_ids
from svc_daemon.wire.light.error_codes import SourceErrorCode
from tests.api.answers import body_of
from tests.api.daemons import NOTES, UNLIMITED, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.sessions import batch_status, finalize, finalize_batch, open_batch, open_session, put, session_path
from tests.api.sites import Receiver, Site, hosting, receiving
from tests.provider.samples import make_document
from tests.workers.rebuilds import contents, importing

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


def test_an_indexing_retry_is_not_delayed_by_a_wall_clock_that_is_set_back(daemon: Daemon) -> None:
    def claim() -> list[IndexingClaim] | None:
        return daemon.loop.run(claim_indexing(daemon.context, IndexingScheduler(2)))

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


@pytest.mark.parametrize("is_there", [False, True])
def test_a_lost_or_unusable_index_is_rebuilt_with_the_same_source_ids(
    working: Daemon, make_daemon: MakeDaemon, *, is_there: bool
) -> None:
    ids = {working.add_ready() for _ in range(3)}
    working.close()
    (index,) = working.files.index.glob("*.db")
    if is_there:
        index.write_bytes(index.read_bytes()[:4096] + bytes(index.stat().st_size - 4096))
    else:
        shutil.rmtree(working.files.index)
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


DAY_S = 86_400
TABLES = ("uploads", "batches", "tasks", "cascades", "deliveries", "delivery_attempts")


def counts(daemon: Daemon) -> dict[str, int]:
    return {table: daemon.count(table) for table in TABLES}


def forget(daemon: Daemon) -> int:
    return daemon.loop.run(sweeping.forget_ended(daemon.context))


def import_called(daemon: Daemon, site: Site, receiver: Receiver, path: str) -> str:
    """Import a page into `inbox`, and wait until the call of its webhook is recorded."""
    body = {"url": site.url(path), "webhook": {"url": receiver.url}}
    before = daemon.count("delivery_attempts")
    source_id = str(daemon.post("/v1/buckets/inbox/files/import", 201, json=body)["id"])
    daemon.wait_ready(source_id)
    daemon.wait(lambda: daemon.count("delivery_attempts") > before, "the call is recorded")
    return source_id


def test_deliveries_and_tasks_are_kept_until_their_retention_after_the_source_is_deleted(working: Daemon) -> None:
    with hosting() as site, receiving() as receiver:
        kept, gone = (import_called(working, site, receiver, path) for path in ("/notes.md", "/paper.pdf"))
    working.delete(f"/v1/sources/{gone}")
    working.stop()
    assert (working.count("deliveries"), working.count("tasks")) == (2, 2)
    for days, forgotten in ((0, 0), (29, 0), (2, 2)):
        working.advance(days * DAY_S)
        assert forget(working) == forgotten, days
    assert counts(working) == dict.fromkeys(TABLES, 0) | {"tasks": 1, "deliveries": 1, "delivery_attempts": 1}
    (delivery,) = working.show("/v1/webhooks/deliveries")["deliveries"]
    assert (delivery["source_id"], forget(working)) == (kept, 0)


def test_ended_sessions_and_batches_are_deleted_after_their_retention_but_not_their_sources(working: Daemon) -> None:
    session, canceled = open_session(working), open_session(working)
    put(working, session, NOTES)
    source_id = body_of(finalize(working, session), 201)["id"]
    body_of(working.ask("DELETE", session_path(canceled)))
    files = [("a", NOTES), ("x", b"xyz")]
    whole, half = open_batch(working, files), open_batch(working, files)
    for batch, name, data in ((whole, *files[0]), (whole, *files[1]), (half, *files[0])):
        put(working, batch["by_id"][name], data)
    made = [source_id] + [each["knowledge_id"] for each in finalize_batch(working, whole)["finalized"]]
    working.wait_ready(*made)
    working.stop()
    working.advance(31 * DAY_S)
    # A file of `half` was never sent, so that batch has not ended until the sweeper expires the file's session.
    assert forget(working) == 3
    assert batch_status(working, half)["terminal"]
    working.loop.run(expire_sessions(working.context))
    assert (forget(working), counts(working)) == (1, dict.fromkeys(TABLES, 0) | {"tasks": 3})
    assert all(working.show(f"/v1/sources/{each}")["ready"] for each in made)


@pytest.mark.index_files
@pytest.mark.sqlite
@pytest.mark.folders
def test_after_the_retention_a_deleted_bucket_leaves_no_rows_and_no_problems(working: Daemon) -> None:
    working.make_bucket("gone")
    working.add_ready(bucket="gone")
    working.add_ready()
    working.delete("/v1/buckets/gone", force="true")
    working.wait(lambda: working.count("buckets") == 1, "the bucket is deleted")
    working.stop()
    working.advance(31 * DAY_S)
    forget(working)
    assert counts(working) == dict.fromkeys(TABLES, 0) | {"tasks": 1}
    working.close()
    assert list(verify_directory(working.files.root, read_data=True, repair=False).lines())[:-1] == []


def test_sessions_are_kept_as_long_as_idempotency_keys(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=replace(UNLIMITED, history_days=1, idempotency_days=7))
    daemon.make_bucket()
    body_of(daemon.ask("DELETE", session_path(open_session(daemon))))
    for days, forgotten in ((7, 0), (2, 1)):
        daemon.advance(days * DAY_S)
        assert forget(daemon) == forgotten, days
