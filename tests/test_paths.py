"""The folders of an installation, and the daemon's files, which are all inside its data directory."""

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
