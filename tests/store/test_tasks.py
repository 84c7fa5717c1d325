"""Tasks: claims, leases and fencing; whoever lost its claim changes nothing."""

from collections.abc import Callable
from math import inf
from sqlite3 import Connection

import pytest

from svc_daemon.errors import NotFound
from svc_daemon.store.tasks import (
    TaskRow,
    cancel_tasks,
    claim_task,
    count_open,
    extend_lease,
    find_waiting,
    finish_task,
    get_task,
    is_held,
    list_expired,
    next_attempt_due,
    park_task,
    retry_task,
    update_progress,
)
from svc_daemon.wire.tasks import INDEXING
from tests.store.rows import LATER, NOW, OURS, THEIRS, add_task, plan, table

ERROR = {"code": "extraction_crashed", "message": "It died.", "retryable": True}
#: Every way in which a worker writes about the task that it holds.
WRITES: dict[str, Callable[[Connection, TaskRow], None]] = {
    "extend": lambda connection, task: extend_lease(connection, task, 99.0),
    "progress": lambda connection, task: update_progress(connection, task, "index", 7, 9),
    "succeed": lambda connection, task: finish_task(connection, task, "succeeded", LATER),
    "fail": lambda connection, task: finish_task(connection, task, "failed", LATER, ERROR),
    "retry": lambda connection, task: retry_task(connection, task, LATER, ERROR),
    "park": park_task,
}


def _release(connection: Connection, task: TaskRow) -> None:
    for expired in list_expired(connection, inf):
        retry_task(connection, expired, NOW, ERROR)


def _claim_again(connection: Connection, task: TaskRow) -> None:
    assert claim_task(connection, task.id, NOW, 20.0) is not None


def _park_and_claim(connection: Connection, task: TaskRow) -> None:
    park_task(connection, task)
    _claim_again(connection, task)


def _release_and_claim(connection: Connection, task: TaskRow) -> None:
    _release(connection, task)
    _claim_again(connection, task)


#: Every way in which a claim is lost.
LOSSES: dict[str, Callable[[Connection, TaskRow], None]] = {
    "succeeded": WRITES["succeed"],
    "failed": WRITES["fail"],
    "put back": WRITES["retry"],
    "parked": park_task,
    "canceled": lambda connection, _: cancel_tasks(connection, "src_1", LATER),
    "released": _release,
    "released and claimed": _release_and_claim,
    "parked and claimed": _park_and_claim,
}


def _claimed(connection: Connection) -> TaskRow:
    add_task(connection, "1", source_id="src_1")
    task = claim_task(connection, "task_1", NOW, 10.0)
    assert task is not None
    return task


def _stored(connection: Connection) -> TaskRow:
    return get_task(connection, OURS, "task_1")


def test_a_new_task_waits_without_an_attempt(connection: Connection) -> None:
    add_task(connection, "1", source_id="src_1")
    task = _stored(connection)
    assert (task.status, task.attempt, task.max_attempts, task.lease_until_s) == ("queued", 0, 3, None)
    assert (task.error, task.started_at, task.finished_at, task.next_attempt_at) == (None, None, None, None)


def test_a_claim_counts_the_attempt_and_takes_the_lease(connection: Connection) -> None:
    task = _claimed(connection)
    assert task == _stored(connection)
    assert (task.status, task.attempt, task.lease_until_s, task.started_at) == ("running", 1, 10.0, NOW)
    assert is_held(connection, task)


def test_one_of_two_claims_wins(connection: Connection) -> None:
    _claimed(connection)
    before = table(connection, "tasks")
    assert claim_task(connection, "task_1", LATER, 50.0) is None
    assert claim_task(connection, "task_none", LATER, 50.0) is None
    assert table(connection, "tasks") == before


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("write", WRITES)
def test_a_stale_claim_changes_nothing(connection: Connection, loss: str, write: str) -> None:
    stale = _claimed(connection)
    LOSSES[loss](connection, stale)
    before = table(connection, "tasks")
    WRITES[write](connection, stale)
    assert table(connection, "tasks") == before
    assert not is_held(connection, stale)


@pytest.mark.parametrize("write", WRITES)
def test_a_held_claim_writes_and_leaves_other_tasks_alone(connection: Connection, write: str) -> None:
    add_task(connection, "2", source_id="src_2")
    claim_task(connection, "task_2", NOW, 10.0)
    held = _claimed(connection)
    before = {row["id"]: row for row in table(connection, "tasks")}
    WRITES[write](connection, held)
    after = {row["id"]: row for row in table(connection, "tasks")}
    assert after["task_1"] != before["task_1"]
    assert after["task_2"] == before["task_2"]


def test_a_parked_task_lost_no_attempt_and_one_put_back_did(connection: Connection) -> None:
    park_task(connection, _claimed(connection))
    assert (_stored(connection).status, _stored(connection).attempt) == ("queued", 0)
    again = claim_task(connection, "task_1", NOW, 10.0)
    assert again is not None
    retry_task(connection, again, LATER, ERROR)
    stored = _stored(connection)
    assert (stored.status, stored.attempt, stored.next_attempt_at, stored.error) == ("queued", 1, LATER, ERROR)
    assert stored.lease_until_s is None


def test_no_two_claims_of_a_task_ever_have_one_token(connection: Connection) -> None:
    add_task(connection, "1", source_id="src_1")
    tokens = []
    for lose in (park_task, _release, park_task, park_task, WRITES["retry"]):
        task = claim_task(connection, "task_1", NOW, 10.0)
        assert task is not None
        tokens.append(task.token)
        lose(connection, task)
    assert len(set(tokens)) == len(tokens)


def test_a_success_clears_the_error_of_an_earlier_attempt(connection: Connection) -> None:
    retry_task(connection, _claimed(connection), NOW, ERROR)
    again = claim_task(connection, "task_1", NOW, 10.0)
    assert again is not None
    finish_task(connection, again, "succeeded", LATER)
    stored = _stored(connection)
    assert (stored.status, stored.error, stored.finished_at, stored.attempt) == ("succeeded", None, LATER, 2)


def test_the_oldest_task_whose_turn_has_come_is_found_for_its_team_and_type(connection: Connection) -> None:
    add_task(connection, "0", THEIRS)
    add_task(connection, "1", type="store_rebuild")
    for name in ("4", "2", "3"):
        add_task(connection, name)
    pausing = claim_task(connection, "task_2", NOW, 10.0)
    assert pausing is not None
    assert find_waiting(connection, OURS, INDEXING, NOW) == "task_3"
    retry_task(connection, pausing, LATER, ERROR)
    assert find_waiting(connection, OURS, INDEXING, NOW) == "task_3"
    assert find_waiting(connection, OURS, INDEXING, LATER) == "task_2"
    assert find_waiting(connection, "team_none", INDEXING, LATER) is None


def test_leases_run_out_at_their_time(connection: Connection) -> None:
    task = _claimed(connection)
    assert list_expired(connection, 9.9) == []
    assert [expired.id for expired in list_expired(connection, 10.0)] == ["task_1"]
    extend_lease(connection, task, 20.0)
    assert list_expired(connection, 19.0) == []
    assert [expired.id for expired in list_expired(connection, inf)] == ["task_1"]
    finish_task(connection, task, "succeeded", LATER)
    assert list_expired(connection, inf) == []


def test_the_earliest_pause_is_told(connection: Connection) -> None:
    assert next_attempt_due(connection, INDEXING) is None
    for name, due_at in (("1", LATER), ("2", NOW)):
        add_task(connection, name, source_id=f"src_{name}")
        task = claim_task(connection, f"task_{name}", NOW, 10.0)
        assert task is not None
        retry_task(connection, task, due_at, ERROR)
    assert next_attempt_due(connection, INDEXING) == NOW
    cancel_tasks(connection, "src_2", NOW)
    assert next_attempt_due(connection, INDEXING) == LATER


def test_open_tasks_are_counted_by_status(connection: Connection) -> None:
    assert count_open(connection) == {"queued": 0, "running": 0}
    for name in ("2", "3", "4"):
        add_task(connection, name, THEIRS)
    task = _claimed(connection)
    assert count_open(connection) == {"queued": 3, "running": 1}
    finish_task(connection, task, "failed", NOW, ERROR)
    assert count_open(connection) == {"queued": 3, "running": 0}


def test_canceling_ends_the_open_tasks_of_that_source_only(connection: Connection) -> None:
    add_task(connection, "2", source_id="src_2")
    add_task(connection, "3", source_id="src_1")
    finish_task(connection, _claimed(connection), "succeeded", NOW)
    cancel_tasks(connection, "src_1", LATER)
    statuses = {row["id"]: (row["status"], row["finished_at"]) for row in table(connection, "tasks")}
    assert statuses == {"task_1": ("succeeded", NOW), "task_2": ("queued", None), "task_3": ("canceled", LATER)}


def test_another_teams_task_does_not_exist(connection: Connection) -> None:
    add_task(connection, "1")
    for team_id, task_id in ((THEIRS, "task_1"), (OURS, "task_2")):
        with pytest.raises(NotFound) as missing:
            get_task(connection, team_id, task_id)
        assert missing.value.code == "task_not_found"


def test_the_queue_is_read_through_its_index(connection: Connection) -> None:
    steps = plan(connection, lambda: find_waiting(connection, OURS, INDEXING, NOW))
    assert "tasks_open (team_id=? AND status=?)" in steps
    assert "TEMP B-TREE" not in steps
