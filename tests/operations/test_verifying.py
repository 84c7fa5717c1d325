"""Tests that `verify` reports each broken invariant of a data directory, and what `--repair` repairs."""

import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from svc_daemon.data_directory import DirectoryLocked, NoDirectory, lock_directory
from svc_daemon.databases.sqlite import SqliteDatabase
from svc_daemon.errors import StorageError
from svc_daemon.offline.backing_up import BackupOptions, back_up
from svc_daemon.offline.verify import verify_directory
from svc_daemon.paths import DataFiles
from svc_daemon.store import checks
from svc_daemon.store.files.backups import BackupFolder
from svc_daemon.store.migrations import migrate
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.operations.breakages import BROKEN, HALF, Break, overwrite
from tests.operations.directories import SampleDirectory, change

pytestmark = [pytest.mark.sqlite, pytest.mark.folders]


def test_a_directory_without_problems_is_reported_as_whole_with_its_counts(directory: SampleDirectory) -> None:
    verdict = directory.verify(read_data=True)
    assert list(verdict.lines()) == [f"{directory.files.root} is whole (7 sources, 7 blobs, 1 parts, 4 documents)"]
    counts = {"sources": 7, "blobs": 7, "parts": 1, "documents": 4}
    assert verdict.as_json() == {"whole": True, "problems": [], "set_aside": [], "counts": counts}


def test_an_index_file_without_tables_is_no_problem(directory: SampleDirectory) -> None:
    path = directory.files.index / "team_other.db"
    change(path, "PRAGMA journal_mode = WAL")
    assert directory.verify(read_data=True).is_whole
    path.write_bytes(b"")
    assert directory.verify(read_data=True).is_whole


@pytest.mark.parametrize(("report", "is_repaired", "break_it"), BROKEN, ids=[report for report, _, _ in BROKEN])
def test_a_broken_invariant_is_reported_and_repaired_if_it_is_repairable(
    directory: SampleDirectory, report: str, is_repaired: bool, break_it: Break
) -> None:
    break_it(directory)
    problems = directory.verify().findings.problems
    invariant, message = report.split(": ", 1)
    assert {problem.invariant for problem in problems} == {invariant}
    assert message.format(**vars(directory)) in problems[0].message
    verdict = directory.verify(repair=True)
    assert (bool(verdict.repaired), verdict.is_whole) == (is_repaired, is_repaired), list(verdict.lines())
    assert directory.verify(read_data=True).is_whole == is_repaired


def test_a_repair_with_a_missing_or_empty_blob_folder_is_refused(directory: SampleDirectory) -> None:
    shutil.rmtree(directory.files.blobs)
    with pytest.raises(StorageError, match="Is a volume not mounted"):
        directory.verify(repair=True)
    directory.files.blobs.mkdir()
    with pytest.raises(StorageError, match="7 sources have their bytes there; nothing was repaired"):
        directory.verify(repair=True)
    assert [problem.invariant for problem in directory.verify().findings.problems].count("I3") == 7


@pytest.fixture
def copied(directory: SampleDirectory) -> Iterator[Path]:
    """A copy of the sample directory that belongs to a user other than root, who this process is during the test."""
    root = Path(tempfile.mkdtemp())
    assert directory.verify(read_data=True).is_whole  # so that all modules are imported before the user changes
    shutil.copytree(directory.files.root, root / "data")
    user = os.geteuid()
    for path in (root, *root.rglob("*")):
        os.chown(path, user or 65534, -1)
    os.seteuid(user or 65534)
    yield root / "data"
    os.seteuid(user)
    shutil.rmtree(root)


def test_bytes_that_this_user_may_not_read_are_reported_and_never_taken_for_lost(
    directory: SampleDirectory, copied: Path
) -> None:
    path = copied / "blobs" / directory.source
    path.chmod(0)
    verdict = verify_directory(copied, read_data=True, repair=True)
    message = f"blob {directory.source} of source {directory.source} can't be read: Permission denied"
    assert [(problem.message, problem.repair) for problem in verdict.findings.problems] == [(message, None)]
    path.chmod(0o600)
    assert verify_directory(copied, read_data=True, repair=False).is_whole


def test_backup_says_why_it_lacks_bytes_that_may_not_be_read(directory: SampleDirectory, copied: Path) -> None:
    path = copied / "blobs" / directory.source
    path.chmod(0)
    options = BackupOptions(keep=1, read_data=False, now=lambda: datetime.now(UTC), report=lambda *_: None)
    made = back_up(DataFiles(copied), BackupFolder(copied.parent / "backups"), options)
    wanted = f"source {directory.source} has no blob: {path} can't be read: Permission denied."
    assert [problem.message for problem in made.problems] == [wanted]


@pytest.fixture
def readable(directory: SampleDirectory) -> Iterator[Path]:
    """A copy of the sample directory that this process may read but not write, with a state log left by a kill."""
    root = Path(tempfile.mkdtemp())
    copy = shutil.copytree(directory.files.root, root / "data")
    with closing(sqlite3.connect(directory.files.state)) as state:
        state.execute("INSERT INTO facts VALUES ('later', 'than the file')")
        state.commit()
        for name in ("state.db", "state.db-wal"):
            shutil.copy(directory.files.root / name, copy / name)
    for path in (root, *root.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert directory.verify(read_data=True).is_whole  # so that all modules are imported before the user changes
    user = os.geteuid()
    os.seteuid(user or 65534)
    yield copy
    os.seteuid(user)
    for path in (root, *root.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(root)


def test_a_read_only_directory_can_be_verified(readable: Path) -> None:
    with pytest.raises(PermissionError):
        (readable / "anything").touch()
    assert (readable / "state.db-wal").stat().st_size > 0
    verdict = verify_directory(readable, read_data=True, repair=False)
    assert (verdict.is_whole, verdict.findings.counts["sources"]) == (True, 7)


def test_missing_documents_are_not_reported_while_the_index_is_being_rebuilt(directory: SampleDirectory) -> None:
    for index in directory.files.index.glob("*.db*"):
        index.unlink()
    assert {problem.invariant for problem in directory.verify().findings.problems} == {"I6"}
    directory.sql(
        "INSERT INTO tasks (id, team_id, type, status, attempt, token, max_attempts, chunks_done, created_at)"
        " SELECT 'task_rebuild', id, 'store_rebuild', 'queued', 0, 0, 3, 0, '2026-01-01T00:00:00.000Z' FROM teams"
    )
    assert directory.verify(read_data=True).is_whole


def test_a_blob_with_a_wrong_hash_is_reported_only_by_read_data_and_moved_to_damaged(
    directory: SampleDirectory,
) -> None:
    path = directory.files.blobs / directory.source
    overwrite(path)
    damaged = path.read_bytes()
    assert directory.problems() == []
    (problem,) = directory.problems(read_data=True)
    assert problem.startswith(f"I2: blob {directory.source} of source {directory.source} hashes to ")
    assert directory.verify(read_data=True, repair=True).is_whole
    assert ((directory.files.damaged / directory.source).read_bytes(), path.exists()) == (damaged, False)


def test_chunks_that_do_not_match_their_text_are_reported_only_by_read_data(directory: SampleDirectory) -> None:
    directory.change_index("UPDATE chunks SET text = 'other' WHERE chunk_key = (SELECT min(chunk_key) FROM chunks)")
    assert directory.problems() == []
    problems = directory.problems(read_data=True)
    assert f"I6: the search index of {directory.team}: 1 chunks of {directory.source} do not match its text" in problems
    assert any("its postings are not those of its texts" in line for line in problems)
    assert directory.verify(read_data=True, repair=True).is_whole


DEEP = '{"a":' * 300 + "1" + "}" * 300
FLIPPED = {
    "sources have tags that is not JSON": "UPDATE sources SET tags = '[1'",
    "sources have warnings that is not JSON or not a list": "UPDATE sources SET warnings = '7'",
    "buckets has metadata that is nested too deeply": f"UPDATE buckets SET metadata = '{DEEP}'",
    "sources has extraction that is nested too deeply": f"UPDATE sources SET extraction = '{DEEP}'",
    "idempotency have answer that is not JSON": "UPDATE idempotency SET answer = '{'",
    "sources have an unknown status": "UPDATE sources SET status = 'activd'",
    "uploads have an unknown status": "UPDATE uploads SET status = 'opem'",
}


@pytest.mark.parametrize("report", ["", *FLIPPED])
def test_a_damaged_state_database_is_reported_and_nothing_is_repaired(directory: SampleDirectory, report: str) -> None:
    if report:
        directory.sql("PRAGMA ignore_check_constraints = ON", FLIPPED[report])
    else:
        pages = directory.files.state.read_bytes()
        directory.files.state.write_bytes(pages[:4096] + os.urandom(8192) + pages[12_288:])
    (directory.files.staging / HALF).touch()
    verdict = directory.verify(repair=True)
    assert {problem.invariant for problem in verdict.findings.problems} == {"I10"}
    assert report in verdict.findings.problems[0].message
    assert (verdict.repaired, (directory.files.staging / HALF).exists()) == ([], True)


def test_the_checked_columns_exist_and_include_every_column_of_states(directory: SampleDirectory) -> None:
    with closing(sqlite3.connect(directory.files.state)) as state:
        tables = state.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        checked = {
            (name, column) for name, sql in tables for column in re.findall(r"(\w*status|lane) TEXT[^,]* CHECK", sql)
        }
        for table, columns in (*checks.JSON_COLUMNS.items(), *((table, [column]) for table, column in checks.STATES)):
            assert set(columns) <= {row[1] for row in state.execute(f"PRAGMA table_info({table})")}
    assert set(checks.STATES) >= checked


def _snapshot(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_verifying_without_repair_changes_no_file(directory: SampleDirectory) -> None:
    (directory.files.blobs / directory.source).unlink()
    (directory.files.staging / HALF).touch()
    before = _snapshot(directory.files.root)
    assert (len(directory.problems(read_data=True)), _snapshot(directory.files.root)) == (2, before)


def test_database_logs_left_by_a_kill_are_read_and_not_changed(daemon: Daemon, tmp_path: Path) -> None:
    source_id = daemon.add_source()
    daemon.start()
    daemon.wait_ready(source_id)
    daemon.stop()
    # As after a kill, the logs are still there.
    killed = shutil.copytree(daemon.files.root, tmp_path / "killed", ignore=shutil.ignore_patterns("*-shm"))
    before = _snapshot(killed)
    assert any(path.name == "state.db-wal" and data for path, data in before.items())
    verdict = verify_directory(killed, read_data=True, repair=False)
    assert (verdict.is_whole, verdict.findings.counts["sources"]) == (True, 1)
    assert {path: data for path, data in _snapshot(killed).items() if path in before} == before


def test_a_repair_fails_a_source_without_its_blob_and_a_retry_fails_too(
    directory: SampleDirectory, make_daemon: MakeDaemon
) -> None:
    (directory.files.blobs / directory.source).unlink()
    assert next(directory.verify(repair=True).lines()) == f"repaired I3: source {directory.source} has no blob"
    daemon = make_daemon("data")
    daemon.start()
    source = daemon.source(directory.source)
    assert (source["status"], source["error"]["code"]) == ("failed", "stored_bytes_lost")
    assert directory.source not in daemon.found("umber quay paragraph")
    assert daemon.ask("POST", f"/v1/sources/{directory.source}/retry").is_success
    assert daemon.wait_status(directory.source, "failed")["error"]["code"] == "stored_bytes_lost"


def test_a_repair_keeps_a_foreign_file_in_the_index_folder(directory: SampleDirectory) -> None:
    kept = Path(shutil.copy(directory.index, directory.index.with_name(f"{directory.team} (copy).db")))
    (directory.files.staging / HALF).touch()
    assert directory.verify(repair=True).is_whole and kept.exists()


def test_verifying_a_directory_in_use_is_refused(directory: SampleDirectory) -> None:
    with lock_directory(directory.files), pytest.raises(DirectoryLocked, match="Another process is using"):
        directory.verify()


def test_verifying_a_missing_directory_is_refused_and_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(NoDirectory, match="no data directory"):
        verify_directory(DataFiles(tmp_path / "none").root, read_data=False, repair=False)
    assert not (tmp_path / "none").exists()


BESIDE_FILES = "has 7 stored files; nothing was changed. Restore a copy of state.db"
#: What a start finds in place of the state, beside files or without any: what makes it, and how it is reported.
STATES: dict[str, tuple[Callable[[DataFiles], object], str]] = {
    "missing beside files": (lambda _: None, BESIDE_FILES),
    "empty beside files": (lambda files: files.state.touch(), BESIDE_FILES),
    # As an earlier release left it, which created the database before it reported the error.
    "new beside files": (
        lambda files: SqliteDatabase(files.state, prepare=migrate).close(),
        "the state database is new, and knows none of the 7 stored files",
    ),
    "missing": (lambda _: None, "is missing or empty: restore a backup"),
    "empty": (lambda files: files.state.touch(), "is missing or empty: restore a backup"),
    "without tables": (
        lambda files: change(files.state, "CREATE TABLE t (x)", "DROP TABLE t"),
        "the state database is empty: it has no tables",
    ),
    "lost in a restore": (lambda files: files.restoring.mkdir(), "was interrupted"),
}


@pytest.mark.parametrize("repair", [False, True])
@pytest.mark.parametrize("state", STATES)
def test_a_directory_without_a_state_has_a_problem_that_nothing_repairs(
    directory: SampleDirectory, make_daemon: MakeDaemon, state: str, repair: bool
) -> None:
    make, report = STATES[state]
    directory.files.state.unlink()
    if "beside files" not in state:
        shutil.rmtree(directory.files.blobs)
    make(directory.files)
    before = directory.stored()
    if report == BESIDE_FILES:
        with pytest.raises(StorageError, match=report):
            make_daemon("data")
    verdict = directory.verify(repair=repair)
    (problem,) = verdict.findings.problems
    assert (problem.invariant, problem.repair, verdict.is_whole) == ("I10", None, False)
    assert report in problem.message
    assert directory.stored() == before
