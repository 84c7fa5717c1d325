"""Tests the indexing worker: attempts, retries, fairness between teams, stops, and concurrent changes."""

import gzip

import pytest

from svc_daemon.provider.errors import ProviderFailed
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.holds import allow, refuse
from tests.workers.rebuilds import adding, contents, delete, wait_gone

BUSY = ProviderFailed("The engine is busy.", retryable=True)


def state_of(daemon: Daemon, source_id: str) -> tuple[str, str, int]:
    """Return the status of the source, the status of its task, and the number of attempts."""
    task = daemon.task(source_id)
    return daemon.source(source_id)["status"], task["status"], task["attempt"]


def wait_attempt(daemon: Daemon, source_id: str, attempt: int) -> None:
    """Wait until this attempt has failed and the task is queued again."""
    due = ("queued", "queued", attempt)
    daemon.wait(lambda: state_of(daemon, source_id) == due, f"attempt {attempt} of {source_id} ends")


@pytest.mark.rule("indexing.claimed")
def test_a_task_reports_its_progress(working: Daemon) -> None:
    with adding(working) as source_id:
        task = working.task(source_id)
        assert (task["status"], task["attempt"], task["max_attempts"]) == ("running", 1, 3)
        assert task["progress"] == {"stage": "index", "chunks_done": 0, "chunks_total": 1}
        # Progress is not written to the database.
        assert working.read(lambda c: tuple(c.execute("SELECT stage, chunks_total FROM tasks").fetchone())) == (
            "extract",
            None,
        )
        assert (task["source_id"], task["finished_at"], task["error"]) == (source_id, None, None)
        assert working.source(source_id)["status"] == "indexing"
    working.wait_ready(source_id)
    task = working.task(source_id)
    assert (task["status"], task["attempt"], task["error"]) == ("succeeded", 1, None)
    assert task["progress"] == {"stage": "bucket_sync", "chunks_done": 1, "chunks_total": 1}
    assert task["created_at"] <= task["started_at"] <= task["finished_at"]
    assert not working.context.progress


def test_adding_a_document_until_it_is_ready_takes_three_transactions(working: Daemon) -> None:
    working.add_ready()
    before = working.context.database.operations
    source_id = working.add_ready()
    assert (working.context.database.operations - before, working.found("quay")[0] != "") == (3, True)
    assert working.members()[1] == source_id and contents(working)[source_id][1] == (working.make_bucket(),)


@pytest.mark.parametrize("after_effect", [False, True], ids=["refused", "answer lost"])
def test_a_retryable_failure_is_retried_after_a_pause(working: Daemon, after_effect: bool) -> None:
    """Also if only the answer was lost: the document is simply put again."""
    working.provider.fail("put_documents", BUSY, after_effect=after_effect)
    source_id = working.add_source()
    wait_attempt(working, source_id, 1)
    task = working.task(source_id)
    assert (task["error"]["code"], task["error"]["retryable"]) == ("provider_failed", True)
    assert task["next_attempt_at"] > task["started_at"]
    assert working.source(source_id)["error"] is None
    working.advance(10)
    working.wait_ready(source_id)
    task = working.task(source_id)
    assert (task["attempt"], task["next_attempt_at"]) == (2, None)
    assert working.found("quay") == working.members() == [source_id]


@pytest.mark.rule("indexing.failed")
def test_a_source_fails_with_the_last_cause_after_three_attempts(working: Daemon) -> None:
    working.provider.fail("put_documents", BUSY, times=3)
    source_id = working.add_source()
    for attempt in (1, 2):
        wait_attempt(working, source_id, attempt)
        working.advance(60)
    error = working.wait_status(source_id, "failed")["error"]
    assert (error["code"], "busy" in error["message"]) == ("max_attempts_exhausted", True)
    assert state_of(working, source_id) == ("failed", "failed", 3)
    working.post(f"/v1/sources/{source_id}/retry")
    working.wait_ready(source_id)
    assert working.task(source_id)["attempt"] == 1


@pytest.mark.parametrize("sweeping", [False, True], ids=["unswept", "swept meanwhile"])
def test_a_source_that_is_deleted_during_indexing_stays_deleted(daemon: Daemon, sweeping: bool) -> None:
    daemon.start("indexing", "syncing", *(["sweeping"] if sweeping else []))
    with adding(daemon) as source_id:
        task_id = daemon.source(source_id)["task"]["id"]
        delete(daemon, source_id)
        assert daemon.show(f"/v1/knowledge/tasks/{task_id}")["status"] == "canceled"
        if sweeping:
            daemon.wait(lambda: daemon.count("tombstones") == 0, "the tombstone is cleared")
    ready = daemon.add_ready(b"Another quay.\n")
    details_of(daemon.ask("GET", f"/v1/sources/{source_id}"), "source_not_found")
    wait_gone(daemon, source_id)
    assert (daemon.found("quay"), daemon.count("sources")) == ([ready], 1)


def test_a_failing_claim_does_not_stop_the_worker(daemon: Daemon) -> None:
    """A trigger stands for the full disk: it makes the claim raise an error."""
    source_id = daemon.add_source()
    refuse(daemon, "UPDATE", "tasks")
    before = daemon.context.database.operations
    daemon.start()
    daemon.wait(lambda: daemon.context.database.operations > before, "a claim fails")
    assert state_of(daemon, source_id) == ("queued", "queued", 0)
    allow(daemon, "tasks")
    daemon.wait_ready(source_id)


def test_a_compressed_text_is_searchable_with_its_lines_and_downloaded_unchanged(working: Daemon) -> None:
    packed = gzip.compress(b"# Notes\n\nThe sluice.\n\nThe umber quay.\n")
    source_id = working.add_ready(packed, filename="notes.md.gz")
    (hit,) = body_of(working.search("umber quay"))["data"]
    assert (hit["location"]["line_start"], hit["location"]["headings"]) == (3, ["Notes"])
    content = working.ask("GET", f"/v1/sources/{source_id}/content")
    assert (content.content, content.headers["content-type"]) == (packed, "application/gzip")
