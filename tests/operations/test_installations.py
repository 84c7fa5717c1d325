"""Tests the files of an installation's secrets: permissions, damage, and leftovers of kills."""

import os
from pathlib import Path

import pytest

from svc_daemon.errors import StorageError
from svc_daemon.operations.installations import prepare_operator_token, prepare_secret, write_secret
from svc_daemon.paths import DataFiles


def test_a_secret_is_readable_by_its_owner_only_and_partial_files_of_a_kill_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".admin.key.0badcafe").write_text("sk-half")
    write_secret(tmp_path / "admin.key", "sk-one")
    assert (tmp_path / "admin.key").read_text() == "sk-one\n"
    assert (tmp_path / "admin.key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["admin.key"]


def test_the_secret_is_created_once(tmp_path: Path) -> None:
    files = DataFiles(tmp_path)
    first = prepare_secret(files, os.urandom)
    assert (len(first), prepare_secret(files, os.urandom)) == (32, first)
    files.secret.unlink()
    assert prepare_secret(files, os.urandom) != first


def test_a_damaged_secret_is_reported_with_a_hint_and_left_unchanged(tmp_path: Path) -> None:
    files = DataFiles(tmp_path)
    for data in (b"", b"\n", b"00ff\n", b"no hex at all", b"\xff\xfe\x00", b"0" * 66):
        files.secret.write_bytes(data)
        with pytest.raises(StorageError, match=r"damaged.*delete it"):
            prepare_secret(files, os.urandom)
        assert files.secret.read_bytes() == data


def test_each_start_creates_a_new_operator_token(tmp_path: Path) -> None:
    files = DataFiles(tmp_path)
    files.operator_token.write_bytes(b"\xff")
    first, second = (prepare_operator_token(files, os.urandom) for _ in range(2))
    assert (first != second, files.operator_token.read_text()) == (True, f"{second}\n")
