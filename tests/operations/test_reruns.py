"""Tests work that a database runs again: only the last run counts, and it sees what others have written since."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_daemon.databases.contract import Connection
from svc_daemon.extract.extractors import Extractor
from tests.api.loops import Loop
from tests.api.rehearsals import RehearsingDaemon


@pytest.fixture
def rehearsing(loop: Loop, extractor: Extractor, tmp_path: Path) -> Iterator[RehearsingDaemon]:
    daemon = RehearsingDaemon(loop, tmp_path / "data", extractor)
    daemon.make_bucket()
    yield daemon
    daemon.close()


def test_only_the_last_run_of_rerun_work_is_committed(rehearsing: RehearsingDaemon) -> None:
    runs: list[int] = []

    def work(connection: Connection) -> int:
        runs.append(len(connection.execute("SELECT * FROM buckets").fetchall()))
        connection.execute("DELETE FROM buckets")
        if len(runs) == 1:
            raise ValueError("only in the first run")
        return len(runs)

    assert (rehearsing.write(work), runs, rehearsing.count("buckets")) == (2, [1, 1], 0)


def test_a_rerun_update_of_the_chunking_keeps_the_changes_of_another_writer(rehearsing: RehearsingDaemon) -> None:
    rehearsing.patch("/v1/buckets/inbox", chunking={"target": 900})

    def change(connection: Connection) -> None:
        sizes = '\'{"target": 900, "min": 500, "max": 1100, "overlap": 50}\''
        connection.execute(f"UPDATE buckets SET chunking = {sizes}")

    rehearsing.state.between = change
    changed = rehearsing.patch("/v1/buckets/inbox", chunking={"max": 1000})
    assert changed["chunking"] == {"target": 900, "min": 500, "max": 1000, "overlap": 50}
