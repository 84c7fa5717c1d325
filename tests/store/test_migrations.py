"""Tests migrations: each runs once or not at all, never backwards, and the database is copied before it."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection

import pytest
from pytest import MonkeyPatch

from svc_daemon.core.ids import DEFAULT_AGENT
from svc_daemon.core.search.agents import EVERYTHING
from svc_daemon.databases.sqlite import open_connection
from svc_daemon.errors import StorageError
from svc_daemon.store import migrations
from svc_daemon.store.migrations import FORMER, MIGRATIONS, check_current, migrate
from svc_daemon.store.rows.agents import find_agent
from svc_daemon.store.rows.keys import list_keys
from svc_daemon.store.rows.sources import get_source
from svc_daemon.store.rows.teams import create_team, find_fact, find_team

pytestmark = pytest.mark.sqlite

#: The state database that the seven former migrations made, with three sources in a bucket, and two teams.
SEVEN = (Path(__file__).parent / "seven_migrations.sql").read_text(encoding="utf-8")
INSERT = "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('{}', 'm999', 'x')"


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Connection]:
    with closing(open_connection(tmp_path / "state.db")) as opened:
        yield opened


@pytest.fixture
def former(tmp_path: Path) -> Iterator[Connection]:
    (tmp_path / "former").mkdir()
    with closing(open_connection(tmp_path / "former" / "state.db")) as opened:
        opened.execute("PRAGMA foreign_keys = OFF")
        opened.executescript(SEVEN)
        opened.execute("PRAGMA foreign_keys = ON")
        yield opened


def _dump(db: Connection) -> tuple[list[str], int]:
    """Return the whole content of the database, and the number of changes made through this connection."""
    return list(db.iterdump()), db.total_changes


def _schema(db: Connection) -> dict[str, object]:
    """Return each table's columns and foreign keys, and each index's and view's statement."""
    shape: dict[str, object] = {}
    for kind, name, sql in db.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
        pragmas = ("table_xinfo", "foreign_key_list", "index_list")
        rows = [tuple(row) for pragma in pragmas for row in db.execute(f"PRAGMA {pragma}({name})").fetchall()]
        checks = sorted(part for part in (sql or "").split("\n") if "CHECK" in part or "WITHOUT ROWID" in part)
        shape[name] = (kind, rows, len(checks)) if kind == "table" else (kind, sql)
    return shape


def _applied(db: Connection) -> list[str]:
    return [row[0] for row in db.execute("SELECT name FROM _sqlite_migrations ORDER BY rowid").fetchall()]


def _copies(db: Connection) -> list[str]:
    path = Path(db.execute("PRAGMA database_list").fetchone()["file"])
    return [copy.name for copy in path.parent.iterdir() if ".before-" in copy.name]


def test_a_new_database_gets_the_schema_of_all_migrations_and_is_not_copied(
    fresh: Connection, former: Connection
) -> None:
    migrate(fresh)
    migrate(former)
    assert _applied(fresh) == _applied(former) == [*FORMER, *MIGRATIONS]
    assert (_schema(fresh), _copies(fresh)) == (_schema(former), [])


def test_a_database_of_the_seven_former_migrations_keeps_all_rows(former: Connection) -> None:
    def rows() -> dict[str, list[dict[str, object]]]:
        names = [row["name"] for row in former.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        kept = [name for name in names if name != "_sqlite_migrations"]
        return {name: [dict(row) for row in former.execute(f"SELECT * FROM {name}")] for name in kept}

    before = rows()
    migrate(former)
    check_current(former)
    after = rows()
    assert after.pop("bucket_changes") == []
    assert after.pop("events") == after.pop("vector_offers") == []
    assert {source.pop("batch_id") for source in after["sources"]} == {None}
    assert [batch.pop("ended_at") for batch in after["batches"]] == [each["created_at"] for each in before["batches"]]
    assert {(task.pop("lane"), task.pop("trace")) for task in after["tasks"]} == {("single", None)}
    assert (after, _copies(former)) == (before, [f"state.db.before-{list(MIGRATIONS)[-1]}"])
    team = find_team(former, "acme")
    assert team is not None and find_fact(former, "installation_id") is not None
    assert [key.name for key in list_keys(former, team.id)] == ["admin"]
    source = get_source(former, team.id, "src_01m82fqeskgndfqy18df5j9yc0")
    assert (source.status, source.ready, source.qa is not None) == ("active", True, True)
    agent = find_agent(former, team.id, DEFAULT_AGENT)
    assert agent is not None and (agent.policy, agent.policy_fault) == (EVERYTHING, None)
    create_team(former, "team_new", "new", "then")


def test_a_database_of_another_release_is_refused_and_unchanged(former: Connection) -> None:
    gone = "DELETE FROM _sqlite_migrations WHERE name IN ('m999', 'm007_rechunking')"
    for change, named in ((INSERT.format("state"), "m999"), (gone, "m006_agents")):
        former.execute(change)
        before = _dump(former)
        for open_state in (migrate, check_current):
            with pytest.raises(StorageError, match=named):
                open_state(former)
            assert (_dump(former), _copies(former)) == (before, []), (named, open_state)


def test_a_second_migration_run_changes_nothing(fresh: Connection) -> None:
    migrate(fresh)
    fresh.execute(INSERT.format("other"))
    before = _dump(fresh)
    migrate(fresh)
    assert (_dump(fresh), _copies(fresh)) == (before, [])


def test_a_database_is_copied_before_a_migration(former: Connection, tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    def add_colours(db: Connection) -> None:
        db.execute("ALTER TABLE facts ADD COLUMN colour TEXT")
        db.execute("DELETE FROM facts")

    migrate(former)
    monkeypatch.setattr(migrations, "MIGRATIONS", {**MIGRATIONS, "m999_colours": add_colours})
    facts = [tuple(row) for row in former.execute("SELECT * FROM facts").fetchall()]
    with pytest.raises(StorageError, match="older release"):
        check_current(former)
    migrate(former)
    assert (_applied(former)[-1], "state.db.before-m999_colours" in _copies(former)) == ("m999_colours", True)
    assert former.execute("SELECT colour FROM facts").fetchall() == []
    with closing(sqlite3.connect(tmp_path / "former" / "state.db.before-m999_colours")) as copy:
        assert copy.execute("SELECT * FROM facts").fetchall() == facts
        assert copy.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert "m999_colours" not in _applied(copy)


@pytest.mark.parametrize("had_schema", [True, False])
def test_a_failed_migration_changes_nothing_and_stays_pending(
    fresh: Connection, monkeypatch: MonkeyPatch, *, had_schema: bool
) -> None:
    if had_schema:
        migrate(fresh)
    name, change = ("m999_colours", lambda _: None) if had_schema else ("m007_rechunking", migrations.make_schema)

    def fail(db: Connection) -> None:
        change(db)
        db.execute("CREATE TABLE colours (colour TEXT)")
        raise LookupError("no colours today")

    def dump() -> list[str]:
        return [line for line in fresh.iterdump() if "_sqlite_migrations" not in line]

    before = dump()
    with monkeypatch.context() as patch, pytest.raises(LookupError):
        patch.setattr(migrations, "MIGRATIONS", {**MIGRATIONS, name: fail})
        migrate(fresh)
    assert (dump(), fresh.in_transaction) == (before, False)
    assert not had_schema or name not in _applied(fresh)
    monkeypatch.setattr(migrations, "MIGRATIONS", {**MIGRATIONS, name: change})
    migrate(fresh)
    assert name in _applied(fresh)
    assert _copies(fresh) == (["state.db.before-m999_colours"] if had_schema else [])


def test_a_start_that_needs_no_migration_imports_no_heavy_library(tmp_path: Path) -> None:
    script = (
        "import sys, svc_daemon.server.server, svc_daemon.databases.sqlite as d, svc_daemon.store.migrations as m\n"
        "for _ in range(2):\n"
        f"    m.migrate(d.open_connection(d.Path({str(tmp_path / 'state.db')!r})))\n"
        "print(*{'sqlite_utils', 'numpy', 'dateutil', 'httpx', 'typer', 'rich', 'mcp'} & set(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.split() == []
