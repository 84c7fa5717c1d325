"""What the API answers while a team's search index is made anew."""

from collections.abc import Iterator

import pytest

from svc_daemon.wire.batches import BatchStatus
from svc_daemon.wire.sources import SourceVerified
from svc_daemon.wire.tasks import TaskAnswer
from tests.acceptance.installations import wait_until
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.holds import PATIENCE_S
from tests.workers.rebuilds import begin, wait_rebuilt

CODE = "team_store_maintenance"


@pytest.fixture
def ready(working: Daemon) -> str:
    """A source that was ready before the maintenance."""
    return working.add_ready()


@pytest.fixture
def task_id(working: Daemon, ready: str) -> Iterator[str]:
    """A rebuild that has removed the old index and has not put the first document yet."""
    with working.provider.held("put_document") as hold:
        task_id = begin(working)
        hold.wait_entered()
        yield task_id


def test_searches_are_refused_and_told_when_to_ask_again(working: Daemon, task_id: str) -> None:
    for answer in (working.search("quay"), working.ask("GET", "/v1/search", params={"q": "quay", "buckets": "inbox"})):
        details = details_of(answer, CODE)
        assert details["task_id"] == task_id
        assert int(answer.headers["Retry-After"]) == details["retry_after_seconds"] >= 1


def test_a_search_that_is_wrong_is_told_so_first(working: Daemon, task_id: str) -> None:
    details_of(working.search("quay", buckets=["none"]), "bucket_not_found")
    details_of(working.search(" "), "invalid_request")


def test_the_task_is_shown_to_every_key_of_the_team(working: Daemon, task_id: str) -> None:
    path = f"/v1/knowledge/tasks/{task_id}"
    limited = working.add_key(buckets=(working.make_bucket("mine"),))
    for key in (None, limited):
        task = working.show(path, key=key)
        assert TaskAnswer.model_validate(task, extra="forbid")
        assert (task["type"], task["status"], task["source_id"]) == ("store_rebuild", "running", None)
        assert task["progress"] == {"stage": "index", "chunks_done": 0, "chunks_total": 1}


def test_buckets_are_in_maintenance_and_keep_their_counts(working: Daemon, ready: str, task_id: str) -> None:
    bucket = working.show("/v1/buckets/inbox")
    assert (bucket["bucketStore"]["status"], bucket["bucketStore"]["indexed_member_count"]) == ("maintenance", 1)
    assert bucket["knowledgeIds"] == working.members() == [ready]


def test_a_source_keeps_its_state_and_names_what_withholds_its_readiness(
    working: Daemon, ready: str, task_id: str
) -> None:
    listed = working.show("/v1/buckets/inbox/sources")["sources"]
    for source in (working.source(ready), *listed):
        state = {name: source[name] for name in ("status", "bucket_sync_status", "ready", "ready_withheld_by")}
        assert state == {"status": "active", "bucket_sync_status": "active", "ready": False, "ready_withheld_by": CODE}


def test_a_failed_source_waits_for_nothing(working: Daemon, task_id: str) -> None:
    source_id = working.add_source(b"\x00\x01\x02", filename="a.bin")
    assert working.wait_status(source_id, "failed")["ready_withheld_by"] is None


def test_the_index_itself_says_pending_and_text_waits(working: Daemon, ready: str, task_id: str) -> None:
    verified = working.show(f"/v1/sources/{ready}", verify="provider")
    assert SourceVerified.model_validate(verified | {"request_id": ""}).provider.state == "STATE_PENDING"  # type: ignore[union-attr]
    assert details_of(working.ask("GET", f"/v1/sources/{ready}/text"), CODE)["task_id"] == task_id
    body_of(working.ask("PATCH", f"/v1/sources/{ready}", json={"title": "Moorings"}))


def test_after_the_end_all_is_as_before_and_the_revision_has_moved(working: Daemon, ready: str) -> None:
    before = working.show("/v1/buckets/inbox")
    wait_rebuilt(working, begin(working))
    after = working.show("/v1/buckets/inbox")
    assert after["revision"] == before["revision"] + 2
    assert after["bucketStore"] == before["bucketStore"]
    source = working.show(f"/v1/sources/{ready}", verify="provider")
    assert (source["ready"], source["ready_withheld_by"], source["provider"]["state"]) == (True, None, "STATE_ACTIVE")
    assert working.show(f"/v1/sources/{ready}/text")["text"]
    assert working.found("quay", buckets=["inbox"]) == [ready]


def test_asking_for_a_rebuild_again_finds_the_one_that_runs(working: Daemon, task_id: str) -> None:
    assert begin(working) == task_id


def test_a_search_that_a_rebuild_overtakes_is_refused(working: Daemon, ready: str) -> None:
    with working.provider.held("search") as searching, working.provider.held("put_document") as putting:
        asked = working.loop.begin(working.asking("POST", "/v1/search", json={"query": "quay"})())
        searching.wait_entered()
        begin(working)
        putting.wait_entered()
        searching.release()
        details_of(asked.result(PATIENCE_S), CODE)


def test_a_search_that_a_whole_rebuild_overtakes_asks_again(working: Daemon, ready: str) -> None:
    with working.provider.held("search") as hold:
        asked = working.loop.begin(working.asking("POST", "/v1/search", json={"query": "heron"})())
        hold.wait_entered()
        added = working.add_source(b"A heron stood on the quay.")
        wait_rebuilt(working, begin(working))
        working.wait_ready(added)
    assert [result["source_id"] for result in body_of(asked.result(PATIENCE_S))["data"]] == [added]


def test_a_batch_keeps_its_status_and_withholds_its_readiness(working: Daemon) -> None:
    manifest = {"version": 1, "items": [{"client_file_id": "a"}]}
    files = [{"client_file_id": "a", "filename": "a.md", "size_bytes": 5}]
    made = working.post("/v1/buckets/inbox/batches", 201, json={"manifest": manifest, "files": files})
    body_of(working.ask("PUT", made["items"][0]["upload_url"], content=b"quays"))
    working.post(f"/v1/buckets/inbox/batches/{made['batch_id']}/finalize")

    def show() -> dict[str, object]:
        path = f"/v1/knowledge/batches/{made['batch_id']}"
        return working.show(path, bucket="inbox", include_items="true")

    wait_until(lambda: show()["ready"], "the batch is ready", PATIENCE_S)
    with working.provider.held("put_document") as hold:
        begin(working)
        hold.wait_entered()
        told = BatchStatus.model_validate(show())
        assert (told.status, told.terminal, told.ready, told.ready_withheld_by) == ("completed", True, False, CODE)
        assert [item.ready for item in told.items or ()] == [False]
        again = working.post(f"/v1/buckets/inbox/batches/{made['batch_id']}/finalize")["replayed"]
        assert [(item["ready"], item["ready_withheld_by"]) for item in again] == [(False, CODE)]
    wait_until(lambda: show()["ready"], "the batch is ready again", PATIENCE_S)
    assert show()["ready_withheld_by"] is None
