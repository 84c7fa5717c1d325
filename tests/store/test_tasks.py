"""Tests tasks: claims, leases and fencing, and that a worker that lost its claim changes nothing."""

from collections.abc import Callable
from math import inf

from svc_daemon.databases.contract import Connection
from svc_daemon.store import tasks
from svc_daemon.store.tasks import TaskRow, claim_task, finish_task, list_expired, park_task, retry_task
from svc_daemon.wire.tasks import INDEXING
from tests.store.rows import LATER, NOW, add_task, table, undone

ERROR = {"code": "extraction_crashed", "message": "It died.", "retryable": True}
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


def test_a_stale_claim_changes_nothing(db: Connection) -> None:
    stale = _claimed(db)
    for loss, steps in LOSSES.items():
        for write, change in WRITES.items():
            with undone(db):
                for step in steps:
                    step(db, stale)
                before = table(db, "tasks")
                change(db, stale)
                assert (table(db, "tasks"), tasks.is_held(db, stale)) == (before, False), (loss, write)


def test_a_held_claim_changes_only_its_own_task(db: Connection) -> None:
    add_task(db, "2", source_id="src_2")
    _claim(db, "2")
    held = _claimed(db)
    first, second = table(db, "tasks")
    for write, change in WRITES.items():
        with undone(db):
            change(db, held)
            after = table(db, "tasks")
            assert (after[0] != first, after[1]) == (True, second), write


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
