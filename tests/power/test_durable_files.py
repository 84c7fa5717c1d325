"""Each file that a command has made is there after a power cut: the smallest cases of losses that were found."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_system_calls import can_trace
from tests.power.diaries import Document
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
from collections.abc import Iterator
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


def test_file_that_was_downloaded_or_exported_is_durable(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "one")
    (source_id,) = scene.prepare("one")
    scene.installation.start()
    scene.record_from_here()
    scene.run("svc_cli", "source", "get", source_id, "-o", "one.md")
    scene.run("svc_cli", "bucket", "export", "alpha", "alpha.zip")
    scene.end()
    found = synced(Replay(scene.history))
    assert found.get("one.md") == Document("one").data
    assert found.get("alpha.zip"), found.keys()


def disks(replay: Replay, model: Model) -> Iterator[Disk]:
    """Yield what the model leaves after each event."""
    for count in range(len(replay.history.events) + 1):
        yield from map(replay.make_disk, replay.choose(count, model))


def test_files_of_a_cut_restore_are_there_only_with_the_record_of_their_backup_until_all_are_moved(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path / "one")
    scene.prepare("one")
    assert scene.installation.operate("backup", str(tmp_path / "backups")).exit == 0
    scene.installation.files.root.rename(tmp_path / "lost")
    scene.record_from_here()
    replay = run(scene, "-m", "svc_daemon", "restore", str(tmp_path / "backups"))
    for disk in (disk for model in (Model.ANY, Model.NAMES_FIRST) for disk in disks(replay, model)):
        if any(path.startswith("data/restoring/blobs/") for path in disk):
            assert b'"backup"' in (disk.get("data/restoring/restoring.json") or b""), list(disk)
        if "data/restoring" in disk and "data/state.db" in disk:
            assert {"data/restoring/ready", "data/restoring/restoring.json"} <= disk.keys(), list(disk)


def test_backup_that_a_newer_one_replaces_is_whole_or_gone(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "one")
    scene.prepare("one")
    words = ("backup", str(scene.root / "backups"), "--keep", "1")
    assert scene.installation.operate(*words).exit == 0
    (old,) = (scene.root / "backups").iterdir()
    scene.record_from_here()
    replay = run(scene, "-m", "svc_daemon", *words)
    for disk in disks(replay, Model.ANY):
        name = f"backups/{old.name}"
        assert name not in disk or {f"{name}/backup.json", f"{name}/state.db", f"{name}/secret"} <= disk.keys()


def test_bytes_without_a_row_keep_a_name_while_they_are_set_aside(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "one")
    scene.prepare("one")
    name = "src_01k2z3v4w5x6y7z8a9b0c1d2e3"
    (scene.installation.files.blobs / name).write_bytes(b"lost")
    scene.record_from_here()
    scene.start()
    with scene.installation.client() as client:
        scene.diary.upload(client, Document("one"))
        scene.diary.upload(client, Document("two"))
    scene.installation.stop()
    scene.end()
    replay = Replay(scene.history)
    for count in range(len(scene.history.events) + 1):
        disk = replay.make_disk(State(count, {}, "nothing unsynced"))
        assert [data for path, data in disk.items() if path.endswith(name)] in ([b"lost"], [b"lost"] * 2), count
    assert f"data/blobs/{name}" not in disk
