"""What was acknowledged survives a power cut at any moment, and the replay finds what an ignored sync loses.

`--large` asks the daemon on every different disk; otherwise on a sample.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.test_system_calls import can_trace
from tests.power import command_scenes, service_scenes
from tests.power.cuts import PowerCuts
from tests.power.disks import Model, State
from tests.power.histories import Sync
from tests.power.scenes import Scene, record

SCENES = service_scenes.SCENES | command_scenes.SCENES
#: How many disks of each scene are laid out in a small run.
SAMPLE = 4

pytestmark = [
    pytest.mark.skipif(not can_trace(), reason="no strace is installed, or it may not trace here"),
    pytest.mark.sqlite,
    pytest.mark.folders,
    pytest.mark.one_daemon,
]


@pytest.mark.parametrize("name", SCENES)
def test_what_was_acknowledged_survives_a_power_cut_at_any_moment(name: str, tmp_path: Path, large: bool) -> None:
    cuts = PowerCuts(record(tmp_path / "one", SCENES[name]))
    tally = cuts.run(cuts.list_states(list(Model)) if large else cuts.sample(SAMPLE))
    print(f"{name}: {len(cuts.list_moments())} moments, {tally.states} disks, {tally.different} of them different")
    assert not tally.violations, "\n\n".join(tally.violations)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return record(tmp_path_factory.mktemp("control") / "one", service_scenes.one_more)


def test_upload_survives_a_cut_at_any_moment_if_nothing_unsynced_is_there(scene: Scene, large: bool) -> None:
    cuts = PowerCuts(scene)
    moments = cuts.list_moments()[:: 1 if large else 4]
    tally = cuts.run([State(count, {}, "nothing unsynced") for count in moments])
    assert not tally.violations, "\n\n".join(tally.violations)


@pytest.mark.parametrize(
    ("ignores", "loss"),
    [
        (lambda sync: sync.path.endswith("/state.db-wal"), "lost"),
        (lambda sync: sync.path.endswith("/blobs") or sync.node is None, "other bytes"),
        (lambda sync: "/blobs/src_" in sync.path, "other bytes"),
        (lambda sync: sync.path.endswith(".db-wal") and "/index/" in sync.path, "no longer ready|searches find"),
    ],
    ids=["log", "folders", "blobs", "index"],
)
def test_replay_without_these_syncs_finds_the_loss(scene: Scene, ignores: Callable[[Sync], bool], loss: str) -> None:
    cuts = PowerCuts(scene, ignores)
    # What a service lacks in its index, it may have read again before it is asked.
    asked = (cuts.ask(State(cuts.find_end(), {}, "nothing unsynced")) for _ in range(3))
    failure = next(filter(None, asked), None)
    assert failure is not None, "nothing is missed"
    assert re.search(loss, failure), failure
