"""Opens a real state database with two teams for the tests of the store. Durability is tested elsewhere."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from svc_daemon.databases.contract import Connection
from svc_daemon.databases.sqlite import open_connection
from svc_daemon.store.migrations import migrate
from tests.store.folders import Folder
from tests.store.rows import add_teams


@pytest.fixture(scope="session")
def new_state() -> bytes:
    """A state database with two teams."""
    with closing(open_connection(Path(":memory:"))) as opened:
        migrate(opened)
        add_teams(opened)
        return opened.serialize()


@pytest.fixture
def db(request: pytest.FixtureRequest, new_state: bytes) -> Iterator[Connection]:
    if request.config.getoption("--postgresql") or request.config.getoption("--engines"):
        from tests.cluster.runs import STATES  # noqa: PLC0415 - of an extra

        with request.config.stash[STATES].transaction() as connection:
            add_teams(connection)
            yield connection
        return
    opened = open_connection(Path(":memory:"))
    opened.deserialize(new_state)
    yield opened
    assert opened.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert opened.execute("PRAGMA foreign_key_check").fetchall() == []
    opened.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with ThreadPoolExecutor(2) as executor:
        yield Folder(tmp_path / "data", executor)
