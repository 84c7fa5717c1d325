"""Tests the rows of rebuilds: which tasks and syncs wait meanwhile, and which are withdrawn."""

from svc_daemon.databases.contract import Connection
from svc_daemon.store import tasks
from svc_daemon.store.memberships import claim_syncs, next_sync_due, schedule_syncs, withdraw_syncs
from svc_daemon.store.tasks import TaskRow
from svc_daemon.store.tombstones import create_detachment, list_detachments
from svc_daemon.wire.tasks import INDEXING, REBUILD
from tests.store.rows import LATER, NOW, OURS, THEIRS, add_bucket, add_source, add_task, table


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
