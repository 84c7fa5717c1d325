"""Tests the rebuilding worker: rebuilds with concurrent changes and failures, and after damage to the index."""

import logging
import os
import threading
from typing import Any

import pytest

from svc_daemon.operations.index.syncing import claim_syncs, complete_syncs
from svc_daemon.provider.embedded.postings import Postings
from svc_daemon.provider.errors import IndexDamaged, ProviderFailed
from tests import samples
from tests.acceptance.installations import PATIENCE_S
from tests.api.answers import details_of, without_id
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.workers import rebuilds
from tests.workers.rebuilds import LONG, adding, begin, contents, delete, importing, join, leave, show, wait_rebuilt

ALL_HITS = 50


def found(daemon: Daemon, *buckets: str) -> set[str]:
    """Return the sources that a search for `quay` finds, in these buckets or in all."""
    within = {"buckets": list(buckets)} if buckets else {}
    return set(daemon.found("quay", max_num_results=ALL_HITS, **within))


@pytest.fixture
def filled(working: Daemon) -> Daemon:
    """A working daemon with three ready files and a question, one of the files in two buckets."""
    working.make_bucket("second")
    ids = [working.add_ready(LONG), working.add_ready(), working.add_ready()]
    join(working, ids[0])
    qa = working.post("/v1/buckets/inbox/qa", 201, json={"question": "Which quay?", "answer": "The umber one."})
    working.wait_ready(*ids, qa["id"])
    return working


@pytest.mark.rule("team_store_maintenance")
@pytest.mark.index_files
def test_a_rebuilt_index_has_the_same_documents_and_chunk_ids(filled: Daemon) -> None:
    before, chunks = contents(filled), rebuilds.chunk_ids(filled, "umber quay")
    sources = [without_id(filled.source(source_id)) for source_id in before]
    # Kept open, because the new file could get the inode number of the deleted one.
    with rebuilds.index_file(filled).open("rb") as old:
        task = wait_rebuilt(filled, begin(filled))
        assert os.fstat(old.fileno()).st_nlink == 0
    assert (task["status"], task["attempt"]) == ("succeeded", 1)
    assert task["progress"] == {"stage": "index", "chunks_done": 4, "chunks_total": 4}
    assert (contents(filled), rebuilds.chunk_ids(filled, "umber quay")) == (before, chunks)
    assert [without_id(filled.source(source_id)) for source_id in before] == sources


def test_a_rebuild_reads_small_documents_in_one_wave_and_others_alone(working: Daemon) -> None:
    working.make_bucket()
    ids = [working.add_source(f"The umber quay {number}.\n".encode()) for number in range(6)]
    pdf = samples.make_pdf(["The umber quay in a PDF."])
    # The second is named like a document that may share a child process, which then refuses it.
    ids += [working.add_source(pdf, filename=name) for name in ("quay.pdf", "quay.md")]
    working.wait_ready(*ids)
    before = contents(working)
    working.provider.calls.clear()
    assert wait_rebuilt(working, begin(working))["status"] == "succeeded"
    assert (contents(working), found(working)) == (before, set(ids))
    asked = {name: working.provider.calls[name] for name in ("put_documents", "get_document", "set_title")}
    assert asked == {"put_documents": 3, "get_document": 0, "set_title": 0}


def test_changes_made_during_a_rebuild_reach_the_new_index(filled: Daemon) -> None:
    first, second, third, _ = contents(filled)
    bucket_ids = {slug: filled.make_bucket(slug) for slug in ("inbox", "second", "third")}
    filled.stop()
    task_id = begin(filled)
    filled.start("indexing", "syncing", "sweeping")
    leave(filled, first)
    delete(filled, second)
    join(filled, third, "third")
    filled.patch(f"/v1/sources/{first}", title="Moorings")
    fresh, replacing = filled.add_source(), filled.add_source(replaces=third)
    for source_id in (fresh, replacing):
        filled.wait_status(source_id, "active")
    filled.start("rebuilding")
    assert wait_rebuilt(filled, task_id)["status"] == "succeeded"
    filled.wait_ready(first, fresh, replacing)

    def is_settled() -> bool:
        held = {source_id: set(buckets) for source_id, (_, buckets, _) in contents(filled).items()}
        inbox, other = bucket_ids["inbox"], bucket_ids["third"]
        files = {first: {inbox}, third: {other}, fresh: {inbox}, replacing: {inbox}}
        return {source_id: held.get(source_id) for source_id in files} == files and second not in held

    filled.wait(is_settled, "the index is as the state is")
    assert (filled.found("moorings"), found(filled, "inbox")) == ([first], {first, fresh, replacing})
    assert set(filled.members("third")) == found(filled, "third") == {third}


def test_a_source_being_indexed_when_a_rebuild_deletes_the_old_index_is_indexed_again(filled: Daemon) -> None:
    with adding(filled) as source_id:
        task_id = begin(filled)
        filled.wait(lambda: show(filled, task_id)["progress"]["stage"] == "index", "the old file is deleted")
    wait_rebuilt(filled, task_id)
    filled.wait_ready(source_id)
    assert filled.task(source_id)["attempt"] == 1 and source_id in found(filled)


def test_a_source_that_is_deleted_while_a_rebuild_reads_it_is_not_in_the_index(filled: Daemon) -> None:
    gone = next(iter(contents(filled)))
    with filled.provider.held("put_documents") as hold:
        task_id = begin(filled)
        hold.wait_entered()
        delete(filled, gone)
        filled.wait(lambda: gone not in filled.blob_names(), "its bytes are deleted")
    assert wait_rebuilt(filled, task_id)["status"] == "succeeded" and gone not in contents(filled)


@pytest.mark.index_files
def test_a_stopped_rebuild_counts_no_attempt_and_continues_in_the_same_file(filled: Daemon) -> None:
    before = contents(filled)
    with filled.provider.held("put_documents") as hold:
        task_id = begin(filled)
        hold.wait_entered()
        stopping = filled.loop.begin(filled._stop())
    stopping.result(PATIENCE_S)
    parked = show(filled, task_id)
    assert (parked["status"], parked["attempt"], parked["progress"]["stage"]) == ("queued", 0, "index")
    inode = rebuilds.index_file(filled).stat().st_ino
    details_of(filled.search("quay"), "team_store_maintenance")
    filled.start()
    assert wait_rebuilt(filled, task_id)["attempt"] == 1
    assert (contents(filled), rebuilds.index_file(filled).stat().st_ino) == (before, inode)


def wait_failed(daemon: Daemon, task_id: str, due_at: str | None = None) -> dict[str, Any]:
    """Wait until an attempt has failed and the next one is due at another time than `due_at`; return the task."""

    def waits() -> bool:
        task = show(daemon, task_id)
        return bool(task["status"] == "queued" and task["next_attempt_at"] != due_at)

    daemon.wait(waits, "an attempt has failed")
    return show(daemon, task_id)


def test_a_rebuild_shows_a_failing_disk_and_retries_until_it_works(filled: Daemon) -> None:
    before = contents(filled)
    filled.provider.fail("put_documents", ProviderFailed("the disk is full", retryable=True), times=1000)
    task_id = begin(filled)
    task = wait_failed(filled, task_id)
    assert (task["error"]["message"], task["finished_at"]) == ("the disk is full", None)
    for _ in range(4):
        filled.advance(200)
        task = wait_failed(filled, task_id, task["next_attempt_at"])
    # The last attempt is repeated, and no source fails.
    assert task["attempt"] == task["max_attempts"] - 1
    filled.provider.fail("put_documents", ProviderFailed("", retryable=True), times=0)
    filled.advance(200)
    assert (wait_rebuilt(filled, task_id)["status"], contents(filled)) == ("succeeded", before)


@pytest.mark.folders
def test_a_source_that_a_rebuild_can_no_longer_read_fails(filled: Daemon) -> None:
    lost, *others = contents(filled)
    (filled.files.blobs / lost).write_bytes(b"%PDF-1.7\n")
    assert wait_rebuilt(filled, begin(filled))["status"] == "succeeded"
    failed = filled.wait_status(lost, "failed")
    assert failed["error"]["code"] and not failed["ready"]
    assert set(contents(filled)) == set(others)
    assert found(filled, "inbox") < set(others)


def test_a_rebuild_calls_no_webhook_again(working: Daemon) -> None:
    with importing(working) as (source_id, receiver):
        working.wait(lambda: bool(receiver.calls), "the call")
        wait_rebuilt(working, begin(working))
        working.wait_ready(source_id)
        working.stop()
        assert (working.count("deliveries"), len(receiver.calls)) == (1, 1)


def test_a_webhook_of_a_source_that_a_detach_makes_ready_is_called_after_the_rebuild(daemon: Daemon) -> None:
    daemon.make_bucket("second")
    with importing(daemon) as (source_id, receiver):
        with daemon.provider.held("put_documents") as hold:
            daemon.start("indexing")
            hold.wait_entered()
            join(daemon, source_id)
        daemon.wait_status(source_id, "active")
        (sync, _) = daemon.loop.run(claim_syncs(daemon.context))
        daemon.loop.run(complete_syncs(daemon.context, [sync]))
        task_id = begin(daemon)
        (other,) = set(daemon.source(source_id)["bucket_ids"]) - {sync.claim.bucket_id}
        leave(daemon, source_id, other)
        assert daemon.count("deliveries") == 0
        daemon.start("syncing", "delivering", "rebuilding")
        wait_rebuilt(daemon, task_id)
        daemon.wait(lambda: bool(receiver.calls), "the call")


@pytest.mark.index_files
@pytest.mark.parametrize("has_its_head", [True, False])
def test_a_search_in_a_damaged_index_triggers_a_rebuild(
    make_daemon: MakeDaemon, has_its_head: bool, caplog: pytest.LogCaptureFixture
) -> None:
    daemon = make_daemon()
    daemon.make_bucket()
    daemon.start()
    ids = {daemon.add_ready(LONG) for _ in range(3)}
    daemon.close()
    whole = rebuilds.index_file(daemon).read_bytes()
    broken = whole[:8192] + b"\xff" * (len(whole) - 8192) if has_its_head else b"this is not a database" * 500
    rebuilds.index_file(daemon).write_bytes(broken)
    daemon = make_daemon()
    daemon.start("rebuilding")
    with caplog.at_level(logging.ERROR):
        error = daemon.search("quay").json()["error"]
        assert error["code"] in {"search_failed", "team_store_maintenance"} and error["retryable"]
        daemon.start("indexing", "syncing")
        daemon.wait(lambda: daemon.search("quay").status_code == 200, "searches work again")
    assert found(daemon) == ids
    assert f"the index of {daemon.team_id} is damaged: it is rebuilt" in caplog.text


def test_an_index_that_is_damaged_right_after_a_rebuild_is_rebuilt_again_after_a_pause(
    working: Daemon, caplog: pytest.LogCaptureFixture
) -> None:
    source_id = working.add_ready()
    wait_rebuilt(working, begin(working))
    with caplog.at_level(logging.ERROR):
        working.loop.call(lambda: working.context.wakes.note_damaged(working.team_id))
        working.wait(lambda: not working.context.wakes.damaged, "the damage report is handled")
        assert "look at the disk" in caplog.text
    assert (working.search("quay").status_code, working.source(source_id)["ready"]) == (409, False)
    working.advance(50)
    assert working.search("quay").status_code == 409
    working.advance(20)
    working.wait(lambda: working.search("quay").status_code == 200, "the index is rebuilt once more")
    assert working.source(source_id)["ready"]


def test_damage_reported_while_the_old_index_is_deleted_causes_no_second_rebuild(filled: Daemon) -> None:
    with filled.provider.held("delete_team") as hold:
        task_id = begin(filled)
        hold.wait_entered()
        filled.loop.call(lambda: filled.context.wakes.note_damaged(filled.team_id))
    wait_rebuilt(filled, task_id)
    filled.wait(lambda: not filled.context.wakes.damaged, "the damage report is handled")
    assert filled.search("quay").status_code == 200


def test_a_rebuild_whose_new_file_is_damaged_is_repeated(filled: Daemon) -> None:
    before = contents(filled)
    filled.provider.fail("put_documents", IndexDamaged(filled.team_id, "damaged"))
    task_id = begin(filled)

    def is_rebuilt() -> bool:
        status = show(filled, task_id)["status"]
        if status == "queued":  # not while it runs: its lease would run out
            filled.advance(5)
        return bool(status == "succeeded")

    filled.wait(is_rebuilt, "the second attempt succeeds")
    assert (show(filled, task_id)["attempt"], contents(filled)) == (2, before)


def test_other_teams_are_searchable_during_a_rebuild(working: Daemon) -> None:
    daemon, other = working, working.add_team()
    daemon.make_bucket("theirs", key=other)
    daemon.add_ready()
    theirs = daemon.upload(bucket="theirs", key=other).json()["id"]
    daemon.wait(lambda: daemon.source(theirs, key=other)["ready"], "the other team's source is ready")
    before = daemon.show("/v1/buckets/theirs", key=other)["revision"]
    with daemon.provider.held("put_documents") as hold:
        task_id = begin(daemon)
        hold.wait_entered()
        details_of(daemon.search("quay"), "team_store_maintenance")
        assert (daemon.found("quay", key=other), daemon.source(theirs, key=other)["ready"]) == ([theirs], True)
        bucket = daemon.show("/v1/buckets/theirs", key=other)
        assert (bucket["bucketStore"]["status"], bucket["revision"]) == ("active", before)
        details_of(daemon.ask("GET", f"/v1/knowledge/tasks/{task_id}", key=other), "task_not_found")
    wait_rebuilt(daemon, task_id)


@pytest.mark.index_files
def test_sources_are_not_ready_while_the_list_of_words_is_made_anew(
    make_daemon: MakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = make_daemon()
    daemon.make_bucket()
    daemon.start()
    ids = {daemon.add_ready(LONG), daemon.add_ready()}
    before = {source_id: without_id(daemon.source(source_id)) for source_id in ids}
    daemon.close()
    (postings,) = rebuilds.index_file(daemon).parent.glob("*.postings-*")
    (postings / "meta.json").unlink()
    may_go_on, commit = threading.Event(), Postings.commit

    def wait_and_commit(postings: Postings) -> None:
        assert may_go_on.wait(PATIENCE_S)
        commit(postings)

    monkeypatch.setattr(Postings, "commit", wait_and_commit)
    daemon = make_daemon()
    daemon.start()
    error = daemon.search("quay").json()["error"]
    assert error["code"] == "team_store_maintenance"
    daemon.wait(lambda: not any(daemon.source(source_id)["ready"] for source_id in ids), "no source is ready")
    details = details_of(daemon.search("quay"), "team_store_maintenance")
    assert daemon.source(min(ids))["ready_withheld_by"] == "team_store_maintenance"
    added = daemon.add_source()
    daemon.wait_status(added, "active")
    assert not daemon.source(added)["ready"]
    may_go_on.set()
    daemon.wait_ready(*ids, added)
    assert found(daemon) == {*ids, added}
    assert {source_id: without_id(daemon.source(source_id)) for source_id in ids} == before
    task = wait_rebuilt(daemon, details["task_id"])
    assert (task["status"], task["progress"]["chunks_total"]) == ("succeeded", 3)
