"""Secrets on the disk."""

from pathlib import Path

from svc_daemon.operations.installations import write_secret


def test_a_secret_is_for_this_user_alone(tmp_path: Path) -> None:
    write_secret(tmp_path / "admin.key", "sk-one")
    assert (tmp_path / "admin.key").read_text() == "sk-one\n"
    assert (tmp_path / "admin.key").stat().st_mode & 0o777 == 0o600


def test_what_a_kill_left_of_a_secret_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".admin.key.0badcafe").write_text("sk-half")
    write_secret(tmp_path / "admin.key", "sk-two")
    assert [path.name for path in tmp_path.iterdir()] == ["admin.key"]
