"""The decisions of a cluster's workers in random schedules; `--large` runs 10,000 of them.

`python -m tests.power.schedules SEED` prints one.
"""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from svc_daemon.operations.index import indexing
from svc_daemon.store.rows import tasks
from svc_daemon.store.rows.tasks import TaskRow
from tests.acceptance.forks import ROOT
from tests.power import schedules
from tests.power.schedules import Schedule, ScheduleFailed

#: Within this many schedules, a fault has to be found.
SEEDS = 150

pytestmark = [pytest.mark.sqlite]


@pytest.mark.parametrize("part", range(4))
def test_no_schedule_loses_doubles_or_blocks_a_source(part: int, large: bool) -> None:
    count = 2500 if large else 15
    for seed in range(part * count, (part + 1) * count):
        Schedule(seed).run()


def find_fault() -> str:
    """Return what is wrong with the first schedule that fails."""
    for seed in range(SEEDS):
        try:
            Schedule(seed).run()
        except ScheduleFailed as failed:
            return str(failed)
    return ""


def succeed_without_token(connection: Any, task: TaskRow, stage: str, chunks: int, finished_at: str) -> bool:
    found = connection.execute("SELECT * FROM tasks WHERE id = ?", (task.id,)).fetchone()
    return tasks.succeed_task(connection, TaskRow.from_row(found), stage, chunks, finished_at)


def never(*_: object, **__: object) -> list[TaskRow]:
    return []


@pytest.mark.parametrize(
    ("name", "fault", "word"),
    [("succeed_task", succeed_without_token, "is ready"), ("list_expired", never, "stuck")],
    ids=["a lease without its token", "leases that never end"],
)
def test_fault_put_in_by_hand_is_found(
    name: str, fault: Callable[..., object], word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, name, fault)
    assert word in find_fault().partition("\n")[0]


def test_seed_prints_the_same_schedule_each_time() -> None:
    words = [sys.executable, "-m", schedules.__name__, "7"]
    one, other = (subprocess.run(words, cwd=ROOT, capture_output=True, check=True, text=True).stdout for _ in range(2))
    assert one.splitlines()[:-1] == other.splitlines()[:-1]
    assert "claim_indexing" in one
