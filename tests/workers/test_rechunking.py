"""The rechunking worker: another chunking rechunks a bucket's documents, and no search misses them meanwhile."""

import threading
from typing import Any

import pytest

from svc_daemon.operations import documents
from svc_daemon.operations.documents import extract
from svc_daemon.operations.rebuilding import begin_rechunk, finish_rechunk, next_reading
from svc_daemon.operations.sweeping import reconcile_index
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.workers import rebuilding
from tests.acceptance.installations import wait_until
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import Daemon
from tests.api.holds import PATIENCE_S
from tests.workers.rebuilds import begin, chunk_ids, contents, wait_rebuilt

LONG = b"# Quays\n\n" + b"The umber quay was built of grey stone. " * 120
SMALL = {"target": 250, "min": 200, "max": 300}


def rechunk(daemon: Daemon, chunking: dict[str, int], bucket: str = "inbox") -> dict[str, Any]:
    return body_of(daemon.ask("PATCH", f"/v1/buckets/{bucket}", json={"chunking": chunking}))


def left(daemon: Daemon, bucket: str = "inbox") -> int:
    store = body_of(daemon.ask("GET", f"/v1/buckets/{bucket}"))["bucketStore"]
    return int(store["rechunking_member_count"])


def wait_cut(daemon: Daemon) -> None:
    wait_until(lambda: left(daemon) == 0, "every document is rechunked", PATIENCE_S)


def sizes(daemon: Daemon, source_id: str) -> list[int]:
    text = body_of(daemon.ask("GET", f"/v1/sources/{source_id}/text"))
    return [len(chunk["text"]) for chunk in text["chunks"]]


def stop_between(daemon: Daemon, source_id: str) -> None:
    """As a kill leaves it between the new generation and the index: the state is ahead."""
    daemon.stop()
    rechunk(daemon, SMALL)
    reading = next_reading(daemon.context, "")
    assert reading is not None
    assert daemon.loop.run(begin_rechunk(daemon.context, reading)) is not None
    assert contents(daemon)[source_id][0] == 1


def test_documents_are_cut_anew_and_found_under_the_same_ids(working: Daemon) -> None:
    first, second = working.add_ready(LONG), working.add_ready()
    before = sizes(working, first)
    assert max(before) > SMALL["max"]
    shown = rechunk(working, SMALL)
    assert shown["chunking"] == {**SMALL, "overlap": 0}
    wait_cut(working)
    after = sizes(working, first)
    assert max(after) <= SMALL["max"]
    assert working.source(first)["extraction"]["chunks"] == len(after) > len(before)
    assert set(working.found("quay", max_num_results=50)) == {first, second}
    # From now on new documents are cut so from the beginning.
    third = working.add_ready(LONG)
    assert sizes(working, third) == after


def test_at_no_moment_a_search_misses_or_a_source_is_not_ready(working: Daemon) -> None:
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
            rechunk(working, SMALL)
            wait_cut(working)
            rechunk(working, {})
            wait_cut(working)
            # However slow the machine: some looks at each turn.
            looks = len(seen)
            wait_until(lambda: len(seen) > looks + 3, "a few more looks", PATIENCE_S)  # noqa: B023
    finally:
        stop.set()
        looking.join()
    assert set(seen) == {(True, True)}
    assert working.source(source_id)["extraction"]["chunks"] == len(sizes(working, source_id))


def test_the_same_chunking_cuts_nothing(working: Daemon) -> None:
    working.add_ready(LONG)
    working.stop()
    # These are the default's.
    rechunk(working, {"target": 1000, "min": 800, "max": 1100})
    assert left(working) == 0
    rechunk(working, SMALL)
    assert left(working) == 1


def test_killed_between_state_and_index_the_old_pieces_answer_and_the_next_start_goes_on(working: Daemon) -> None:
    source_id = working.add_ready(LONG)
    old = chunk_ids(working, "umber")
    stop_between(working, source_id)
    assert chunk_ids(working, "umber") == old
    assert (working.source(source_id)["ready"], sizes(working, source_id)[0] > SMALL["max"]) == (True, True)
    provider = body_of(working.ask("GET", f"/v1/sources/{source_id}?verify=provider"))["provider"]
    assert provider["state"] == "STATE_ACTIVE"
    assert working.loop.run(reconcile_index(working.context)) == 0
    working.start()
    wait_cut(working)
    assert max(sizes(working, source_id)) <= SMALL["max"]
    assert contents(working)[source_id][0] == 3


def test_a_bucket_that_joins_in_between_waits_and_is_told(working: Daemon) -> None:
    source_id = working.add_ready(LONG)
    working.make_bucket("second")
    stop_between(working, source_id)
    body_of(working.ask("POST", "/v1/buckets/second/sources", json={"source_id": source_id}))
    working.start("syncing")
    wait_until(lambda: bool(working.read(_attempts)), "the sync has been tried", PATIENCE_S)
    working.start()
    working.wait_ready(source_id)
    wait_cut(working)
    assert working.found("umber", buckets=["second"]) == [source_id]
    # It was never read as one that the index had lost.
    assert working.task(source_id)["attempt"] == 1
    assert working.count("tasks") == 1


def _attempts(connection: Any) -> int:
    row = connection.execute("SELECT MAX(attempt) AS attempts FROM memberships WHERE sync_status <> 'active'")
    return int(row.fetchone()["attempts"] or 0)


def test_a_bucket_that_leaves_in_between_is_forgotten_by_the_index(working: Daemon) -> None:
    second = working.make_bucket("second")
    source_id = working.add_ready(LONG)
    body_of(working.ask("POST", "/v1/buckets/second/sources", json={"source_id": source_id}))
    working.wait_ready(source_id)
    working.stop()
    rechunk(working, SMALL)
    reading = next_reading(working.context, "")
    assert reading is not None
    begun = working.loop.run(begin_rechunk(working.context, reading))
    assert begun is not None
    body_of(working.ask("DELETE", f"/v1/buckets/second/sources/{source_id}"))
    working.start("syncing")
    extraction = working.loop.run(extract(working.context, working._extractor, begun))
    documents.put(working.context, begun.source, extraction)
    working.loop.run(finish_rechunk(working.context, begun, extraction))
    wait_until(lambda: second not in contents(working)[source_id][1], "the index has forgotten it", PATIENCE_S)
    assert working.found("umber") == [source_id]


def test_whatever_else_makes_a_new_generation_wins(working: Daemon) -> None:
    source_id = working.add_ready(LONG)
    stop_between(working, source_id)
    working.write(lambda connection: connection.execute("UPDATE sources SET status = 'failed'"))
    body_of(working.ask("POST", f"/v1/sources/{source_id}/retry"))
    # The old pieces are no longer the source's: it is read again, as one of which nothing is known.
    details_of(working.search("umber"), "bucket_store_indexing_pending")
    working.start()
    working.wait_ready(source_id)
    wait_cut(working)
    assert (contents(working)[source_id][0], max(sizes(working, source_id)) <= SMALL["max"]) == (3, True)


def test_what_changed_once_more_meanwhile_is_cut_once_more(working: Daemon) -> None:
    source_id = working.add_ready(LONG)
    working.stop()
    rechunk(working, {"target": 500, "min": 400, "max": 600})
    reading = next_reading(working.context, "")
    assert reading is not None
    rechunk(working, SMALL)
    begun = working.loop.run(begin_rechunk(working.context, reading))
    assert begun is not None
    extraction = working.loop.run(extract(working.context, working._extractor, begun))
    documents.put(working.context, begun.source, extraction)
    working.loop.run(finish_rechunk(working.context, begun, extraction))
    assert (left(working), 400 <= sizes(working, source_id)[0] <= 600) == (1, True)
    working.start()
    wait_cut(working)
    assert max(sizes(working, source_id)) <= SMALL["max"]


def test_one_that_can_no_longer_be_read_keeps_its_pieces_and_says_so(working: Daemon) -> None:
    source_id = working.add_ready(LONG)
    before = sizes(working, source_id)
    (working.files.blobs / source_id).unlink()
    rechunk(working, SMALL)
    wait_cut(working)
    source = working.source(source_id)
    assert (source["ready"], working.found("umber"), sizes(working, source_id)) == (True, [source_id], before)
    assert [warning for warning in source["warnings"] if "chunking" in warning]


def test_a_rebuild_in_between_ends_with_the_new_pieces(working: Daemon) -> None:
    source_id = working.add_ready(LONG)
    stop_between(working, source_id)
    task_id = begin(working)
    working.start()
    assert wait_rebuilt(working, task_id)["status"] == "succeeded"
    wait_cut(working)
    working.wait_ready(source_id)
    assert max(sizes(working, source_id)) <= SMALL["max"]


def test_a_source_of_several_buckets_is_cut_by_the_oldest(working: Daemon) -> None:
    working.make_bucket("second")
    source_id = working.add_ready(LONG)
    body_of(working.ask("POST", "/v1/buckets/second/sources", json={"source_id": source_id}))
    working.wait_ready(source_id)
    working.stop()
    rechunk(working, SMALL, bucket="second")
    assert (left(working), left(working, "second")) == (0, 0)
    rechunk(working, SMALL)
    assert (left(working), left(working, "second")) == (1, 1)


def test_sizes_that_are_not_sent_stay(working: Daemon) -> None:
    working.stop()
    rechunk(working, {**SMALL, "overlap": 50})
    assert rechunk(working, {"target": 280})["chunking"] == {"target": 280, "min": 200, "max": 300, "overlap": 50}
    assert rechunk(working, {"overlap": 0})["chunking"] == {"target": 280, "min": 200, "max": 300, "overlap": 0}
    answer = working.ask("PATCH", "/v1/buckets/inbox", json={"chunking": {"max": 250}})
    assert refused_field(answer) == "chunking"
    assert "target 280, min 200, max 250, overlap 0" in answer.json()["error"]["message"]
    assert rechunk(working, {})["chunking"] == {"target": 1000, "min": 800, "max": 1100, "overlap": 0}


@pytest.mark.parametrize("chunking", [{"size": 300}, {"target": 900, "size": 300}])
def test_a_size_of_another_name_is_refused_by_it(working: Daemon, chunking: dict[str, int]) -> None:
    before = body_of(working.ask("GET", "/v1/buckets/inbox"))["chunking"]
    assert refused_field(working.ask("PATCH", "/v1/buckets/inbox", json={"chunking": chunking})) == "chunking.size"
    made = working.ask("PUT", "/v1/buckets/second", json={"chunking": chunking})
    assert refused_field(made) == "chunking.size"
    assert body_of(working.ask("GET", "/v1/buckets/inbox"))["chunking"] == before


def test_a_change_is_heard_while_another_try_is_waited_for(working: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    source_id = working.add_ready(LONG)
    working.stop()
    monkeypatch.setattr(rebuilding, "FIRST_PAUSE_S", 3600.0)
    working.provider.fail("put_document", ProviderFailed("The engine is on fire.", retryable=True))
    rechunk(working, SMALL)
    working.start("rechunking")
    wait_until(lambda: contents(working)[source_id][0] < working.read(_generation), "it was tried", PATIENCE_S)
    rechunk(working, {"overlap": 50})
    wait_cut(working)
    assert max(sizes(working, source_id)) <= SMALL["max"]


def _generation(connection: Any) -> int:
    return int(connection.execute("SELECT generation FROM sources").fetchone()["generation"])


@pytest.mark.parametrize("chunking", [{"min": 1050}, {"target": 50}, {"overlap": 500}, {"max": "many"}, []])
def test_sizes_that_do_not_fit_change_nothing(working: Daemon, chunking: Any) -> None:
    before = body_of(working.ask("GET", "/v1/buckets/inbox"))
    answer = working.ask("PATCH", "/v1/buckets/inbox", json={"chunking": chunking})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_request")
    after = body_of(working.ask("GET", "/v1/buckets/inbox"))
    assert (after["chunking"], after["revision"]) == (before["chunking"], before["revision"])
