"""Rebuilds in the state: one at a time for a team, what they withhold, and how their tasks go on."""

import sqlite3
from sqlite3 import Connection

import pytest

from svc_daemon.store import tasks
from svc_daemon.store.buckets import take_census, touch_buckets_of_team
from svc_daemon.store.memberships import claim_syncs, next_sync_due, schedule_syncs, withdraw_syncs
from svc_daemon.store.sources import find_source
from svc_daemon.store.tasks import TaskRow, find_last_rebuild, find_open_rebuild, is_in_maintenance
from svc_daemon.store.tombstones import create_detachment, list_detachments
from svc_daemon.wire.tasks import INDEXING, REBUILD
from tests.store.rows import LATER, NOW, OURS, THEIRS, add_bucket, add_source, add_task, plan, table


def add_rebuild(connection: Connection, name: str = "1", team_id: str = OURS) -> TaskRow:
    return add_task(connection, name, team_id, type=REBUILD)


def claim(connection: Connection, task: TaskRow) -> TaskRow:
    claimed = tasks.claim_again(connection, task.id, NOW, 30.0, "clear")
    assert claimed is not None
    return claimed


def end(connection: Connection, task: TaskRow) -> None:
    tasks.finish_task(connection, claim(connection, task), "succeeded", NOW)


def test_a_team_has_one_open_rebuild_at_a_time(connection: Connection) -> None:
    first = add_rebuild(connection)
    add_rebuild(connection, "theirs", THEIRS)
    with pytest.raises(sqlite3.IntegrityError):
        add_rebuild(connection, "2")
    end(connection, first)
    add_rebuild(connection, "2")
    opened, last = find_open_rebuild(connection, OURS), find_last_rebuild(connection, OURS)
    assert opened == last
    assert opened is not None and opened.id == "task_2"


def test_a_team_is_in_maintenance_until_its_rebuild_has_ended(connection: Connection) -> None:
    bucket = add_bucket(connection)
    add_source(connection, "a", bucket, sync="active", status="active")

    def told() -> tuple[bool, bool, bool, bool]:
        source = find_source(connection, OURS, "src_a")
        assert source is not None and source.is_complete
        census = take_census(connection, bucket.id)
        return is_in_maintenance(connection, OURS), source.in_maintenance, not source.ready, census.in_maintenance

    theirs = add_rebuild(connection, "theirs", THEIRS)
    assert told() == (False, False, False, False)
    ours = add_rebuild(connection)
    assert told() == (True, True, True, True)
    end(connection, ours)
    assert told() == (False, False, False, False)
    last = find_last_rebuild(connection, OURS)
    assert last is not None and (last.id, last.finished_at) == (ours.id, NOW)
    assert find_open_rebuild(connection, OURS) is None
    assert find_open_rebuild(connection, THEIRS) == theirs


def test_syncs_and_detachments_of_a_team_in_maintenance_wait(connection: Connection) -> None:
    for team_id in (OURS, THEIRS):
        source = add_source(connection, team_id, add_bucket(connection, team_id=team_id), team_id=team_id)
        schedule_syncs(connection, source.id, NOW if team_id == OURS else LATER)
        create_detachment(connection, team_id, source.id)
    rebuild = add_rebuild(connection)
    assert next_sync_due(connection) == LATER
    assert [sync.team_id for sync in claim_syncs(connection, LATER, 30.0, 10)] == [THEIRS]
    assert [noted.team_id for noted in list_detachments(connection, limit=10)] == [THEIRS]
    end(connection, rebuild)
    assert next_sync_due(connection) == NOW
    assert [sync.team_id for sync in claim_syncs(connection, LATER, 30.0, 10)] == [OURS]
    assert len(list_detachments(connection, limit=10)) == 2


def test_claimed_syncs_of_the_team_are_withdrawn_and_no_others(connection: Connection) -> None:
    for team_id in (OURS, THEIRS):
        bucket = add_bucket(connection, team_id=team_id)
        schedule_syncs(connection, add_source(connection, team_id, bucket, team_id=team_id).id, NOW)
        add_source(connection, f"{team_id}_2", bucket, sync="active", team_id=team_id)
    claim_syncs(connection, NOW, 30.0, 10)
    before = table(connection, "memberships")
    withdraw_syncs(connection, OURS, LATER)
    changed = [row for row in table(connection, "memberships") if row not in before]
    assert [(row["source_id"], row["sync_status"], row["due_at"], row["attempt"]) for row in changed] == [
        (f"src_{OURS}", "queued", LATER, 2)
    ]


def test_a_rebuild_goes_on_at_its_stage_and_counts_what_it_reads(connection: Connection) -> None:
    task = add_rebuild(connection)
    first = claim(connection, task)
    assert (first.stage, first.attempt) == ("clear", 1)
    tasks.update_progress(connection, first, "index", 3, 9)
    tasks.count_progress(connection, first)
    tasks.park_task(connection, first)
    second = claim(connection, task)
    assert (second.stage, second.attempt, second.chunks_done, second.chunks_total) == ("index", 1, 0, None)
    tasks.count_progress(connection, first)
    assert tasks.get_task(connection, OURS, task.id).chunks_done == 0


def test_an_endless_task_repeats_its_last_attempt(connection: Connection) -> None:
    task, attempts = add_rebuild(connection), []
    for _ in range(5):
        claimed = claim(connection, task)
        attempts.append(claimed.attempt)
        tasks.retry_task(connection, claimed, NOW, {"code": "c"}, is_endless=True)
    assert attempts == [1, 2, 3, 3, 3]


def test_running_tasks_are_listed_by_team_and_type(connection: Connection) -> None:
    for name, team_id in (("a", OURS), ("b", OURS), ("c", THEIRS)):
        claim(connection, add_task(connection, name, team_id))
    add_task(connection, "waiting")
    claim(connection, add_rebuild(connection))
    assert [task.id for task in tasks.list_running(connection, OURS, INDEXING)] == ["task_a", "task_b"]


def test_only_the_buckets_of_the_team_are_touched(connection: Connection) -> None:
    ours, theirs = add_bucket(connection), add_bucket(connection, team_id=THEIRS)
    touch_buckets_of_team(connection, OURS)
    revisions = {row["id"]: row["revision"] for row in table(connection, "buckets")}
    assert revisions == {ours.id: 2, theirs.id: 1}


def test_maintenance_is_looked_up_in_small_indexes(connection: Connection) -> None:
    looking = [
        plan(connection, lambda: find_open_rebuild(connection, OURS)),
        plan(connection, lambda: find_last_rebuild(connection, OURS)),
        plan(connection, lambda: is_in_maintenance(connection, OURS)),
        plan(connection, lambda: find_source(connection, OURS, "src_a")),
    ]
    assert all("tasks_rebuild" in each and "SCAN" not in each for each in looking), looking
    assert "memberships_due" in plan(connection, lambda: next_sync_due(connection))
