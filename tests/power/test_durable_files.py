"""Each file that a command has made is there after a power cut: the smallest cases of losses that were found."""

import sys
from pathlib import Path

import pytest

from tests.acceptance.test_system_calls import can_trace
from tests.power.disks import Disk, Model, Replay, State
from tests.power.scenes import Scene

pytestmark = [
    pytest.mark.skipif(not can_trace(), reason="no strace is installed, or it may not trace here"),
    pytest.mark.sqlite,
    pytest.mark.folders,
    pytest.mark.one_daemon,
]
MAKE_FOLDERS = """
import sys
from pathlib import Path
from svc_daemon.data_directory import make_folders
from svc_daemon.paths import DataFiles
make_folders(DataFiles(Path(sys.argv[1])))
"""


def run(scene: Scene, *words: str) -> Replay:
    """Run a Python program, recorded, and return its replay."""
    ended = scene.installation.run(*scene.trace(), sys.executable, *words)
    assert ended.exit == 0, ended.stderr
    scene.end()
    return Replay(scene.history)


def synced(replay: Replay) -> Disk:
    """Return the disk without anything that was not synced."""
    return replay.make_disk(State(len(replay.history.events), {}, "nothing unsynced"))


def test_new_data_directory_and_its_parents_keep_their_names(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "one")
    disk = synced(run(scene, "-c", MAKE_FOLDERS, str(scene.root / "share" / "svc")))
    assert {"share", "share/svc", "share/svc/blobs", "share/svc/index"} <= disk.keys()


@pytest.mark.parametrize(
    ("words", "file", "part"),
    [
        (("config", "set", "bucket", "beta"), "config/config.toml", b'bucket = "beta"'),
        (("watch", "add", ".", "-b", "beta"), "config/watch.toml", b'bucket = "beta"'),
    ],
)
def test_file_that_a_command_has_written_is_durable(
    words: tuple[str, ...], file: str, part: bytes, tmp_path: Path
) -> None:
    scene = Scene(tmp_path / "one")
    disk = synced(run(scene, "-m", "svc_cli", *words))
    assert part in (disk.get(file) or b""), disk.keys()


def test_files_of_a_cut_restore_are_never_there_without_the_record_of_their_backup(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "one")
    scene.prepare("one")
    assert scene.installation.operate("backup", str(tmp_path / "backups")).exit == 0
    scene.installation.files.root.rename(tmp_path / "lost")
    scene.record_from_here()
    replay = run(scene, "-m", "svc_daemon", "restore", str(tmp_path / "backups"))
    for count in range(len(replay.history.events)):
        for state in replay.choose(count, Model.NAMES_FIRST):
            disk = replay.make_disk(state)
            if any(path.startswith("data/restoring/blobs/") for path in disk):
                assert b'"backup"' in (disk.get("data/restoring/restoring.json") or b""), state
                break
