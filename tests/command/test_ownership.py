"""What root's commands make in the data directory of a service that runs as another user."""

import os
import shutil
from pathlib import Path

import pytest

from svc_daemon.paths import DataFiles
from tests.acceptance.installations import Installation

pytestmark = [
    pytest.mark.sqlite,
    pytest.mark.folders,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root writes to another user's folder"),
]

#: A user who is not root.
SERVICE = 54321


def give(root: Path) -> None:
    """Make everything the user's."""
    for path in (root, *root.rglob("*")):
        os.chown(path, SERVICE, SERVICE, follow_symlinks=False)


def others(root: Path) -> list[Path]:
    """List what the user could not open or remove."""
    return [path for path in (root, *root.rglob("*")) if path.lstat().st_uid != SERVICE]


def test_what_a_command_of_root_makes_belongs_to_the_user_of_the_service(tmp_path: Path) -> None:
    made = Installation(tmp_path)
    assert made.operate("team", "create", "blue").exit == 0
    for words in (
        "key create --team blue --preset admin --save",
        "team create green",
        "verify --repair",
        "migrate",
    ):
        give(made.files.root)
        (made.files.staging / "0123456789abcdef0123456789abcdef").touch()
        shutil.rmtree(made.files.scratch, ignore_errors=True)
        ended = made.operate(*words.split())
        assert (ended.exit, others(made.files.root)) == (0, []), (words, ended.stderr)


def test_restore_into_a_users_folder_makes_it_whole_for_the_user(tmp_path: Path) -> None:
    made = Installation(tmp_path)
    made.operate("team", "create", "blue")
    assert made.operate("backup", str(tmp_path / "backups")).exit == 0
    shutil.rmtree(made.files.root)
    made.files.root.mkdir()
    give(made.files.root)
    assert made.operate("restore", str(tmp_path / "backups")).exit == 0
    assert (others(made.files.root), made.files.state.is_file()) == ([], True)


def test_root_is_warned_of_serving_another_users_data(tmp_path: Path) -> None:
    made = Installation(tmp_path)
    made.operate("team", "create", "blue")
    assert made.operate("serve", "--check").stderr == ""
    give(made.files.root)
    ended = made.operate("serve", "--check")
    assert (ended.exit, f"is the data of user {SERVICE}, who can't open" in ended.stderr) == (0, True)


def test_root_is_warned_of_a_new_data_directory_in_another_users_folder(tmp_path: Path) -> None:
    made = Installation(tmp_path)
    made.files.root.mkdir(parents=True, exist_ok=True)
    assert made.operate("serve", "--check").stderr == ""
    give(made.files.root)
    ended = made.operate("serve", "--check")
    assert (ended.exit, f"is the folder of user {SERVICE}, who can replace" in ended.stderr) == (0, True)


def test_what_is_linked_into_the_data_directory_stays_roots(tmp_path: Path) -> None:
    made = Installation(tmp_path)
    made.operate("team", "create", "blue")
    give(made.files.root)
    outside = tmp_path / "outside"
    outside.touch()
    os.link(outside, DataFiles(made.files.root).parts / "second-name")
    (made.files.root / "link").symlink_to(outside)
    made.operate("verify", "--repair")
    assert outside.stat().st_uid == 0
