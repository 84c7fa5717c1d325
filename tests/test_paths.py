"""Paths: the folders of an installation, and that every file of the daemon lies inside its data directory."""

from collections.abc import Callable, Mapping
from pathlib import Path

import platformdirs
import pytest

from svc_daemon import paths
from svc_daemon.paths import DataFiles

FOLDERS: dict[str, tuple[Callable[[Mapping[str, str]], Path], str]] = {
    "SVC_DATA_DIR": (paths.data_dir, platformdirs.user_data_dir("svc")),
    "SVC_CONFIG_DIR": (paths.config_dir, platformdirs.user_config_dir("svc")),
    "SVC_STATE_DIR": (paths.state_dir, platformdirs.user_state_dir("svc")),
}


def test_a_folder_is_its_variables_or_the_users_and_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_the_users_own_folder_is_the_default_however_it_is_spelled(tmp_path: Path) -> None:
    assert paths.is_default_data_dir({})
    assert paths.is_default_data_dir({"SVC_DATA_DIR": platformdirs.user_data_dir("svc")})
    assert not paths.is_default_data_dir({"SVC_DATA_DIR": str(tmp_path)})


def test_every_file_lies_inside_the_data_directory_and_no_two_are_one(tmp_path: Path) -> None:
    files = DataFiles(tmp_path)
    found = [getattr(files, name) for name, value in vars(DataFiles).items() if isinstance(value, property)]
    assert len(set(found)) == len(found) >= 9
    assert all(path != tmp_path and path.is_relative_to(tmp_path) for path in found)
    # What is emptied at a start holds nothing else.
    for kept in (files.state, files.blobs, files.index, files.admin_key, files.secret, files.log):
        assert not any(kept.is_relative_to(emptied) for emptied in (files.staging, files.scratch)), kept
