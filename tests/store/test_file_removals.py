"""Tests that removed files are kept while a backup runs, however it ends."""

import asyncio
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from svc_daemon.errors import StorageError
from svc_daemon.store import file_removals
from svc_daemon.store.file_removals import BackupRunning, Removals
from tests.store.folders import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with ThreadPoolExecutor(1) as executor:
        yield Folder(tmp_path / "data", executor)


def names(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir()) if path.exists() else []


@pytest.mark.rule("backup.removed")
def test_files_removed_during_a_backup_are_kept_until_it_ends(folder: Folder) -> None:
    files, gate = folder.files, Removals(folder.files.held)
    for name in ("src_a", "src_b"):
        (files.blobs / name).write_bytes(name.encode())
    (files.parts / "upl_a").write_bytes(b"first")
    (files.blobs / "src_link").symlink_to(files.blobs / "src_b")
    with gate.pausing():
        assert asyncio.run(folder.blobs.delete(["src_a", "src_link", "src_gone"])) == {}
        asyncio.run(folder.parts.delete("upl_a"))
        # The session is used again, and ends again: the backup needs the first bytes.
        (files.parts / "upl_a").write_bytes(b"later")
        asyncio.run(folder.parts.delete("upl_a"))
        assert (names(files.blobs), names(files.parts)) == (["src_b"], [])
        assert (files.held / "upl_a").read_bytes() == b"first"
        assert (names(files.held), folder.blobs.removals.clear_held()) == (["src_a", "src_link", "upl_a"], 0)
    assert (names(files.held), names(files.blobs)) == ([], ["src_b"])
    assert asyncio.run(folder.blobs.delete(["src_b"])) == {}
    assert (names(files.held), names(files.blobs)) == ([], [])


@pytest.mark.rule("backup.removed")
def test_files_kept_for_a_killed_backup_are_removed(folder: Folder) -> None:
    files = folder.files
    (files.blobs / "src_a").write_bytes(b"a")
    ready, done = os.pipe()
    if (child := os.fork()) == 0:
        with Removals(files.held).pausing():
            os.write(done, b"1")
            signal.pause()
    os.read(ready, 1)
    assert asyncio.run(folder.blobs.delete(["src_a"])) == {}
    assert names(files.held) == ["src_a"]
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert (folder.blobs.removals.clear_held(), names(files.held)) == (1, [])


def test_a_second_backup_at_the_same_time_is_refused(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_removals, "PATIENCE_S", 0.0)
    gate = Removals(folder.files.held)
    with gate.pausing(), pytest.raises(BackupRunning), gate.pausing():
        pass
    with gate.pausing():
        pass


def test_only_own_files_are_removed_and_not_through_a_link(folder: Folder, tmp_path: Path) -> None:
    held = folder.files.held
    held.mkdir()
    for name in ("src_a", "upl_a", "notes.txt"):
        (held / name).write_bytes(b"x")
    assert (folder.blobs.removals.clear_held(), names(held)) == (2, ["notes.txt"])
    (held / "src_a").write_bytes(b"theirs")
    held.rename(tmp_path / "theirs")
    held.symlink_to(tmp_path / "theirs")
    assert (folder.blobs.removals.clear_held(), names(tmp_path / "theirs")) == (0, ["notes.txt", "src_a"])


def test_name_that_is_no_file_name_is_refused_and_does_not_block_others(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "theirs").write_bytes(b"theirs")
    for name in ("../../theirs", str(tmp_path / "theirs"), "..", "", "src_a\0", "src_a\n"):
        (folder.files.blobs / "src_a").write_bytes(b"x")
        assert list(asyncio.run(folder.blobs.delete([name, "src_a"]))) == [name]
        asyncio.run(folder.blobs.move_damaged(name))
        for path in (folder.blobs.path, folder.parts.path, folder.parts.size_bytes):
            with pytest.raises(StorageError, match="can't be the name of a file"):
                path(name)
    assert (names(folder.files.blobs), (tmp_path / "theirs").read_bytes()) == ([], b"theirs")
