"""Backups contain everything acknowledged before they began and can be restored, even after kills."""

import hashlib
import json
import random
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from svc_daemon.data_directory import NotEmpty
from svc_daemon.errors import StorageError
from svc_daemon.offline.verify import verify_directory
from svc_daemon.operations.installations import refuse_lost_state
from svc_daemon.paths import DataFiles
from svc_daemon.store.files.backups import PARTIAL, BackupFolder, BackupRefused
from tests.acceptance.backups import make_backup, restore_backup, run_killed
from tests.acceptance.calls import list_sources, make_bucket
from tests.acceptance.installations import COMMAND_TIMEOUT_S, Installation, wait_until
from tests.acceptance.workloads import BUCKETS, Client, hosting
from tests.conftest import UNLIMITED, MakeInstallation

# Only for data directories: the engines of a cluster are backed up with their own programs.
pytestmark = [pytest.mark.sqlite, pytest.mark.folders]
BACKUPS, LARGE_BACKUPS = 2, 20
#: How many lines a backup and a restore are killed at.
KILLS, LARGE_KILLS = 4, 150
BUCKET = "inbox"
PIPES: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def rows(data: Path) -> dict[str, str]:
    """Return the SHA-256 of each source in a data directory, by source id."""
    with closing(sqlite3.connect(f"file:{data}/state.db?mode=ro", uri=True)) as state:
        return dict(state.execute("SELECT id, sha256 FROM sources").fetchall())


def revision(installation: Installation) -> int:
    """Return the bucket's revision from the API."""
    with installation.client() as client:
        return int(client.get(f"/v1/buckets/{BUCKET}").json()["revision"])


def restored(folder: Path, data: Path) -> dict[str, str]:
    """Restore the newest backup, assert that verifying finds no fault, and return the hashes of the sources."""
    assert restore_backup(folder, data).is_whole
    verdict = verify_directory(data, read_data=True, repair=False)
    assert verdict.is_whole, list(verdict.lines())
    return rows(data)


@pytest.mark.rule("backup.complete")
def test_backup_during_load_and_kills_contains_all_acknowledged_sources(
    make_installation: MakeInstallation, tmp_path: Path, large: bool
) -> None:
    count = LARGE_BACKUPS if large else BACKUPS
    limits = {"SVC_LIMIT_WEBHOOK_RETRY_SECONDS": "1", "SVC_LIMIT_TASK_ATTEMPTS": "100"}
    installation = make_installation(**UNLIMITED, **limits, SVC_FETCH_ALLOW="127.0.0.0/8").start()
    with hosting() as site:
        with installation.client() as client:
            for bucket in BUCKETS:
                make_bucket(client, bucket)
        clients = [Client(installation, site, number, 10**6) for number in range(3)]
        for each in clients:
            each.start()
        try:
            for turn in range(count):
                _check_backup(installation, clients, tmp_path, turn)
        finally:
            for each in clients:
                each.is_stopped = True
            for each in clients:
                each.join()
        assert [each.failure for each in clients if each.failure] == []
    wait_until(lambda: _is_idle(installation), "all work is done")
    installation.assert_intact()
    # Some of the killed runs may have completed their backup.
    assert min(count, 7) <= len(BackupFolder(tmp_path / "backups").list_backups()) <= 7


def _check_backup(installation: Installation, clients: Sequence[Client], tmp_path: Path, turn: int) -> None:
    """Kill one backup, make another, killing the daemon meanwhile in odd turns, and check the restored data."""
    moments, folder, data = random.Random(turn), tmp_path / "backups", tmp_path / f"restored{turn}"
    done = sum(each.done.total() for each in clients)
    wait_until(lambda: sum(each.done.total() for each in clients) > done + 15, "some operations")
    with installation.spawn("svc_daemon", "backup", str(folder), **PIPES) as killed:
        clients[0].join(moments.uniform(0, 0.3))
        killed.kill()
    promised = [made for each in clients for made in list(each.made)]
    with installation.spawn("svc_daemon", "backup", str(folder), "--json", **PIPES) as process:
        if turn % 2:
            clients[0].join(moments.uniform(0, 0.3))
            installation.crash()
        out, _ = process.communicate(timeout=COMMAND_TIMEOUT_S)
    summary = json.loads(out)
    assert (process.returncode, summary["problems"]) == (0, [])
    found = restored(folder, data)
    # Afterwards each client knows whether its operation during the backup has deleted a source.
    were = {each: each.done.total() for each in clients}
    wait_until(lambda: all(each.done.total() > were[each] for each in clients), "an operation of each client")
    assert [made for made in promised if not made.is_deleted and made.sha256 not in (None, found[made.id])] == []
    shutil.rmtree(data)


def _note(number: int) -> bytes:
    return f"# Note {number}\n\nThe umber quay number{number} was built of grey stone.\n".encode()


def digest(folder: Path) -> str:
    """Return a hash of the names and contents of all files."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(str(path).encode() + path.read_bytes() for path in paths)).hexdigest()


@pytest.mark.rule("backup.killed")
def test_backup_killed_at_any_line_keeps_an_earlier_one_and_succeeds_when_run_again(
    data: Path, tmp_path: Path, large: bool
) -> None:
    folder, copy = tmp_path / "backups", tmp_path / "data"
    shutil.copytree(data, copy, ignore=shutil.ignore_patterns("scratch"))
    make_backup(copy, folder)
    lines = run_killed(lambda: make_backup(copy, folder), 0)
    for line in random.Random(5).sample(range(1, lines), min(LARGE_KILLS if large else KILLS, lines - 1)):
        before = {backup.path: digest(backup.path) for backup in BackupFolder(folder).list_backups()}
        assert run_killed(lambda: make_backup(copy, folder, keep=2), line) <= line
        after = {backup.path: digest(backup.path) for backup in BackupFolder(folder).list_backups()}
        # A backup that was complete when its process was killed is listed too.
        assert before.items() & after.items() and all(before.get(path, found) == found for path, found in after.items())
        assert make_backup(copy, folder, keep=2).problems == []
        assert not (folder / PARTIAL).exists()
    assert restored(folder, tmp_path / "again") == rows(copy)


@pytest.mark.rule("backup.restore-killed")
def test_restore_killed_at_any_line_resumes_and_the_daemon_refuses_partial_data(
    data: Path, tmp_path: Path, large: bool
) -> None:
    folder = tmp_path / "backups"
    make_backup(data, folder)
    lines = run_killed(lambda: restore_backup(folder, tmp_path / "whole"), 0)
    assert rows(tmp_path / "whole") == rows(data)
    for line in random.Random(6).sample(range(1, lines), min(LARGE_KILLS if large else KILLS, lines - 1)):
        target = tmp_path / f"killed{line}"
        run_killed(lambda: restore_backup(folder, target), line)  # noqa: B023
        if (target / "restoring").exists():
            with pytest.raises(StorageError, match="svc-daemon restore"):
                refuse_lost_state(DataFiles(target))
        if not (target / "state.db").exists() or (target / "restoring").exists():
            assert restored(folder, target) == rows(data)
        assert verify_directory(target, read_data=True, repair=False).is_whole
        assert [path.read_bytes() for path in (target / "parts").iterdir()] == [b"0123456789"]
        shutil.rmtree(target)


@pytest.mark.rule("backup.links")
def test_second_backup_hard_links_to_the_first_and_never_to_stored_files(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    first, second = (make_backup(data, folder) for _ in range(2))
    assert (first.counts.copied, second.counts.copied, second.counts.linked) == (6, 0, 7)
    for path in (data / "blobs").iterdir():
        copies = [(each.backup.path / "blobs" / path.name).stat() for each in (first, second)]
        assert (path.stat().st_nlink, {copy.st_ino for copy in copies}) == (1, {copies[0].st_ino})
    assert make_backup(data, folder, keep=1).removed == 2
    assert (len(list(folder.iterdir())), restored(folder, tmp_path / "new")) == (1, rows(data))


@pytest.mark.rule("backup.checked")
def test_backup_reports_damaged_files_and_later_backups_replace_damaged_copies(data: Path, tmp_path: Path) -> None:
    copy, folder = tmp_path / "data", tmp_path / "backups"
    shutil.copytree(data, copy, ignore=shutil.ignore_patterns("scratch"))
    one, other = sorted((copy / "blobs").iterdir())[:2]
    whole = one.read_bytes()
    one.write_bytes(bytes(len(whole)))
    made = make_backup(copy, folder)
    assert [(each.invariant, one.name in each.message) for each in made.problems] == [("I3", True)]
    # The source is restored as failed, so that its file can be uploaded again.
    lost = restore_backup(folder, tmp_path / "lost")
    assert (len(lost.lost), lost.is_whole) == (1, False)
    assert verify_directory(tmp_path / "lost", read_data=True, repair=False).is_whole
    one.write_bytes(whole)
    second = make_backup(copy, folder)
    assert (second.problems, second.counts.copied) == ([], 1)
    # A damaged copy in an earlier backup is detected by `read_data` and copied again.
    (second.backup.path / "blobs" / other.name).write_bytes(bytes(other.stat().st_size))
    third = make_backup(copy, folder, read_data=True)
    assert (third.problems, third.counts.copied) == ([], 1)
    # A file that is missing in the data directory stays in the backups.
    other.unlink()
    assert make_backup(copy, folder).problems == []
    assert restored(folder, tmp_path / "new") == rows(copy)


@pytest.mark.rule("backup.secret")
def test_backup_with_a_missing_or_invalid_secret_reports_it_and_restores_without_it(data: Path, tmp_path: Path) -> None:
    copy = tmp_path / "data"
    shutil.copytree(data, copy, ignore=shutil.ignore_patterns("scratch"))
    for number, content in enumerate((b"", b"no secret", None)):
        folder, target = tmp_path / f"backups{number}", tmp_path / f"new{number}"
        (copy / "secret").write_bytes(content) if content is not None else (copy / "secret").unlink()
        made = make_backup(copy, folder)
        assert [each.invariant for each in made.problems] == ["secret"]
        back = restore_backup(folder, target)
        assert (back.is_whole, back.lost == [made.problems[0].message], (target / "secret").exists()) == (
            False,
            True,
            False,
        )
        assert rows(target) == rows(data)


@pytest.mark.rule("backup.restore")
def test_backup_and_restore_refuse_unsuitable_folders_and_damaged_or_newer_backups(data: Path, tmp_path: Path) -> None:
    folder, full = tmp_path / "backups", tmp_path / "full"
    make_backup(data, folder)
    other = tmp_path / "other"
    shutil.copytree(data, other, ignore=shutil.ignore_patterns("scratch"))
    with closing(sqlite3.connect(other / "state.db")) as state, state:
        state.execute("UPDATE facts SET value = 'ins_other' WHERE name = 'installation_id'")
    (full / "x").mkdir(parents=True)
    (full / "x" / "letter.txt").write_text("mine")
    for source, target in ((data, data / "x"), (data, data.parent), (data, full), (other, folder)):
        with pytest.raises(BackupRefused):
            make_backup(source, target)
    for target in (full, data):
        with pytest.raises(NotEmpty):
            restore_backup(folder, target)
    for target in (full, tmp_path / "gone", next(folder.iterdir()) / "blobs"):
        with pytest.raises(BackupRefused):
            restore_backup(target, tmp_path / "new")
    damaged = tmp_path / "damaged"
    shutil.copytree(folder, damaged)
    for content in (b"", b"no database" * 999, None):
        copied = next(damaged.glob("2*")) / "state.db"
        copied.unlink() if content is None else copied.write_bytes(content)
        with pytest.raises(StorageError, match="can't be read"):
            restore_backup(damaged, tmp_path / "new")
        assert copied.exists() == (content is not None)
    record = next(folder.glob("2*/backup.json"))
    for target, words in (
        (record.parent / "new", "inside"),
        (folder / "new", "among"),
        (folder / "x" / "new", "among"),
    ):
        with pytest.raises(BackupRefused, match=words):
            restore_backup(folder, target)
        assert not target.exists()
    record.write_text(record.read_text().replace('"v": 1', '"v": 2'))
    with pytest.raises(BackupRefused, match="later release"):
        restore_backup(folder, tmp_path / "new")
    assert (full / "x" / "letter.txt").read_text() == "mine"


@pytest.mark.rule("backup.revisions")
def test_sync_after_restoring_a_backup_brings_the_bucket_up_to_date_with_the_folder(
    make_installation: MakeInstallation, tmp_path: Path
) -> None:
    installation, notes, folder = make_installation(**UNLIMITED).start(), tmp_path / "notes", tmp_path / "backups"
    notes.mkdir()
    folder.mkdir(mode=0o755)
    sync = ("sync", str(notes), "-b", BUCKET, "--json", "--prune", "detach")
    for number, name in enumerate(("a.md", "edited.md", "gone.md")):
        (notes / name).write_bytes(_note(number))
    assert installation.svc(*sync).exit == 0
    made = installation.operate("backup", str(folder), "--json").json
    assert (made["type"], made["whole"], made["sources"], made["exit_code"]) == ("backup.summary", True, 3, 0)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))} == {0o700, 0o600}
    # The bucket changes after the backup, and the index of `svc sync` has its newest revision.
    (notes / "b.md").write_bytes(_note(3))
    (notes / "edited.md").write_bytes(_note(4))
    (notes / "gone.md").unlink()
    assert installation.svc(*sync).exit == 0
    newest = revision(installation)
    installation.stop()
    assert installation.operate("restore", str(folder), "--json").failure == (3, "svc_data_dir_not_empty")
    installation.files.root.rename(tmp_path / "lost")
    assert installation.operate("backup", str(folder), "--json").failure == (5, "svc_data_dir_not_found")
    assert installation.operate("restore", str(tmp_path / "notes"), "--json").failure == (2, "svc_backup_refused")
    back = installation.operate("restore", str(folder), "--json").json
    assert (back["type"], back["whole"], back["sources"], back["exit_code"]) == ("restore.summary", True, 3, 0)
    installation.start()
    assert revision(installation) > newest
    again = installation.svc(*sync)
    counts = {name: again.json["counts"][name] for name in ("created", "updated", "detached", "unchanged")}
    assert (again.exit, counts) == (0, dict.fromkeys(counts, 1)), again.json
    with installation.client() as client:
        assert sorted(source["title"] for source in list_sources(client, BUCKET)) == ["a.md", "b.md", "edited.md"]


def _is_idle(installation: Installation) -> bool:
    health = installation.health()
    return health is not None and not any(health["queue"].values())
