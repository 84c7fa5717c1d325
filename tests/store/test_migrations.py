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

from svc_daemon.databases.sqlite import open_connection
from svc_daemon.errors import StorageError
from svc_daemon.store import migrations
from svc_daemon.store.migrations import MIGRATIONS, check_current, find_foreign, migrate
from svc_daemon.store.rows.teams import put_fact

pytestmark = pytest.mark.sqlite

INSERT = "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('{}', 'm999', 'x')"


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Connection]:
    with closing(open_connection(tmp_path / "state.db")) as opened:
        yield opened


def _dump(db: Connection) -> tuple[list[str], int]:
    """Return the whole content of the database, and the number of changes made through this connection."""
    return list(db.iterdump()), db.total_changes


def _applied(db: Connection) -> list[str]:
    return [row[0] for row in db.execute("SELECT name FROM _sqlite_migrations ORDER BY rowid").fetchall()]


def _copies(db: Connection) -> list[str]:
    path = Path(db.execute("PRAGMA database_list").fetchone()["file"])
    return [copy.name for copy in path.parent.iterdir() if ".before-" in copy.name]


def test_a_new_database_gets_the_schema_and_is_not_copied(fresh: Connection) -> None:
    migrate(fresh)
    check_current(fresh)
    assert (find_foreign(fresh), _applied(fresh), _copies(fresh)) == (None, list(MIGRATIONS), [])


@pytest.mark.parametrize(("applied", "fault"), [("m999", "newer release .it has m999"), ("m012", "before the first")])
def test_a_database_of_another_release_is_refused_and_unchanged(fresh: Connection, applied: str, fault: str) -> None:
    migrate(fresh)
    fresh.execute("DELETE FROM _sqlite_migrations WHERE name <> ?", (migrations.FIRST,))
    fresh.execute("UPDATE _sqlite_migrations SET name = ?", (applied,))
    before = _dump(fresh)
    for open_state in (migrate, check_current, find_foreign):
        with pytest.raises(StorageError, match=fault):
            open_state(fresh)
        assert (_dump(fresh), _copies(fresh)) == (before, []), open_state


def test_a_second_migration_run_changes_nothing(fresh: Connection) -> None:
    migrate(fresh)
    fresh.execute(INSERT.format("other"))
    before = _dump(fresh)
    migrate(fresh)
    assert (_dump(fresh), _copies(fresh)) == (before, [])


def test_a_database_is_copied_before_a_migration(fresh: Connection, tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    def add_colours(db: Connection) -> None:
        db.execute("ALTER TABLE facts ADD COLUMN colour TEXT")
        db.execute("DELETE FROM facts")

    migrate(fresh)
    put_fact(fresh, "installation_id", "ins_1")
    monkeypatch.setattr(migrations, "MIGRATIONS", {**MIGRATIONS, "m999_colours": add_colours})
    facts = [tuple(row) for row in fresh.execute("SELECT * FROM facts").fetchall()]
    with pytest.raises(StorageError, match="older release"):
        check_current(fresh)
    migrate(fresh)
    assert (_applied(fresh)[-1], "state.db.before-m999_colours" in _copies(fresh)) == ("m999_colours", True)
    assert fresh.execute("SELECT colour FROM facts").fetchall() == []
    with closing(sqlite3.connect(tmp_path / "state.db.before-m999_colours")) as copy:
        assert copy.execute("SELECT * FROM facts").fetchall() == facts
        assert copy.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert "m999_colours" not in _applied(copy)


@pytest.mark.parametrize("had_schema", [True, False])
def test_a_failed_migration_changes_nothing_and_stays_pending(
    fresh: Connection, monkeypatch: MonkeyPatch, *, had_schema: bool
) -> None:
    if had_schema:
        migrate(fresh)
    name, change = ("m999_colours", lambda _: None) if had_schema else (migrations.FIRST, migrations.make_schema)

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


def test_a_start_that_needs_no_migration_imports_no_heavy_library(fresh: Connection, tmp_path: Path) -> None:
    migrate(fresh)
    script = (
        "import sys, svc_daemon.command.serve, svc_daemon.server.server\n"
        "import svc_daemon.databases.sqlite as d, svc_daemon.store.migrations as m\n"
        f"m.migrate(d.open_connection(d.Path({str(tmp_path / 'state.db')!r})))\n"
        "print(*{'sqlite_utils', 'numpy', 'dateutil', 'httpx', 'typer', 'rich', 'mcp'} & set(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.split() == []
