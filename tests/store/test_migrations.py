"""Migrations: each once, each whole, never downwards, and a copy before one that is pending."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from sqlite3 import Connection

import pytest

from svc_daemon.core.ids import DEFAULT_AGENT
from svc_daemon.core.search.agents import EVERYTHING
from svc_daemon.database import open_connection
from svc_daemon.errors import StorageError
from svc_daemon.store import migrations
from svc_daemon.store.agents import find_agent
from svc_daemon.store.facts import find_fact
from svc_daemon.store.keys import list_keys
from svc_daemon.store.migrations import FORMER, MIGRATIONS, check_current, migrate
from svc_daemon.store.sources import get_source
from svc_daemon.store.teams import create_team, find_team

#: The state of a data directory that the seven former migrations made: three sources in a bucket, two teams.
SEVEN = (Path(__file__).parent / "seven_migrations.sql").read_text(encoding="utf-8")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def fresh(path: Path) -> Iterator[Connection]:
    opened = open_connection(path)
    yield opened
    opened.close()


@pytest.fixture
def former(tmp_path: Path) -> Iterator[Connection]:
    (tmp_path / "former").mkdir()
    opened = open_connection(tmp_path / "former" / "state.db")
    opened.execute("PRAGMA foreign_keys = OFF")
    opened.executescript(SEVEN)
    opened.execute("PRAGMA foreign_keys = ON")
    yield opened
    opened.close()


def _dump(connection: Connection) -> list[str]:
    return list(connection.iterdump())


def _schema(connection: Connection) -> dict[str, object]:
    """Each table with its columns, in order, and its foreign keys; each index and view with its statement."""
    shape: dict[str, object] = {}
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
        pragmas = ("table_xinfo", "foreign_key_list", "index_list")
        rows = [tuple(row) for pragma in pragmas for row in connection.execute(f"PRAGMA {pragma}({name})").fetchall()]
        checks = sorted(part for part in (sql or "").split("\n") if "CHECK" in part or "WITHOUT ROWID" in part)
        shape[name] = (kind, rows, len(checks)) if kind == "table" else (kind, sql)
    return shape


def _applied(connection: Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT name FROM _sqlite_migrations ORDER BY rowid").fetchall()]


def _copies(path: Path) -> list[str]:
    return sorted(copy.name for copy in path.parent.iterdir() if ".before-" in copy.name)


def test_a_fresh_file_gets_the_schema_counts_as_having_all_seven_and_is_not_copied(
    fresh: Connection, former: Connection, path: Path
) -> None:
    migrate(fresh)
    assert _applied(fresh) == _applied(former) == [*FORMER, *MIGRATIONS]
    assert _copies(path) == []


def test_one_schema_is_what_seven_migrations_made(fresh: Connection, former: Connection) -> None:
    migrate(fresh)
    assert _schema(fresh) == _schema(former)


def test_a_data_directory_of_the_seven_migrations_opens_unchanged(former: Connection, tmp_path: Path) -> None:
    before, changes = _dump(former), former.total_changes
    migrate(former)
    check_current(former)
    assert (_dump(former), former.total_changes) == (before, changes)
    assert _copies(tmp_path / "former" / "state.db") == []
    assert find_fact(former, "installation_id") is not None
    team = find_team(former, "acme")
    assert team is not None
    assert [key.name for key in list_keys(former, team.id)] == ["admin"]
    source = get_source(former, team.id, "src_01m82fqeskgndfqy18df5j9yc0")
    assert (source.status, source.ready, source.qa is not None) == ("active", True, True)
    agent = find_agent(former, team.id, DEFAULT_AGENT)
    assert agent is not None
    assert (agent.policy, agent.policy_fault) == (EVERYTHING, None)
    create_team(former, "team_new", "new", "then")


@pytest.mark.parametrize("open_state", [migrate, check_current])
def test_a_database_of_another_release_is_refused_and_stays_as_it_is(
    former: Connection, tmp_path: Path, open_state: Callable[[Connection], None]
) -> None:
    former.execute(
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('state', 'm999_tomorrow', 'x')"
    )
    before, changes = _dump(former), former.total_changes
    with pytest.raises(StorageError, match="m999_tomorrow"):
        open_state(former)
    assert (_dump(former), former.total_changes) == (before, changes)
    former.execute("DELETE FROM _sqlite_migrations WHERE name IN ('m999_tomorrow', 'm007_rechunking')")
    before, changes = _dump(former), former.total_changes
    with pytest.raises(StorageError, match="m006_agents"):
        open_state(former)
    assert (_dump(former), former.total_changes) == (before, changes)
    assert _copies(tmp_path / "former" / "state.db") == []


def test_a_second_run_changes_nothing_whatever_other_sets_have(fresh: Connection, path: Path) -> None:
    migrate(fresh)
    fresh.execute("INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('other', 'm999', 'x')")
    before, changes = _dump(fresh), fresh.total_changes
    migrate(fresh)
    assert (_dump(fresh), fresh.total_changes) == (before, changes)
    assert _copies(path) == []


def test_the_file_is_copied_before_a_pending_migration(
    former: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add_colours(connection: Connection) -> None:
        connection.execute("ALTER TABLE facts ADD COLUMN colour TEXT")
        connection.execute("DELETE FROM facts")

    monkeypatch.setattr(migrations, "MIGRATIONS", {**MIGRATIONS, "m999_colours": add_colours})
    facts = [tuple(row) for row in former.execute("SELECT * FROM facts").fetchall()]
    with pytest.raises(StorageError, match="older release"):
        check_current(former)
    migrate(former)
    assert _applied(former)[-1] == "m999_colours"
    assert former.execute("SELECT colour FROM facts").fetchall() == []
    path = tmp_path / "former" / "state.db"
    assert _copies(path) == ["state.db.before-m999_colours"]
    with sqlite3.connect(path.with_name("state.db.before-m999_colours")) as copy:
        assert copy.execute("SELECT * FROM facts").fetchall() == facts
        assert copy.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert "m999_colours" not in _applied(copy)
    copy.close()


@pytest.mark.parametrize("had_schema", [True, False])
def test_a_migration_that_fails_leaves_no_trace_and_stays_pending(
    fresh: Connection, path: Path, monkeypatch: pytest.MonkeyPatch, *, had_schema: bool
) -> None:
    if had_schema:
        migrate(fresh)
    name, change = ("m999_colours", lambda _: None) if had_schema else ("m007_rechunking", migrations.make_schema)
    before = _dump(fresh)

    def fail(connection: Connection) -> None:
        change(connection)
        connection.execute("CREATE TABLE colours (colour TEXT)")
        raise LookupError("no colours today")

    with monkeypatch.context() as patch, pytest.raises(LookupError):
        patch.setattr(migrations, "MIGRATIONS", {**MIGRATIONS, name: fail})
        migrate(fresh)
    assert not fresh.in_transaction
    assert [line for line in _dump(fresh) if "_sqlite_migrations" not in line] == [
        line for line in before if "_sqlite_migrations" not in line
    ]
    assert name not in _applied(fresh)
    monkeypatch.setattr(migrations, "MIGRATIONS", {**MIGRATIONS, name: change})
    migrate(fresh)
    assert _applied(fresh)[-1] == name
    assert _copies(path) == (["state.db.before-m999_colours"] if had_schema else [])


def test_a_start_that_finds_its_schema_loads_no_library_for_one(former: Connection, tmp_path: Path) -> None:
    script = (
        "import sys, svc_daemon.server, svc_daemon.database as d, svc_daemon.store.migrations as m\n"
        f"m.migrate(d.open_connection(d.Path({str(tmp_path / 'former' / 'state.db')!r})))\n"
        "print(*{'sqlite_utils', 'numpy', 'dateutil'} & set(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.split() == []
