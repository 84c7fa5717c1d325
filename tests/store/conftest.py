"""A real state database with two teams, as each test of the store begins with."""

from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection

import pytest

from svc_daemon.database import open_connection
from svc_daemon.store.migrations import migrate
from tests.store.rows import add_teams


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    opened = open_connection(tmp_path / "state.db")
    migrate(opened)
    add_teams(opened)
    yield opened
    assert opened.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert opened.execute("PRAGMA foreign_key_check").fetchall() == []
    opened.close()
