"""The folders of an installation, the data directory's lock, and the secrets in it."""

import fcntl
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import platformdirs
import pytest

from svc_daemon import paths
from svc_daemon.data_directory import DirectoryLocked, lock_directory, make_folders
from svc_daemon.errors import StorageError
from svc_daemon.operations.installations import prepare_secret, write_secret
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


def test_a_secret_is_readable_by_its_owner_only_and_partial_files_of_a_kill_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".admin.key.0badcafe").write_text("sk-half")
    write_secret(tmp_path / "admin.key", "sk-one")
    assert (tmp_path / "admin.key").read_text() == "sk-one\n"
    assert (tmp_path / "admin.key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["admin.key"]


def test_a_damaged_secret_is_reported_with_a_hint_and_left_unchanged(tmp_path: Path) -> None:
    files = DataFiles(tmp_path)
    for data in (b"", b"\n", b"00ff\n", b"no hex at all", b"\xff\xfe\x00", b"0" * 66):
        files.secret.write_bytes(data)
        with pytest.raises(StorageError, match=r"damaged.*delete it"):
            prepare_secret(files, os.urandom)
        assert files.secret.read_bytes() == data


FOLDERS: dict[str, tuple[Callable[[Mapping[str, str]], Path], str]] = {
    "SVC_DATA_DIR": (paths.data_dir, platformdirs.user_data_dir("svc")),
    "SVC_CONFIG_DIR": (paths.config_dir, platformdirs.user_config_dir("svc")),
    "SVC_STATE_DIR": (paths.state_dir, platformdirs.user_state_dir("svc")),
}


def test_folder_is_taken_from_its_variable_or_the_users_default_and_is_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    defaults = {name: Path(default).absolute() for name, (_, default) in FOLDERS.items()}
    for name, (find, _) in FOLDERS.items():
        others = {other: "/elsewhere" for other in FOLDERS if other != name}
        assert find({**others, name: str(tmp_path)}) == tmp_path
        assert find(others) == find({**others, name: ""}) == defaults[name]
        assert find({name: "data"}) == tmp_path / "data"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name, (find, _) in FOLDERS.items():
        assert find({name: "~/data"}) == tmp_path / "home" / "data", name


def test_a_user_without_a_home_has_the_root_as_one_and_needs_none_for_named_folders(tmp_path: Path) -> None:
    """Such a user has no row in the list of users, as in a container that runs as any number."""
    names = ", ".join(f"paths.{find.__name__}(os.environ)" for find, _ in FOLDERS.values())
    program = f"import os; os.getuid = lambda: 54321; from svc_daemon import paths; print(*[str(e) for e in [{names}]])"
    named = {name: str(tmp_path / name) for name in FOLDERS}
    for environ, wanted in (
        ({}, ["/.local/share/svc", "/.config/svc", "/.local/state/svc"]),
        ({"HOME": ""}, ["/.local/share/svc", "/.config/svc", "/.local/state/svc"]),
        ({"HOME": "/"}, ["/.local/share/svc", "/.config/svc", "/.local/state/svc"]),
        (named, list(named.values())),
    ):
        ran = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False)
        assert (ran.stdout.split(), ran.stderr) == (wanted, ""), environ


def test_folder_below_a_home_that_does_not_exist_is_refused() -> None:
    for name, (find, _) in FOLDERS.items():
        with pytest.raises(FileNotFoundError, match=r"no such home folder.*~nobody-of-this-name/data"):
            find({name: "~nobody-of-this-name/data"})


def test_is_default_data_dir_accepts_the_default_folder_set_explicitly(tmp_path: Path) -> None:
    assert paths.is_default_data_dir({})
    assert paths.is_default_data_dir({"SVC_DATA_DIR": platformdirs.user_data_dir("svc")})
    assert not paths.is_default_data_dir({"SVC_DATA_DIR": str(tmp_path)})


def test_files_of_the_daemon_are_distinct_and_inside_the_data_directory(tmp_path: Path) -> None:
    files = DataFiles(tmp_path)
    found = [getattr(files, name) for name, value in vars(DataFiles).items() if isinstance(value, property)]
    assert len(set(found)) == len(found) >= 9
    assert all(path != tmp_path and path.is_relative_to(tmp_path) for path in found)
    # Folders that are emptied at a start contain none of the other files.
    for kept in (files.state, files.blobs, files.index, files.admin_key, files.secret, files.log):
        assert not any(kept.is_relative_to(emptied) for emptied in (files.staging, files.scratch)), kept
