"""The data directory has one owner at a time, and is private to its user."""

import fcntl
import shutil
import stat
from pathlib import Path

import pytest

from svc_daemon.data_directory import DirectoryLocked, lock_directory, make_folders
from svc_daemon.paths import DataFiles


def test_data_directory_is_private_and_stays_locked_even_if_its_files_are_removed(tmp_path: Path) -> None:
    files = DataFiles(tmp_path / "data")
    make_folders(files)
    # Only the owner can access the folders.
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


def test_lock_of_an_earlier_release_is_respected(tmp_path: Path) -> None:
    files = DataFiles(tmp_path)
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(DirectoryLocked), lock_directory(files):
            pass
    with lock_directory(files):
        pass
