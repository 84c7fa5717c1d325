"""The data directory: one owner at a time, and nobody else's business."""

import fcntl
import shutil
import stat
from pathlib import Path

import pytest

from svc_daemon.data_directory import DirectoryLocked, lock_directory, make_folders
from svc_daemon.paths import DataFiles


def test_a_directory_has_one_owner_at_a_time_whatever_is_removed_from_it(tmp_path: Path) -> None:
    files = DataFiles(tmp_path / "data")
    make_folders(files)
    # Folders are for their owner only.
    assert stat.S_IMODE(files.root.stat().st_mode) == 0o700
    assert {folder.is_dir() for folder in (files.blobs, files.staging, files.index, files.log.parent)} == {True}
    with lock_directory(files):
        with pytest.raises(DirectoryLocked, match="svc daemon stop"), lock_directory(files):
            pass
        for path in files.root.iterdir():
            path.unlink() if path.is_file() else shutil.rmtree(path)
        with pytest.raises(DirectoryLocked), lock_directory(files):
            pass
    with lock_directory(files):
        pass


def test_a_daemon_of_an_earlier_release_keeps_the_directory(tmp_path: Path) -> None:
    files = DataFiles(tmp_path)
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(DirectoryLocked), lock_directory(files):
            pass
    with lock_directory(files):
        pass
