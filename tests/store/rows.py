"""Makes rows for tests: keys, buckets, sources, tasks and memberships. Tests give only the fields that matter."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from svc_daemon.databases.contract import Connection
from svc_daemon.store.rows.buckets import BucketRow, create_bucket
from svc_daemon.store.rows.keys import KeyRow, create_key
from svc_daemon.store.rows.sources.memberships import SyncClaim, create_memberships
from svc_daemon.store.rows.sources.sources import SourceRow, create_sources
from svc_daemon.store.rows.tasks import TaskRow, create_tasks
from svc_daemon.store.rows.teams import create_team
from svc_daemon.wire.tasks import INDEXING

NOW = "2026-01-01T12:00:00.000Z"
LATER = "2026-01-01T12:00:30.000Z"
OURS, THEIRS = "team_ours", "team_theirs"


def add_teams(db: Connection) -> None:
    """Create two teams, each with a key that has the team's name."""
    for team_id in (OURS, THEIRS):
        create_team(db, team_id, team_id, NOW)
        create_key(db, make_key(team_id))


def make_key(team_id: str = OURS, **given: Any) -> KeyRow:
    key = KeyRow(id=f"key_{team_id}", team_id=team_id, name="k", secret_hash="h", capabilities=("c",), created_at=NOW)
    return replace(key, **given)


def make_bucket(slug: str = "docs", team_id: str = OURS, **given: Any) -> BucketRow:
    fields: dict[str, Any] = {"id": f"bkt_{team_id}_{slug}", "name": slug, "metadata": {}}
    return BucketRow(team_id=team_id, slug=slug, **{**fields, "created_at": NOW, "updated_at": NOW, **given})


def add_bucket(db: Connection, slug: str = "docs", team_id: str = OURS, **given: Any) -> BucketRow:
    bucket = make_bucket(slug, team_id, **given)
    assert create_bucket(db, bucket)
    return bucket


def make_source(name: str, team_id: str = OURS, **given: Any) -> SourceRow:
    fields: dict[str, Any] = {"title": f"title of {name}", "filename": f"{name}.txt", "content_type": "text/plain"}
    fields |= {"size_bytes": 3, "sha256": "0" * 64, "created_at": NOW, "updated_at": NOW, **given}
    return SourceRow(id=f"src_{name}", team_id=team_id, **fields)


def add_source(db: Connection, name: str, *buckets: BucketRow, sync: str = "queued", **given: Any) -> SourceRow:
    """Create a source in these buckets. Each membership has the sync status `sync`."""
    source = make_source(name, **given)
    create_sources(db, [source])
    for bucket in buckets:
        create_memberships(db, [SyncClaim(source_id=source.id, bucket_id=bucket.id, team_id=source.team_id)], NOW)
        set_sync(db, sync, source.id, bucket.id)
    return source


def set_sync(db: Connection, sync: str, source_id: str, bucket_id: str) -> None:
    update = "UPDATE memberships SET sync_status = :sync WHERE source_id = :source_id AND bucket_id = :bucket_id"
    db.execute(update, {"sync": sync, "source_id": source_id, "bucket_id": bucket_id})


def add_task(db: Connection, name: str, team_id: str = OURS, **given: Any) -> TaskRow:
    task = TaskRow(id=f"task_{name}", team_id=team_id, type=INDEXING, source_id=None, max_attempts=3, created_at=NOW)
    create_tasks(db, [replace(task, **given)])
    return replace(task, **given)


def table(db: Connection, name: str) -> list[dict[str, Any]]:
    return [dict(row) for row in db.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()]


@contextmanager
def undone(db: Connection) -> Iterator[None]:
    """Undo all changes made in the block, so that the next case starts from the same rows."""
    db.execute("SAVEPOINT entry")
    try:
        yield
    finally:
        db.execute("ROLLBACK TO entry")
        db.execute("RELEASE entry")


def plan(db: Connection, query: Callable[[], object]) -> str:
    """Return SQLite's plan of the statements that `query` sends, one line for each step."""
    assert isinstance(db, sqlite3.Connection)
    statements: list[str] = []
    db.set_trace_callback(statements.append)
    query()
    db.set_trace_callback(None)
    steps = [db.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall() for statement in statements]
    return "\n".join(row["detail"] for rows in steps for row in rows)
