"""Migrations: each once, each whole, never downwards, and a copy before one that is pending."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from sqlite3 import Connection

import pytest
import sqlite_utils
from sqlite_utils import Migrations

from svc_daemon.core.agents import EVERYTHING
from svc_daemon.core.model_ids import DEFAULT_AGENT
from svc_daemon.database import open_connection
from svc_daemon.errors import StorageError
from svc_daemon.store import migrations, schemas
from svc_daemon.store.agents import find_agent
from svc_daemon.store.migrations import migrate, names
from svc_daemon.store.teams import create_team


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def fresh(path: Path) -> Iterator[Connection]:
    opened = open_connection(path)
    yield opened
    opened.close()


def _schema(connection: Connection) -> list[str]:
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()
    return [row[0] for row in rows]


def _applied(connection: Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT name FROM _sqlite_migrations ORDER BY rowid").fetchall()]


def _copies(path: Path) -> list[str]:
    return sorted(copy.name for copy in path.parent.iterdir() if ".before-" in copy.name)


@pytest.fixture
def next_release(monkeypatch: pytest.MonkeyPatch) -> Migrations:
    """The same migrations, to which a test adds those of the next release."""
    following = Migrations("state")
    for migration in migrations.state.pending(sqlite_utils.Database(memory=True)):
        following(name=migration.name)(migration.fn)
    monkeypatch.setattr(migrations, "state", following)
    return following


def test_a_fresh_file_gets_every_migration_in_order_and_no_copy(fresh: Connection, path: Path) -> None:
    migrate(fresh)
    assert _applied(fresh) == names()
    assert names()[0].startswith("m001_")
    assert names() == sorted(names())
    assert _copies(path) == []


def test_a_second_run_changes_nothing(fresh: Connection, path: Path) -> None:
    migrate(fresh)
    before, changes = _schema(fresh), fresh.total_changes
    migrate(fresh)
    assert (_schema(fresh), fresh.total_changes) == (before, changes)
    assert _copies(path) == []


def test_a_newer_database_is_refused_and_stays_as_it_is(fresh: Connection, path: Path) -> None:
    migrate(fresh)
    fresh.execute(
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('state', 'm999_tomorrow', 'x')"
    )
    before, changes = _schema(fresh), fresh.total_changes
    with pytest.raises(StorageError, match="m999_tomorrow"):
        migrate(fresh)
    assert (_schema(fresh), fresh.total_changes) == (before, changes)
    assert _copies(path) == []


def test_another_sets_migrations_are_not_taken_for_newer_ones(fresh: Connection) -> None:
    migrate(fresh)
    fresh.execute("INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('other', 'm999', 'x')")
    migrate(fresh)


def test_the_file_is_copied_before_a_pending_migration(fresh: Connection, path: Path, next_release: Migrations) -> None:
    migrate(fresh)
    fresh.execute("INSERT INTO teams (id, name, created_at) VALUES ('team_1', 'one', 'now')")

    @next_release()
    def m999_colours(db: sqlite_utils.Database) -> None:
        db.execute("ALTER TABLE teams ADD COLUMN colour TEXT")
        db.execute("DELETE FROM teams")

    migrate(fresh)
    assert _applied(fresh)[-1] == "m999_colours"
    assert fresh.execute("SELECT colour FROM teams").fetchall() == []
    assert _copies(path) == ["state.db.before-m999_colours"]
    with sqlite3.connect(path.with_name("state.db.before-m999_colours")) as copy:
        assert copy.execute("SELECT * FROM teams").fetchall() == [("team_1", "one", "now")]
        assert copy.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert "m999_colours" not in _applied(copy)
    copy.close()


def test_a_migration_that_fails_leaves_no_trace_and_stays_pending(
    fresh: Connection, path: Path, next_release: Migrations
) -> None:
    migrate(fresh)
    before = _schema(fresh)
    attempts: list[int] = []

    @next_release()
    def m999_colours(db: sqlite_utils.Database) -> None:
        attempts.append(1)
        db.execute("ALTER TABLE teams ADD COLUMN colour TEXT")
        if len(attempts) == 1:
            raise LookupError("no colours today")

    with pytest.raises(LookupError):
        migrate(fresh)
    assert (_schema(fresh), _applied(fresh)) == (before, names()[:-1])
    assert not fresh.in_transaction
    migrate(fresh)
    assert _applied(fresh) == names()
    assert _copies(path) == ["state.db.before-m999_colours"]


def test_the_first_migration_is_whole_or_not_at_all(fresh: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(schemas, "FIRST", schemas.FIRST + ";\n\nCREATE TABLE facts (again TEXT)")
        with pytest.raises(sqlite3.OperationalError, match="facts"):
            migrate(fresh)
    assert not any("CREATE TABLE facts" in statement for statement in _schema(fresh))
    migrate(fresh)
    assert _applied(fresh) == names()


def test_a_team_that_is_there_gets_the_default_agent_of_a_new_one(fresh: Connection) -> None:
    db = sqlite_utils.Database(fresh)
    migrations.state.apply(db, stop_before="m006_agents")
    fresh.execute("INSERT INTO teams (id, name, created_at) VALUES ('team_old', 'old', 'then')")
    migrate(fresh)
    create_team(fresh, "team_new", "new", "then")
    old, new = (find_agent(fresh, team_id, DEFAULT_AGENT) for team_id in ("team_old", "team_new"))
    assert old is not None
    assert new is not None
    assert replace(old, team_id="team_new") == new
    assert (old.policy, old.policy_fault) == (EVERYTHING, None)
