"""Rebuilds in the state: one at a time for a team, what they withhold, and how their tasks go on."""

import sqlite3
from sqlite3 import Connection

import pytest

from svc_daemon.store import tasks
from svc_daemon.store.buckets import take_census
from svc_daemon.store.memberships import claim_syncs, next_sync_due, schedule_syncs, withdraw_syncs
from svc_daemon.store.sources import find_source
from svc_daemon.store.tasks import TaskRow, find_last_rebuild, find_open_rebuild, is_in_maintenance
from svc_daemon.store.tombstones import create_detachment, list_detachments
from svc_daemon.wire.tasks import INDEXING, REBUILD
from tests.store.rows import LATER, NOW, OURS, THEIRS, add_bucket, add_source, add_task, table


def add_rebuild(db: Connection, name: str = "1", team_id: str = OURS) -> TaskRow:
    return add_task(db, name, team_id, type=REBUILD)


def claim(db: Connection, task: TaskRow) -> TaskRow:
    claimed = tasks.claim_again(db, task.id, NOW, 30.0, "clear")
    assert claimed is not None
    return claimed


def end(db: Connection, task: TaskRow) -> None:
    tasks.finish_task(db, claim(db, task), "succeeded", NOW)


def test_a_team_has_one_open_rebuild_and_is_in_maintenance_until_it_has_ended(db: Connection) -> None:
    bucket = add_bucket(db)
    add_source(db, "a", bucket, sync="active", status="active")

    def shown() -> tuple[bool, bool, bool, bool]:
        source = find_source(db, OURS, "src_a")
        assert source is not None and source.is_complete
        census = take_census(db, bucket.id)
        return is_in_maintenance(db, OURS), source.in_maintenance, not source.ready, census.in_maintenance

    theirs = add_rebuild(db, "theirs", THEIRS)
    assert shown() == (False, False, False, False)
    ours = add_rebuild(db)
    with pytest.raises(sqlite3.IntegrityError):
        add_rebuild(db, "2")
    assert shown() == (True, True, True, True)
    end(db, ours)
    assert shown() == (False, False, False, False)
    last = find_last_rebuild(db, OURS)
    assert last is not None and (last.id, last.finished_at) == (ours.id, NOW)
    assert (find_open_rebuild(db, OURS), find_open_rebuild(db, THEIRS)) == (None, theirs)
    next_one = add_rebuild(db, "2")
    assert find_open_rebuild(db, OURS) == find_last_rebuild(db, OURS) == next_one


def test_syncs_and_detachments_of_a_team_in_maintenance_wait(db: Connection) -> None:
    for team_id, due_at in ((OURS, NOW), (THEIRS, LATER)):
        source = add_source(db, team_id, add_bucket(db, team_id=team_id), team_id=team_id)
        schedule_syncs(db, source.id, due_at)
        create_detachment(db, team_id, source.id)
    rebuild = add_rebuild(db)
    assert next_sync_due(db) == LATER
    assert [sync.team_id for sync in claim_syncs(db, LATER, 30.0, 10)] == [THEIRS]
    assert [noted.team_id for noted in list_detachments(db, limit=10)] == [THEIRS]
    end(db, rebuild)
    assert next_sync_due(db) == NOW
    assert [sync.team_id for sync in claim_syncs(db, LATER, 30.0, 10)] == [OURS]
    assert len(list_detachments(db, limit=10)) == 2


def test_claimed_syncs_of_the_team_are_withdrawn_and_no_others(db: Connection) -> None:
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


def test_a_rebuild_goes_on_at_its_stage_and_counts_what_it_reads(db: Connection) -> None:
    task = add_rebuild(db)
    first = claim(db, task)
    assert (first.stage, first.attempt) == ("clear", 1)
    tasks.update_progress(db, first, "index", 3, 9)
    tasks.count_progress(db, first)
    tasks.park_task(db, first)
    second = claim(db, task)
    assert (second.stage, second.attempt, second.chunks_done, second.chunks_total) == ("index", 1, 0, None)
    tasks.count_progress(db, first)
    assert tasks.get_task(db, OURS, task.id).chunks_done == 0


def test_an_endless_task_repeats_its_last_attempt(db: Connection) -> None:
    task, attempts = add_rebuild(db), []
    for _ in range(5):
        claimed = claim(db, task)
        attempts.append(claimed.attempt)
        tasks.retry_task(db, claimed, NOW, {"code": "c"}, is_endless=True)
    assert attempts == [1, 2, 3, 3, 3]


def test_running_tasks_are_listed_by_team_and_type(db: Connection) -> None:
    for name, team_id in (("a", OURS), ("b", OURS), ("c", THEIRS)):
        claim(db, add_task(db, name, team_id))
    add_task(db, "waiting")
    claim(db, add_rebuild(db))
    assert [task.id for task in tasks.list_running(db, OURS, INDEXING)] == ["task_a", "task_b"]
