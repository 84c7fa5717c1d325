"""Tests the rechunking worker: a new chunking is applied to all documents of a bucket, which stay searchable."""

import threading
from typing import Any

import pytest

from svc_daemon.operations.index import documents
from svc_daemon.operations.index.extraction import SourceReading, extract
from svc_daemon.operations.index.rebuilding import begin_rechunk, finish_rechunk, next_reading
from svc_daemon.operations.remove.sweeping import reconcile_index
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.workers import rebuilding
from tests.api.answers import details_of, refused_field
from tests.api.daemons import Daemon
from tests.provider.samples import make_document
from tests.workers.rebuilds import LONG, begin, chunk_ids, contents, join, leave, wait_rebuilt

SMALL = {"target": 250, "min": 200, "max": 300}


def rechunk(daemon: Daemon, chunking: dict[str, int], bucket: str = "inbox") -> dict[str, Any]:
    return daemon.patch(f"/v1/buckets/{bucket}", chunking=chunking)


def left(daemon: Daemon, bucket: str = "inbox") -> int:
    return int(daemon.show(f"/v1/buckets/{bucket}")["bucketStore"]["rechunking_member_count"])


def wait_cut(daemon: Daemon) -> None:
    daemon.wait(lambda: left(daemon) == 0, "every document is rechunked")


def sizes(daemon: Daemon, source_id: str) -> list[int]:
    return [len(chunk["text"]) for chunk in daemon.show(f"/v1/sources/{source_id}/text")["chunks"]]


def stop_between(daemon: Daemon, source_id: str) -> SourceReading:
    """Stop the daemon where the state has the new generation and the index has the old one, as after a kill."""
    daemon.stop()
    rechunk(daemon, SMALL)
    begun = begin_next(daemon)
    assert contents(daemon)[source_id][0] == 1
    return begun


def begin_next(daemon: Daemon, chunking: dict[str, int] | None = None) -> SourceReading:
    """Begin rechunking the next document. If given, change the chunking once more after the document is read."""
    reading = next_reading(daemon.context, None)
    assert reading is not None
    if chunking is not None:
        rechunk(daemon, chunking)
    begun = daemon.loop.run(begin_rechunk(daemon.context, reading))
    assert begun is not None
    return begun


def finish(daemon: Daemon, begun: SourceReading) -> None:
    extraction = daemon.loop.run(extract(daemon.context, daemon._extractor, begun))
    documents.put(daemon.context, [(begun.source, extraction)])
    daemon.loop.run(finish_rechunk(daemon.context, begun, extraction))


@pytest.mark.rule("bucket.chunking")
def test_documents_are_rechunked_and_found_under_the_same_ids(working: Daemon) -> None:
    first, second = working.add_ready(LONG), working.add_ready()
    before = sizes(working, first)
    assert max(before) > SMALL["max"]
    assert rechunk(working, SMALL)["chunking"] == {**SMALL, "overlap": 0}
    wait_cut(working)
    after = sizes(working, first)
    assert max(after) <= SMALL["max"]
    assert working.source(first)["extraction"]["chunks"] == len(after) > len(before)
    assert set(working.found("quay", max_num_results=50)) == {first, second}
    # New documents are chunked with these sizes from the start.
    assert sizes(working, working.add_ready(LONG)) == after


@pytest.mark.rule("bucket.chunking")
def test_a_source_stays_ready_and_searchable_while_it_is_rechunked(working: Daemon) -> None:
    source_id = working.add_ready(LONG)
    seen: list[tuple[bool, bool]] = []
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            seen.append((working.found("umber") == [source_id], working.source(source_id)["ready"]))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(3):
            for chunking in (SMALL, {}):
                rechunk(working, chunking)
                wait_cut(working)
            # Wait for some looks in each round, however slow the machine is.
            looks = len(seen)
            working.wait(lambda: len(seen) > looks + 3, "a few more looks")  # noqa: B023
    finally:
        stop.set()
        looking.join()
    assert set(seen) == {(True, True)}
    assert working.source(source_id)["extraction"]["chunks"] == len(sizes(working, source_id))


def test_a_source_in_two_buckets_is_rechunked_only_for_its_oldest_bucket(working: Daemon) -> None:
    working.make_bucket("second")
    source_id = working.add_ready(LONG)
    join(working, source_id)
    working.wait_ready(source_id)
    working.stop()
    # These are the default sizes.
    rechunk(working, {"target": 1000, "min": 800, "max": 1100})
    rechunk(working, SMALL, bucket="second")
    assert (left(working), left(working, "second")) == (0, 0)
    rechunk(working, SMALL)
    assert (left(working), left(working, "second")) == (1, 1)


@pytest.mark.rule("bucket.chunking")
def test_after_a_kill_during_rechunking_the_old_chunks_are_found_until_it_is_finished(working: Daemon) -> None:
    source_id = working.add_ready(LONG)
    old = chunk_ids(working, "umber")
    stop_between(working, source_id)
    assert chunk_ids(working, "umber") == old
    assert (working.source(source_id)["ready"], sizes(working, source_id)[0] > SMALL["max"]) == (True, True)
    assert working.show(f"/v1/sources/{source_id}", verify="provider")["provider"]["state"] == "STATE_ACTIVE"
    assert working.loop.run(reconcile_index(working.context)) == 0
    working.start()
    wait_cut(working)
    assert max(sizes(working, source_id)) <= SMALL["max"]
    assert contents(working)[source_id][0] == 3


def test_a_source_attached_to_a_bucket_during_rechunking_is_found_there(working: Daemon) -> None:
    source_id = working.add_ready(LONG)
    working.make_bucket("second")
    stop_between(working, source_id)
    join(working, source_id)
    working.start("syncing")
    tried = "SELECT COUNT(*) FROM memberships WHERE sync_status <> 'active' AND attempt > 0"
    working.wait(lambda: working.read(lambda c: bool(c.execute(tried).fetchone()[0])), "the sync has been tried")
    working.start()
    working.wait_ready(source_id)
    wait_cut(working)
    assert working.found("umber", buckets=["second"]) == [source_id]
    # The source was not indexed again as one that the index had lost.
    assert (working.task(source_id)["attempt"], working.count("tasks")) == (1, 1)


def test_a_bucket_that_a_source_leaves_during_rechunking_is_removed_from_the_index(working: Daemon) -> None:
    second = working.make_bucket("second")
    source_id = working.add_ready(LONG)
    join(working, source_id)
    working.wait_ready(source_id)
    begun = stop_between(working, source_id)
    leave(working, source_id)
    working.start("syncing")
    finish(working, begun)
    working.wait(lambda: second not in contents(working)[source_id][1], "the index no longer has the bucket")
    assert working.found("umber") == [source_id]


def test_a_retry_during_rechunking_indexes_the_source_again(working: Daemon) -> None:
    source_id = working.add_ready(LONG)
    stop_between(working, source_id)
    working.write(lambda connection: connection.execute("UPDATE sources SET status = 'failed'"))
    working.post(f"/v1/sources/{source_id}/retry")
    # The old chunks are no longer valid: the source is indexed again from the start.
    details_of(working.search("umber"), "bucket_store_indexing_pending")
    working.start()
    working.wait_ready(source_id)
    wait_cut(working)
    assert (contents(working)[source_id][0], max(sizes(working, source_id)) <= SMALL["max"]) == (3, True)


def test_a_chunking_that_changes_during_rechunking_is_applied_afterwards(working: Daemon) -> None:
    source_id = working.add_ready(LONG)
    working.stop()
    rechunk(working, {"target": 500, "min": 400, "max": 600})
    finish(working, begin_next(working, SMALL))
    assert (left(working), 400 <= sizes(working, source_id)[0] <= 600) == (1, True)
    working.start()
    wait_cut(working)
    assert max(sizes(working, source_id)) <= SMALL["max"]


def test_a_source_that_can_no_longer_be_read_keeps_its_chunks_with_a_warning(working: Daemon) -> None:
    source_id = working.add_ready(LONG)
    before = sizes(working, source_id)
    working.lose_blob(source_id)
    rechunk(working, SMALL)
    wait_cut(working)
    source = working.source(source_id)
    assert (source["ready"], working.found("umber"), sizes(working, source_id)) == (True, [source_id], before)
    assert [warning for warning in source["warnings"] if "chunking" in warning]


def test_a_rebuild_during_rechunking_ends_with_the_new_chunks(working: Daemon) -> None:
    source_id = working.add_ready(LONG)
    stop_between(working, source_id)
    task_id = begin(working)
    working.start()
    assert wait_rebuilt(working, task_id)["status"] == "succeeded"
    wait_cut(working)
    working.wait_ready(source_id)
    assert max(sizes(working, source_id)) <= SMALL["max"]


@pytest.mark.rule("bucket.chunking")
def test_chunking_sizes_that_are_not_sent_keep_their_values(daemon: Daemon) -> None:
    sizes = {**SMALL, "overlap": 0}
    for sent in ({**SMALL, "overlap": 50}, {"target": 280}, {"overlap": 0}):
        sizes |= sent
        assert rechunk(daemon, sent)["chunking"] == sizes, sent
    answer = daemon.ask("PATCH", "/v1/buckets/inbox", json={"chunking": {"max": 250}})
    assert refused_field(answer) == "chunking"
    assert "target 280, min 200, max 250, overlap 0" in answer.json()["error"]["message"]
    assert rechunk(daemon, {})["chunking"] == {"target": 1000, "min": 800, "max": 1100, "overlap": 0}


def test_a_new_chunking_is_applied_at_once_although_a_retry_is_pending(
    working: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    source_id = working.add_ready(LONG)
    working.stop()
    monkeypatch.setattr(rebuilding, "FIRST_PAUSE_S", 3600.0)
    working.provider.fail("put_documents", ProviderFailed("The engine is on fire.", retryable=True))
    rechunk(working, SMALL)
    working.start("rechunking")
    generation = "SELECT generation FROM sources"
    working.wait(lambda: working.read(lambda c: c.execute(generation).fetchone()[0] > 1), "the first attempt was made")
    rechunk(working, {"overlap": 50})
    wait_cut(working)
    assert max(sizes(working, source_id)) <= SMALL["max"]


@pytest.mark.rule("indexing.restored")
def test_a_document_of_a_later_state_is_not_taken_for_the_new_chunks(working: Daemon) -> None:
    source_id = working.add_ready(LONG)
    working.stop()
    later = make_document(source_id, "Vermilion.", generation=2, buckets=working.source(source_id)["bucket_ids"])
    working.provider.put_documents(working.team_id, [later])
    rechunk(working, SMALL)
    working.start("rechunking", "indexing")
    wait_cut(working)
    working.wait_ready(source_id)
    assert working.found("vermilion") == [] and 1 < max(sizes(working, source_id)) <= SMALL["max"]
