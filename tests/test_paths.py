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


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_is_its_variables_or_the_users(name: str, tmp_path: Path) -> None:
    find, default = FOLDERS[name]
    others = {other: "/elsewhere" for other in FOLDERS if other != name}
    assert find({**others, name: str(tmp_path)}) == tmp_path
    assert find(others) == find({**others, name: ""}) == Path(default).absolute()


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_is_absolute_and_knows_the_home(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    find, _ = FOLDERS[name]
    assert find({name: "data"}) == tmp_path / "data"
    assert find({name: "~/data"}) == tmp_path / "home" / "data"


def test_the_users_own_folder_is_the_default_however_it_is_spelled(tmp_path: Path) -> None:
    assert paths.is_default_data_dir({})
    assert paths.is_default_data_dir({"SVC_DATA_DIR": platformdirs.user_data_dir("svc")})
    assert not paths.is_default_data_dir({"SVC_DATA_DIR": str(tmp_path)})


def test_every_file_lies_inside_the_data_directory_and_no_two_are_one(tmp_path: Path) -> None:
    files = DataFiles(tmp_path)
    properties = [name for name, value in vars(DataFiles).items() if isinstance(value, property)]
    found = [getattr(files, name) for name in properties]
    assert len(found) >= 9
    assert all(path != tmp_path and path.is_relative_to(tmp_path) for path in found)
    assert len(set(found)) == len(found)


def test_what_is_emptied_at_start_holds_nothing_else(tmp_path: Path) -> None:
    files = DataFiles(tmp_path)
    for emptied in (files.staging, files.scratch):
        for kept in (files.state, files.blobs, files.index, files.admin_key, files.secret, files.log):
            assert not kept.is_relative_to(emptied)
