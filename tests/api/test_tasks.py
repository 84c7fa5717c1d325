"""Tasks over the API: showing a task, and who may see it."""

import re
from typing import Any

import pytest

from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon


@pytest.mark.rule("source.task", "indexing.queued", "status.task")
def test_new_task_is_shown_as_queued(shared: Daemon) -> None:
    source_id = shared.add_source()
    task = shared.task(source_id)
    assert re.fullmatch(r"task_[0-9a-z]{26}", task["id"])
    expected: dict[str, Any] = {"object": "task", "type": "provider_file_search_indexing", "status": "queued"}
    expected |= {"source_id": source_id, "attempt": 0, "max_attempts": 3, "error": None}
    expected |= {"progress": {"stage": None, "chunks_done": 0, "chunks_total": None}}
    expected |= dict.fromkeys(("next_attempt_at", "started_at", "finished_at"))
    assert {name: task[name] for name in expected} == expected


@pytest.mark.parametrize("task_id", ["task_missing", "src_x", "a%0A", "%00", "x" * 2000])
def test_unknown_task_id_is_not_found(shared: Daemon, task_id: str) -> None:
    assert details_of(shared.ask("GET", f"/v1/knowledge/tasks/{task_id}"), "task_not_found") == {}


def test_task_of_another_team_or_outside_the_keys_buckets_is_not_found(shared: Daemon) -> None:
    source_id = shared.add_source()
    path = f"/v1/knowledge/tasks/{shared.source(source_id)['task']['id']}"
    limited = shared.add_key(buckets=(shared.make_bucket("mine"),))
    for key in (shared.add_team(), limited):
        details_of(shared.ask("GET", path, key=key), "task_not_found")
    shared.post("/v1/buckets/mine/sources", json={"source_id": source_id})
    shared.show(path, key=limited)
    body_of(shared.ask("DELETE", f"/v1/sources/{source_id}"))
    assert shared.show(path)["status"] == "canceled"
    details_of(shared.ask("GET", path, key=limited), "task_not_found")
