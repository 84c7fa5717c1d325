"""A backup that lacks files or has odd ones is restored with a line for each, or refused in words that help."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from svc_daemon.core.access.api_keys import mint
from svc_daemon.store.files.backups import BackupRefused
from tests.acceptance.backups import Stage, make_backup, put_hard_link, put_link, put_pipe, restore_backup
from tests.conftest import MakeInstallation

pytestmark = [pytest.mark.sqlite, pytest.mark.folders]

#: A key that no installation has.
FOREIGN = mint("key_" + "0" * 26, bytes(32))


#: What somebody has put in the place of the backup's admin key.
ODD_KEYS: dict[str, Callable[[Path, Path], object]] = {
    "link": put_link,
    "hard link": put_hard_link,
    "pipe": lambda path, _: put_pipe(path),
    "large": lambda path, _: path.write_text("x" * 10**7),
    "bytes": lambda path, _: path.write_bytes(b"\xff" * 96),
    "foreign": lambda path, _: path.write_text(FOREIGN),
    "nothing": lambda path, _: path.write_text(""),
}


@pytest.mark.parametrize("name", ODD_KEYS)
@pytest.mark.parametrize("text", ["theirs", FOREIGN])
def test_admin_key_that_is_none_of_the_backup_is_left_out_with_a_line(stage: Stage, name: str, text: str) -> None:
    theirs = stage.home / ".bashrc"
    theirs.write_text(text)
    ODD_KEYS[name](stage.backup / "admin.key", theirs)
    before = stage.outside()
    made = restore_backup(stage.backup, stage.data)
    assert [message.partition(" ")[0] for message in made.lost] == ["admin.key"]
    assert (stage.outside(), made.is_whole) == (before, False)
    assert not (stage.data / "admin.key").exists()


def test_admin_key_that_several_backups_share_is_restored(stage: Stage, data: Path) -> None:
    second = make_backup(data, stage.backups).backup.path
    assert (second / "admin.key").stat().st_nlink == 2
    assert restore_backup(second, stage.data).is_whole
    assert (stage.data / "admin.key").read_text() == (data / "admin.key").read_text()


@pytest.mark.parametrize("name", ["secret", "admin.key"])
@pytest.mark.parametrize("how", ["flipped", "missing", "not summed"])
def test_secret_or_admin_key_that_is_not_the_one_of_the_backup_is_lost(stage: Stage, name: str, how: str) -> None:
    path, record = stage.backup / name, stage.backup / "backup.json"
    text, fields = path.read_text(), json.loads(record.read_text())
    assert fields["sums"][name] == hashlib.sha256(text.encode()).hexdigest()
    if how == "flipped":
        # It still has the form of a secret or a key.
        path.write_text(text.replace(text[20], "0" if text[20] != "0" else "1", 1))
    elif how == "missing":
        path.unlink()
    else:
        record.write_text(json.dumps({key: value for key, value in fields.items() if key != "sums"}))
    made = restore_backup(stage.backup, stage.data)
    assert (made.is_whole, (stage.data / name).exists()) == (how == "not summed", how == "not summed")
    assert len(made.lost) == (how != "not summed")


def test_damage_of_the_last_backups_secret_does_not_reach_the_next_backup(stage: Stage, data: Path) -> None:
    path = stage.backup / "secret"
    stat = path.stat()
    path.write_text("0" * stat.st_size)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    again = make_backup(data, stage.backups).backup
    assert (again.path / "secret").read_text() == (data / "secret").read_text()


def test_damaged_state_does_not_hide_which_files_are_lost(stage: Stage) -> None:
    # The pages of two indexes are swapped, so that one lacks a row.
    pages = "(SELECT name, rootpage FROM sqlite_master WHERE name IN ('uploads_open', 'uploads_of_batch'))"
    swap = f"UPDATE sqlite_master SET rootpage = o.rootpage FROM {pages} o"
    swap += " WHERE sqlite_master.name IN ('uploads_open', 'uploads_of_batch') AND o.name <> sqlite_master.name"
    stage.sql("PRAGMA writable_schema = ON", swap)
    lost, damaged, _ = sorted((stage.backup / "blobs").iterdir())
    lost.unlink()
    damaged.write_text("other bytes")
    made = restore_backup(stage.backup, stage.data)
    assert {problem["invariant"] for problem in made.as_json()["problems"]} == {"I10"}
    assert made.lost == [f"blob {path.name} is missing or damaged" for path in (lost, damaged)]


@pytest.mark.parametrize("has_begun", [False, True])
def test_backup_without_any_stored_file_is_refused_and_nothing_is_left(
    stage: Stage, data: Path, has_begun: bool
) -> None:
    for path in (stage.backup / "blobs").iterdir():
        path.unlink()
    if has_begun:
        (stage.data / "restoring").mkdir(parents=True)
        started_at = json.loads((stage.backup / "backup.json").read_text())["started_at"]
        origin = json.dumps({"backup": str(stage.backup), "started_at": started_at})
        (stage.data / "restoring" / "restoring.json").write_text(origin)
    with pytest.raises(BackupRefused) as refused:
        restore_backup(stage.backup, stage.data)
    assert "none of the 3 stored files" in str(refused.value)
    assert "volume" not in str(refused.value)
    assert not (stage.data / "restoring").exists()
    assert restore_backup(make_backup(data, stage.root / "good").backup.path, stage.data).is_whole


#: Contents of `backup.json`, and what the error says of each.
RECORDS = {
    "[]": "it is no JSON object",
    "7": "it is no JSON object",
    "null": "it is no JSON object",
    "": "it is no JSON object",
    "{": "it is no JSON object",
    "{}": "number: is missing",
    '{"v": "1"}': "v: ",
    '{"v": null}': "v: ",
    '{"v": [1]}': "v: ",
    '{"v": 2}': "later release",
    '{"v": 2, "version": ["\\u001b[2J"]}': "later release",
}
PYTHONS = ("NoneType", "KeyError", "instance", "Expecting", "Errno", "not supported", "char 0", "indices", "Traceback")


@pytest.mark.parametrize("text", RECORDS)
def test_record_of_a_backup_with_another_shape_is_refused_in_our_own_words(
    make_installation: MakeInstallation, stage: Stage, text: str
) -> None:
    (stage.backup / "backup.json").write_text(text)
    installation = make_installation()
    installation.root.mkdir(parents=True, exist_ok=True)
    finished = installation.operate("restore", str(stage.backup))
    (error,) = finished.stderr.splitlines()
    assert (finished.exit, RECORDS[text] in error) == (2, True), finished
    assert error.endswith(("Remove it, or choose another.", "Install that release."))
    assert not [word for word in PYTHONS if word in finished.stderr]


@pytest.mark.parametrize("field", ["started_at", "sources", "indexes", "installation_id"])
def test_field_of_a_backup_of_another_type_is_named(stage: Stage, field: str) -> None:
    record = stage.backup / "backup.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {field: "x" if field == "started_at" else [None]}))
    with pytest.raises(BackupRefused, match=f"backup.json is damaged: {field}: "):
        restore_backup(stage.backup, stage.data)


@pytest.mark.parametrize("name", ["log/daemon.log", "log/start.log", "start.lock", "daemon.json"])
@pytest.mark.parametrize("put", [put_link, put_hard_link])
def test_links_in_a_data_directory_in_use_change_no_file_of_others(
    make_installation: MakeInstallation, tmp_path: Path, name: str, put: Callable[[Path, Path], object]
) -> None:
    installation = make_installation()
    theirs, link = tmp_path / "theirs", installation.files.root / name
    theirs.write_text("theirs\n")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.touch()
    put(link, theirs)
    finished = installation.svc("daemon", "start")
    installation.svc("daemon", "stop")
    assert theirs.read_text() == "theirs\n"
    assert "Traceback" not in finished.stderr
    if name in ("log/daemon.log", "start.lock"):
        assert finished.exit != 0
        assert "it is a link, or not a file of its own" in finished.stderr
