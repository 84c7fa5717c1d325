"""The indexing worker: attempts, leases, fairness, stops, and deletes that come in between."""

import gzip
import shutil
import sqlite3
from itertools import islice

import pytest

from svc_daemon.provider.errors import ProviderFailed
from tests.acceptance.installations import wait_until
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.holds import PATIENCE_S

BUSY = ProviderFailed("The engine is busy.", retryable=True)
BROKEN = ProviderFailed("The engine is on fire.", retryable=False)


def state_of(daemon: Daemon, source_id: str) -> tuple[str, str, int]:
    """Status of the source, status of its task, attempts."""
    task = daemon.task(source_id)
    return daemon.source(source_id)["status"], task["status"], task["attempt"]


def wait_attempt(daemon: Daemon, source_id: str, attempt: int) -> None:
    """Return when this attempt has ended and another is due."""

    def ended() -> bool:
        task = daemon.task(source_id)
        return bool(task["attempt"] == attempt and task["status"] == "queued")

    wait_until(ended, f"attempt {attempt} of {source_id} ends", PATIENCE_S)


def test_a_task_tells_its_way(working: Daemon) -> None:
    with working.provider.held("put_document") as hold:
        source_id = working.add_source()
        hold.wait_entered()
        task = working.task(source_id)
        assert (task["status"], task["attempt"], task["max_attempts"]) == ("running", 1, 3)
        assert task["progress"] == {"stage": "index", "chunks_done": 0, "chunks_total": 1}
        assert (task["source_id"], task["finished_at"], task["error"]) == (source_id, None, None)
        assert working.source(source_id)["status"] == "indexing"
    working.wait_ready(source_id)
    task = working.task(source_id)
    assert (task["status"], task["attempt"], task["error"]) == ("succeeded", 1, None)
    assert task["progress"] == {"stage": "bucket_sync", "chunks_done": 1, "chunks_total": 1}
    assert task["created_at"] <= task["started_at"] <= task["finished_at"]


def test_a_failure_that_may_pass_is_tried_again_after_a_pause(working: Daemon) -> None:
    working.provider.fail("put_document", BUSY)
    source_id = working.add_source()
    wait_attempt(working, source_id, 1)
    task = working.task(source_id)
    assert (task["error"]["code"], task["error"]["retryable"]) == ("provider_failed", True)
    assert task["next_attempt_at"] > task["started_at"]
    assert (working.source(source_id)["status"], working.source(source_id)["error"]) == ("queued", None)
    working.advance(10)
    working.wait_ready(source_id)
    assert working.task(source_id)["attempt"] == 2
    assert working.task(source_id)["next_attempt_at"] is None


def test_after_three_attempts_it_is_given_up_with_the_last_cause(working: Daemon) -> None:
    working.provider.fail("put_document", BUSY, times=3)
    source_id = working.add_source()
    for attempt in (1, 2):
        wait_attempt(working, source_id, attempt)
        working.advance(60)
    source = working.wait_status(source_id, "failed")
    assert source["error"]["code"] == "max_attempts_exhausted"
    assert "busy" in source["error"]["message"]
    assert state_of(working, source_id) == ("failed", "failed", 3)
    body_of(working.ask("POST", f"/v1/sources/{source_id}/retry"))
    working.wait_ready(source_id)
    assert working.task(source_id)["attempt"] == 1


def test_a_failure_that_stays_is_not_tried_again(working: Daemon) -> None:
    working.provider.fail("put_document", BROKEN)
    source_id = working.add_source()
    source = working.wait_status(source_id, "failed")
    assert source["error"] == {"code": "provider_failed", "message": "The engine is on fire.", "retryable": False}
    assert state_of(working, source_id) == ("failed", "failed", 1)


def test_bytes_that_are_lost_fail_the_source_and_nobody_else(daemon: Daemon) -> None:
    lost, whole = daemon.add_source(), daemon.add_source()
    (daemon.files.blobs / lost).unlink()
    daemon.start()
    daemon.wait_ready(whole)
    error = daemon.wait_status(lost, "failed")["error"]
    assert (error["code"], error["retryable"]) == ("stored_bytes_lost", False)
    assert state_of(daemon, lost) == ("failed", "failed", 1)


def test_a_put_whose_answer_was_lost_is_put_again_without_harm(working: Daemon) -> None:
    working.provider.fail("put_document", BUSY, after_effect=True)
    source_id = working.add_source()
    wait_attempt(working, source_id, 1)
    working.advance(10)
    working.wait_ready(source_id)
    assert working.found("quay") == [source_id]


@pytest.mark.parametrize("sweeping", [True, False])
def test_a_delete_during_indexing_wins(daemon: Daemon, sweeping: bool) -> None:
    daemon.start("indexing", "syncing", *(["sweeping"] if sweeping else []))
    with daemon.provider.held("put_document") as hold:
        source_id = daemon.add_source()
        hold.wait_entered()
        task_id = daemon.source(source_id)["task"]["id"]
        body_of(daemon.ask("DELETE", f"/v1/sources/{source_id}"))
        assert body_of(daemon.ask("GET", f"/v1/knowledge/tasks/{task_id}"))["status"] == "canceled"
        if sweeping:
            wait_until(lambda: daemon.count("tombstones") == 0, "the tombstone is gone", PATIENCE_S)
    ready = daemon.add_ready(b"Another quay.\n")
    details_of(daemon.ask("GET", f"/v1/sources/{source_id}"), "source_not_found")
    gone = "the index forgets the deleted source"
    wait_until(lambda: daemon.provider.get_document(daemon.team_id, source_id) is None, gone, PATIENCE_S)
    assert daemon.found("quay") == [ready]
    assert daemon.count("sources") == 1


def test_a_title_changed_during_indexing_is_found(working: Daemon) -> None:
    with working.provider.held("put_document") as hold:
        source_id = working.add_source()
        hold.wait_entered()
        body_of(working.ask("PATCH", f"/v1/sources/{source_id}", json={"title": "Vermilion harbours"}))
    working.wait_ready(source_id)
    assert working.found("vermilion") == [source_id]
    assert working.found("notes", source_ids=[source_id]) == [source_id]


def test_a_source_attached_during_indexing_is_found_in_both_buckets(working: Daemon) -> None:
    working.make_bucket("second")
    with working.provider.held("put_document") as hold:
        source_id = working.add_source()
        hold.wait_entered()
        body_of(working.ask("POST", "/v1/buckets/second/sources", json={"source_id": source_id}))
    working.wait_ready(source_id)
    for bucket in ("inbox", "second"):
        assert working.found("quay", buckets=[bucket]) == [source_id]


def test_a_source_detached_during_indexing_is_not_in_the_index_of_that_bucket(working: Daemon) -> None:
    second = working.make_bucket("second")
    with working.provider.held("put_document") as hold:
        source_id = working.add_source()
        hold.wait_entered()
        body_of(working.ask("POST", "/v1/buckets/second/sources", json={"source_id": source_id}))
        body_of(working.ask("DELETE", f"/v1/buckets/inbox/sources/{source_id}"))
    working.wait_ready(source_id)

    wait_until(lambda: working.count("detachments") == 0, "the index is told of the bucket that was left", PATIENCE_S)
    document = working.provider.get_document(working.team_id, source_id)
    assert document is not None
    assert document.bucket_ids == (second,)


def test_one_teams_many_files_do_not_starve_anothers_one(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon()
    daemon.make_bucket()
    theirs = daemon.add_team()
    daemon.make_bucket(key=theirs)
    many = [daemon.add_source() for _ in range(12)]
    one = daemon.add_source(key=theirs)
    with daemon.provider.held("put_document") as hold:
        daemon.start("indexing")
        hold.wait_entered()
        wait_until(lambda: daemon.source(one, key=theirs)["status"] == "indexing", "the other team's turn", PATIENCE_S)
        waiting = [source_id for source_id in many if daemon.source(source_id)["status"] == "queued"]
        assert len(waiting) == len(many) - 1
    daemon.stop()


def test_a_teams_files_are_taken_in_their_order(daemon: Daemon) -> None:
    made = [daemon.add_source() for _ in range(6)]
    daemon.start("indexing")
    for source_id in made:
        daemon.wait_status(source_id, "active")
    started = [daemon.task(source_id)["started_at"] for source_id in made]
    assert started == sorted(started)


def test_a_stop_parks_what_is_in_flight_and_costs_no_attempt(working: Daemon) -> None:
    for _ in range(4):
        with working.provider.held("put_document") as hold:
            source_id = working.add_source()
            hold.wait_entered()
            working.stop()
            assert state_of(working, source_id) == ("queued", "queued", 0)
        working.start()
        working.wait_ready(source_id)
        assert working.task(source_id)["attempt"] == 1


def test_stops_at_any_moment_cost_no_attempt(daemon: Daemon) -> None:
    made = [daemon.add_source() for _ in range(12)]
    for _ in range(10):
        daemon.start("indexing")
        daemon.stop()
        assert daemon.read(_running) == []
    daemon.start()
    daemon.wait_ready(*made)
    assert [daemon.task(source_id)["attempt"] for source_id in made] == [1] * len(made)


def _running(connection: sqlite3.Connection) -> list[sqlite3.Row]:
    return connection.execute("SELECT id FROM tasks WHERE status = 'running'").fetchall()


def test_a_disk_that_is_full_for_a_moment_does_not_end_the_worker(daemon: Daemon) -> None:
    """A trigger stands in for the disk: what matters is that the claim raises."""
    refuse = "CREATE TRIGGER full BEFORE UPDATE ON tasks BEGIN SELECT RAISE(ABORT, 'no room, says the test'); END"
    source_id = daemon.add_source()
    daemon.write(lambda connection: connection.execute(refuse))
    before = daemon.context.database.operations
    daemon.start()
    wait_until(lambda: daemon.context.database.operations > before, "a claim fails", PATIENCE_S)
    assert state_of(daemon, source_id) == ("queued", "queued", 0)
    daemon.write(lambda connection: connection.execute("DROP TRIGGER full"))
    daemon.wait_ready(source_id)


def test_a_nearly_full_disk_takes_nothing_into_the_index(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    source_id = daemon.add_source()
    nearly_full = type("Usage", (), {"total": 10**12, "free": 10**6})
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: nearly_full)
        daemon.start()
        waits = "the source says what it waits for"
        shortage = wait_until(lambda: daemon.source(source_id)["waits_for"], waits, PATIENCE_S)
        assert (shortage["lack"], "nearly full" in shortage["message"]) == ("disk_reserve", True)
        daemon.wait_status(source_id, "queued")
        assert state_of(daemon, source_id) == ("queued", "queued", 0)
        assert daemon.provider.get_document(daemon.team_id, source_id) is None
    daemon.wait_ready(source_id)
    assert daemon.task(source_id)["attempt"] == 1


def test_the_chunking_of_the_bucket_is_used(working: Daemon) -> None:
    text = "\n\n".join(f"Sentence number {number} about the quay." for number in range(60)).encode()
    small = {"target": 150, "min": 100, "max": 200}
    body_of(working.ask("PUT", "/v1/buckets/fine", json={"chunking": small}), 201)
    coarse = working.add_ready(text, filename="a.txt")
    fine = working.add_ready(text, filename="a.txt", bucket="fine")
    chunks = [working.source(source_id)["extraction"]["chunks"] for source_id in (coarse, fine)]
    assert chunks[1] >= 3 * chunks[0]
    told = body_of(working.ask("GET", f"/v1/sources/{fine}/text"))["chunks"]
    assert all(len(chunk["text"]) <= 200 for chunk in islice(told, 5))


def test_a_compressed_text_is_found_at_its_lines_and_given_back_as_it_came(working: Daemon) -> None:
    packed = gzip.compress(b"# Notes\n\nThe sluice.\n\nThe umber quay.\n")
    source_id = working.add_ready(packed, filename="notes.md.gz")
    (hit,) = body_of(working.search("umber quay"))["data"]
    assert (hit["location"]["line_start"], hit["location"]["headings"]) == (3, ["Notes"])
    content = working.ask("GET", f"/v1/sources/{source_id}/content")
    assert (content.content, content.headers["content-type"]) == (packed, "application/gzip")


def test_what_the_bytes_turn_out_to_be_is_shown(working: Daemon) -> None:
    source_id = working.add_ready(b"<!DOCTYPE html><html><body><p>The umber quay.</p></body></html>", filename="a.txt")
    assert working.source(source_id)["content_type"] == "text/html"
    assert working.ask("GET", f"/v1/sources/{source_id}/content").content.startswith(b"<!DOCTYPE")
