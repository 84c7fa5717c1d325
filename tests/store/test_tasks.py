"""Tests tasks: claims, leases and fencing, and what waits during a rebuild."""

from collections.abc import Callable
from math import inf

import pytest

from svc_daemon.databases.contract import Connection
from svc_daemon.store.rows import tasks
from svc_daemon.store.rows.sources.detachments import create_detachment, list_detachments
from svc_daemon.store.rows.sources.memberships import claim_syncs, next_sync_due, schedule_syncs, withdraw_syncs
from svc_daemon.store.rows.tasks import TaskRow, claim_task, finish_task, list_expired, park_task, retry_task
from svc_daemon.wire.sources import SourceError
from svc_daemon.wire.tasks import INDEXING, REBUILD
from tests.store.rows import LATER, NOW, OURS, THEIRS, add_bucket, add_source, add_task, table

ERROR = SourceError(code="extraction_crashed", message="It died.", retryable=True)
Change = Callable[[Connection, TaskRow], None]
#: All ways in which a worker writes a task that it holds.
WRITES: dict[str, Change] = {
    "extend": lambda db, task: tasks.extend_lease(db, task, 99.0),
    "progress": lambda db, task: tasks.update_progress(db, task, "index", 7, 9),
    "succeed": lambda db, task: finish_task(db, task, "succeeded", LATER),
    "fail": lambda db, task: finish_task(db, task, "failed", LATER, ERROR),
    "retry": lambda db, task: retry_task(db, task, LATER, ERROR),
    "park": park_task,
}


def _release(db: Connection, _: TaskRow) -> None:
    for expired in list_expired(db, inf):
        retry_task(db, expired, NOW, ERROR)


def _claim_again(db: Connection, _: TaskRow) -> None:
    assert claim_task(db, "task_1", NOW, 20.0) is not None


#: All ways in which a claim is lost.
LOSSES: dict[str, list[Change]] = {
    "succeeded": [WRITES["succeed"]],
    "failed": [WRITES["fail"]],
    "put back": [WRITES["retry"]],
    "parked": [park_task],
    "canceled": [lambda db, _: tasks.cancel_tasks(db, "src_1", LATER)],
    "released": [_release],
    "released and claimed": [_release, _claim_again],
    "parked and claimed": [park_task, _claim_again],
}


def _claim(db: Connection, name: str = "1") -> TaskRow:
    task = claim_task(db, f"task_{name}", NOW, 10.0)
    assert task is not None
    return task


def _claimed(db: Connection) -> TaskRow:
    add_task(db, "1", source_id="src_1")
    return _claim(db)


def test_a_claimed_task_can_not_be_claimed_again(db: Connection) -> None:
    task = _claimed(db)
    for task_id in ("task_1", "task_none"):
        assert claim_task(db, task_id, LATER, 50.0) is None
    assert tasks.is_held(db, task)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_stale_claim_changes_nothing(db: Connection, loss: str, write: str) -> None:
    stale = _claimed(db)
    for step in LOSSES[loss]:
        step(db, stale)
    before = table(db, "tasks")
    WRITES[write](db, stale)
    assert table(db, "tasks") == before
    assert not tasks.is_held(db, stale)


@pytest.mark.parametrize("write", WRITES)
def test_a_held_claim_changes_only_its_own_task(db: Connection, write: str) -> None:
    add_task(db, "2", source_id="src_2")
    _claim(db, "2")
    held = _claimed(db)
    first, second = table(db, "tasks")
    WRITES[write](db, held)
    changed, other = table(db, "tasks")
    assert changed != first
    assert other == second


def test_each_claim_of_a_task_has_another_token(db: Connection) -> None:
    add_task(db, "1", source_id="src_1")
    tokens = []
    for lose in (park_task, _release, park_task, park_task, WRITES["retry"]):
        task = _claim(db)
        tokens.append(task.token)
        lose(db, task)
    assert len(set(tokens)) == len(tokens)


def test_the_earliest_pause_is_found(db: Connection) -> None:
    assert tasks.next_attempt_due(db, INDEXING) is None
    for name, due_at in (("1", LATER), ("2", NOW)):
        add_task(db, name, source_id=f"src_{name}")
        retry_task(db, _claim(db, name), due_at, ERROR)
    assert (tasks.next_attempt_due(db, INDEXING), tasks.next_attempt_due(db, INDEXING, NOW)) == (NOW, LATER)
    tasks.cancel_tasks(db, "src_2", NOW)
    assert tasks.next_attempt_due(db, INDEXING) == LATER


def test_canceling_ends_only_the_open_tasks_of_the_source(db: Connection) -> None:
    add_task(db, "2", source_id="src_2")
    add_task(db, "3", source_id="src_1")
    finish_task(db, _claimed(db), "succeeded", NOW)
    tasks.cancel_tasks(db, "src_1", LATER)
    statuses = {row["id"]: (row["status"], row["finished_at"]) for row in table(db, "tasks")}
    assert statuses == {"task_1": ("succeeded", NOW), "task_2": ("queued", None), "task_3": ("canceled", LATER)}


def claim(db: Connection, task: TaskRow) -> TaskRow:
    claimed = tasks.claim_again(db, task.id, NOW, 30.0, "clear")
    assert claimed is not None
    return claimed


def test_syncs_and_detachments_of_a_team_in_maintenance_wait(db: Connection) -> None:
    for team_id, due_at in ((OURS, NOW), (THEIRS, LATER)):
        source = add_source(db, team_id, add_bucket(db, team_id=team_id), team_id=team_id)
        schedule_syncs(db, source.id, due_at)
        create_detachment(db, team_id, source.id)
    rebuild = add_task(db, "1", type=REBUILD)
    assert (next_sync_due(db), [sync.team_id for sync in claim_syncs(db, LATER, 30.0, 10)]) == (LATER, [THEIRS])
    assert [noted.team_id for noted in list_detachments(db, now_s=0, limit=10)] == [THEIRS]
    tasks.finish_task(db, claim(db, rebuild), "succeeded", NOW)
    assert (next_sync_due(db), [sync.team_id for sync in claim_syncs(db, LATER, 30.0, 10)]) == (NOW, [OURS])
    assert len(list_detachments(db, now_s=0, limit=10)) == 2


def test_only_claimed_syncs_of_the_team_are_withdrawn(db: Connection) -> None:
    for team_id in (OURS, THEIRS):
        bucket = add_bucket(db, team_id=team_id)
        schedule_syncs(db, add_source(db, team_id, bucket, team_id=team_id).id, NOW)
        add_source(db, f"{team_id}_2", bucket, sync="active", team_id=team_id)
    claim_syncs(db, NOW, 30.0, 10)
    before = table(db, "memberships")
    withdraw_syncs(db, OURS, LATER)
    (changed,) = [row for row in table(db, "memberships") if row not in before]
    expected = {"source_id": f"src_{OURS}", "sync_status": "queued", "due_at": LATER, "attempt": 2}
    assert {name: changed[name] for name in expected} == expected


def test_running_tasks_are_listed_by_team_and_type(db: Connection) -> None:
    for name, team_id in (("a", OURS), ("b", OURS), ("c", THEIRS)):
        claim(db, add_task(db, name, team_id))
    add_task(db, "waiting")
    claim(db, add_task(db, "1", type=REBUILD))
    assert [task.id for task in tasks.list_running(db, OURS, INDEXING)] == ["task_a", "task_b"]


@pytest.mark.parametrize(("lane", "order"), [("suspect", ["3", "2", "1"]), ("prompt", ["1", "2", "3"])])
def test_suspects_that_were_read_when_fewer_nodes_died_come_first(db: Connection, lane: str, order: list[str]) -> None:
    for name, deaths in (("1", 4), ("2", 1), ("3", 0)):
        add_task(db, name, lane=lane, deaths=deaths)
    queue = tasks.TaskQueue(type=INDEXING, lane=lane, team_id=OURS)
    assert [task_id for task_id, _ in tasks.list_waiting(db, queue, NOW, 9)] == [f"task_{name}" for name in order]
