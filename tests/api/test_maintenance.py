"""Requests while an index is rebuilt, and while search is switched off."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.acceptance.installations import PATIENCE_S
from tests.api.answers import body_of, details_of
from tests.api.daemons import NOTES, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.sessions import batch_status, finalize_batch, open_batch, put
from tests.workers.rebuilds import begin, wait_rebuilt

CODE = "team_store_maintenance"


@pytest.fixture
def ready(working: Daemon) -> str:
    """A source that is ready before the rebuild begins."""
    return working.add_ready()


@pytest.fixture
def task_id(working: Daemon, ready: str) -> Iterator[str]:
    """The task of a rebuild that has removed the old index and not yet put the first document."""
    with working.provider.held("put_documents") as hold:
        task_id = begin(working)
        hold.wait_entered()
        yield task_id


@pytest.mark.rule("team_store_maintenance")
def test_searches_are_refused_with_a_retry_after_header(working: Daemon, task_id: str) -> None:
    for answer in (working.search("quay"), working.ask("GET", "/v1/search", params={"q": "quay", "buckets": "inbox"})):
        details = details_of(answer, CODE)
        assert details["task_id"] == task_id
        assert int(answer.headers["Retry-After"]) == details["retry_after_seconds"] >= 1
    details_of(working.search("quay", buckets=["none"]), "bucket_not_found")
    details_of(working.search(" "), "invalid_request")
    assert begin(working) == task_id


def test_rebuild_task_is_shown_to_every_key_of_the_team(working: Daemon, task_id: str) -> None:
    limited = working.add_key(buckets=(working.make_bucket("mine"),))
    for key in (None, limited):
        task = working.show(f"/v1/knowledge/tasks/{task_id}", key=key)
        assert (task["type"], task["status"], task["source_id"]) == ("store_rebuild", "running", None)
        assert task["progress"] == {"stage": "index", "chunks_done": 0, "chunks_total": 1}


def test_buckets_and_sources_keep_their_status_and_report_why_they_are_not_ready(
    working: Daemon, ready: str, task_id: str
) -> None:
    bucket = working.show("/v1/buckets/inbox")
    assert (bucket["bucketStore"]["status"], bucket["bucketStore"]["indexed_member_count"]) == ("maintenance", 1)
    assert bucket["knowledgeIds"] == working.members() == [ready]
    for source in (working.source(ready), *working.show("/v1/buckets/inbox/sources")["sources"]):
        state = {name: source[name] for name in ("status", "bucket_sync_status", "ready", "ready_withheld_by")}
        assert state == {"status": "active", "bucket_sync_status": "active", "ready": False, "ready_withheld_by": CODE}
    verified = working.show(f"/v1/sources/{ready}", verify="provider")
    assert verified["provider"]["state"] == "STATE_PENDING"
    assert details_of(working.ask("GET", f"/v1/sources/{ready}/text"), CODE)["task_id"] == task_id
    body_of(working.ask("PATCH", f"/v1/sources/{ready}", json={"title": "Moorings"}))
    failed = working.add_source(b"\x00\x01\x02", filename="a.bin")
    assert working.wait_status(failed, "failed")["ready_withheld_by"] is None


@pytest.mark.rule("team_store_maintenance")
def test_bucket_and_source_are_unchanged_after_a_rebuild_except_for_the_revision(working: Daemon, ready: str) -> None:
    before = working.show("/v1/buckets/inbox")
    wait_rebuilt(working, begin(working))
    after = working.show("/v1/buckets/inbox")
    assert after["revision"] == before["revision"] + 2
    assert after["bucketStore"] == before["bucketStore"]
    source = working.show(f"/v1/sources/{ready}", verify="provider")
    assert (source["ready"], source["ready_withheld_by"], source["provider"]["state"]) == (True, None, "STATE_ACTIVE")
    assert working.show(f"/v1/sources/{ready}/text")["text"]
    assert working.found("quay", buckets=["inbox"]) == [ready]


def test_running_search_is_refused_if_a_rebuild_begins(working: Daemon, ready: str) -> None:
    with working.provider.held("search") as searching, working.provider.held("put_documents") as putting:
        asked = working.loop.begin(working.asking("POST", "/v1/search", json={"query": "quay"})())
        searching.wait_entered()
        begin(working)
        putting.wait_entered()
        searching.release()
        details_of(asked.result(PATIENCE_S), CODE)


def test_search_is_retried_if_a_rebuild_finishes_while_it_runs(working: Daemon, ready: str) -> None:
    with working.provider.held("search") as hold:
        asked = working.loop.begin(working.asking("POST", "/v1/search", json={"query": "heron"})())
        hold.wait_entered()
        added = working.add_source(b"A heron stood on the quay.")
        wait_rebuilt(working, begin(working))
        working.wait_ready(added)
    assert [result["source_id"] for result in body_of(asked.result(PATIENCE_S))["data"]] == [added]


def test_completed_batch_keeps_its_status_but_is_not_ready_during_a_rebuild(working: Daemon) -> None:
    batch = open_batch(working, [("a", NOTES)])
    body_of(put(working, batch["by_id"]["a"], NOTES))
    finalize_batch(working, batch)
    show = partial(batch_status, working, batch, bucket="inbox", include_items="true")
    working.wait(lambda: show()["ready"], "the batch is ready")
    with working.provider.held("put_documents") as hold:
        begin(working)
        hold.wait_entered()
        withheld = {"status": "completed", "terminal": True, "ready": False, "ready_withheld_by": CODE}
        assert withheld.items() <= show().items()
        assert [item["ready"] for item in show()["items"]] == [False]
        again = finalize_batch(working, batch)["replayed"]
        assert [(item["ready"], item["ready_withheld_by"]) for item in again] == [(False, CODE)]
    working.wait(lambda: show()["ready"], "the batch is ready again")
    assert show()["ready_withheld_by"] is None


def switch(daemon: Daemon, method: str = "PUT", **body: Any) -> dict[str, Any]:
    operator = {"Authorization": f"Bearer {daemon.operator_token}"}
    answer = daemon.ask(method, "/admin/search", headers=operator, json=body)
    assert answer.status_code == 200, answer.text
    return {name: value for name, value in answer.json().items() if name != "request_id"}


@pytest.mark.rule("search_disabled")
def test_search_is_refused_while_switched_off_even_after_a_restart(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon()
    daemon.make_bucket()
    daemon.make_bucket("second")
    assert switch(daemon, "GET") == {"object": "search_switch", "enabled": True, "retry_after_seconds": None}
    off = switch(daemon, enabled=False, retry_after_seconds=90)
    assert off == switch(daemon, "GET") == {"object": "search_switch", "enabled": False, "retry_after_seconds": 90}
    for answer in (
        daemon.search("umber"),
        daemon.search("umber", buckets=["inbox"], agent="svc-agent"),
        daemon.search("umber", key=daemon.add_team()),
        daemon.ask("GET", "/v1/search", params={"q": "umber"}),
    ):
        assert details_of(answer, "search_disabled") == {"retry_after_seconds": 90}
        assert answer.headers["Retry-After"] == "90"
    assert daemon.ask("GET", "/v1/buckets").is_success
    switch(daemon, enabled=False, retry_after_seconds=5)
    daemon.close()
    daemon = make_daemon()
    assert details_of(daemon.search("umber"), "search_disabled") == {"retry_after_seconds": 5}
    assert switch(daemon, enabled=True)["enabled"]
    assert daemon.search("umber").is_success
