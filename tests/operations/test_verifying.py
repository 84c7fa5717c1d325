"""`verify` reports each broken promise of a data directory, and `--repair` repairs what needs no guess."""

import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from svc_daemon.data_directory import DirectoryLocked, NoDirectory, lock_directory
from svc_daemon.errors import StorageError
from svc_daemon.offline_verify import verify_directory
from svc_daemon.paths import DataFiles
from svc_daemon.store import checks
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.operations.breakages import BROKEN, HALF, Break, overwrite
from tests.operations.directories import Whole, change

pytestmark = [pytest.mark.sqlite, pytest.mark.folders]


def test_a_whole_directory_is_reported_whole_and_counted(whole: Whole) -> None:
    verdict = whole.verify(read_data=True)
    assert list(verdict.lines()) == [f"{whole.files.root} is whole (7 sources, 7 blobs, 1 parts, 4 documents)"]
    counts = {"sources": 7, "blobs": 7, "parts": 1, "documents": 4}
    assert verdict.as_json() == {"whole": True, "problems": [], "set_aside": [], "counts": counts}


def test_an_index_that_a_kill_left_without_tables_is_no_problem(whole: Whole) -> None:
    path = whole.files.index / "team_other.db"
    change(path, "PRAGMA journal_mode = WAL")
    assert whole.verify(read_data=True).is_whole
    path.write_bytes(b"")
    assert whole.verify(read_data=True).is_whole


@pytest.mark.parametrize(("report", "is_repaired", "break_it"), BROKEN, ids=[report for report, _, _ in BROKEN])
def test_a_broken_promise_is_reported_and_repaired_where_that_is_no_guess(
    whole: Whole, report: str, is_repaired: bool, break_it: Break
) -> None:
    break_it(whole)
    problems = whole.verify().findings.problems
    invariant, message = report.split(": ", 1)
    assert {problem.invariant for problem in problems} == {invariant}
    assert message.format(**vars(whole)) in problems[0].message
    verdict = whole.verify(repair=True)
    assert (bool(verdict.repaired), verdict.is_whole) == (is_repaired, is_repaired), list(verdict.lines())
    assert whole.verify(read_data=True).is_whole == is_repaired


def test_a_folder_of_bytes_that_is_not_there_gives_up_no_source(whole: Whole) -> None:
    shutil.rmtree(whole.files.blobs)
    with pytest.raises(StorageError, match="Is a volume not mounted"):
        whole.verify(repair=True)
    whole.files.blobs.mkdir()
    with pytest.raises(StorageError, match="7 sources have their bytes there; nothing was repaired"):
        whole.verify(repair=True)
    assert [problem.invariant for problem in whole.verify().findings.problems].count("I3") == 7


@pytest.fixture
def readable(whole: Whole) -> Iterator[Path]:
    """A copy of the directory that this process may read and not write, with the log of a database that was killed."""
    root = Path(tempfile.mkdtemp())
    copy = shutil.copytree(whole.files.root, root / "data")
    with closing(sqlite3.connect(whole.files.state)) as state:
        state.execute("INSERT INTO facts VALUES ('later', 'than the file')")
        state.commit()
        for name in ("state.db", "state.db-wal"):
            shutil.copy(whole.files.root / name, copy / name)
    for path in (root, *root.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert whole.verify(read_data=True).is_whole  # all that it imports is there
    user = os.geteuid()
    os.seteuid(user or 65534)
    yield copy
    os.seteuid(user)
    for path in (root, *root.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(root)


def test_a_copy_that_cannot_be_written_is_looked_at(readable: Path) -> None:
    with pytest.raises(PermissionError):
        (readable / "anything").touch()
    assert (readable / "state.db-wal").stat().st_size > 0
    verdict = verify_directory(readable, read_data=True, repair=False)
    assert (verdict.is_whole, verdict.findings.counts["sources"]) == (True, 7)


def test_an_index_that_is_being_rebuilt_is_not_looked_at(whole: Whole) -> None:
    for index in whole.files.index.glob("*.db*"):
        index.unlink()
    assert {problem.invariant for problem in whole.verify().findings.problems} == {"I6"}
    whole.sql(
        "INSERT INTO tasks (id, team_id, type, status, attempt, token, max_attempts, chunks_done, created_at)"
        " SELECT 'task_rebuild', id, 'store_rebuild', 'queued', 0, 0, 3, 0, '2026-01-01T00:00:00.000Z' FROM teams"
    )
    assert whole.verify(read_data=True).is_whole


def test_wrong_bytes_of_the_right_size_are_reported_when_read_and_set_aside(whole: Whole) -> None:
    path = whole.files.blobs / whole.source
    overwrite(path)
    damaged = path.read_bytes()
    assert whole.problems() == []
    (problem,) = whole.problems(read_data=True)
    assert problem.startswith(f"I2: blob {whole.source} of source {whole.source} hashes to ")
    assert whole.verify(read_data=True, repair=True).is_whole
    assert ((whole.files.damaged / whole.source).read_bytes(), path.exists()) == (damaged, False)


def test_a_text_that_is_not_its_chunks_is_reported_when_read(whole: Whole) -> None:
    whole.change_index("UPDATE chunks SET text = 'other' WHERE chunk_key = (SELECT min(chunk_key) FROM chunks)")
    assert whole.problems() == []
    problems = whole.problems(read_data=True)
    assert f"I6: the search index of {whole.team}: 1 chunks of {whole.source} do not match its text" in problems
    assert any("its postings are not those of its texts" in line for line in problems)
    assert whole.verify(read_data=True, repair=True).is_whole


FLIPPED = {
    "sources have tags that is not JSON": "UPDATE sources SET tags = '[1'",
    "idempotency have answer that is not JSON": "UPDATE idempotency SET answer = '{'",
    "sources have an unknown status": "UPDATE sources SET status = 'activd'",
    "uploads have an unknown status": "UPDATE uploads SET status = 'opem'",
}


@pytest.mark.parametrize("report", ["", *FLIPPED])
def test_damage_of_the_state_is_reported_and_nothing_is_repaired(whole: Whole, report: str) -> None:
    if report:
        whole.sql("PRAGMA ignore_check_constraints = ON", FLIPPED[report])
    else:
        pages = whole.files.state.read_bytes()
        whole.files.state.write_bytes(pages[:4096] + os.urandom(8192) + pages[12_288:])
    (whole.files.staging / HALF).touch()
    verdict = whole.verify(repair=True)
    assert {problem.invariant for problem in verdict.findings.problems} == {"I10"}
    assert report in verdict.findings.problems[0].message
    assert (verdict.repaired, (whole.files.staging / HALF).exists()) == ([], True)


def test_every_column_of_json_and_every_state_is_looked_at(whole: Whole) -> None:
    with closing(sqlite3.connect(whole.files.state)) as state:
        tables = state.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        checked = {
            (name, column) for name, sql in tables for column in re.findall(r"(\w*status|lane) TEXT[^,]* CHECK", sql)
        }
        for table, columns in checks.JSON_COLUMNS.items():
            assert set(columns) <= {row[1] for row in state.execute(f"PRAGMA table_info({table})")}
    assert set(checks.STATES) == checked


def _snapshot(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_looking_changes_nothing(whole: Whole) -> None:
    (whole.files.blobs / whole.source).unlink()
    (whole.files.staging / HALF).touch()
    before = _snapshot(whole.files.root)
    assert (len(whole.problems(read_data=True)), _snapshot(whole.files.root)) == (2, before)


def test_what_a_kill_left_in_the_logs_is_read_and_left_there(daemon: Daemon, tmp_path: Path) -> None:
    source_id = daemon.add_source()
    daemon.start()
    daemon.wait_ready(source_id)
    daemon.stop()
    # As a kill leaves it: the logs are still there.
    killed = shutil.copytree(daemon.files.root, tmp_path / "killed", ignore=shutil.ignore_patterns("*-shm"))
    before = _snapshot(killed)
    assert any(path.name == "state.db-wal" and data for path, data in before.items())
    verdict = verify_directory(killed, read_data=True, repair=False)
    assert (verdict.is_whole, verdict.findings.counts["sources"]) == (True, 1)
    assert {path: data for path, data in _snapshot(killed).items() if path in before} == before


def test_a_lost_file_fails_its_source_and_a_retry_finds_nothing(whole: Whole, make_daemon: MakeDaemon) -> None:
    (whole.files.blobs / whole.source).unlink()
    assert next(whole.verify(repair=True).lines()) == f"repaired I3: source {whole.source} has no blob"
    daemon = make_daemon("data")
    daemon.start()
    source = daemon.source(whole.source)
    assert (source["status"], source["error"]["code"]) == ("failed", "stored_bytes_lost")
    assert whole.source not in daemon.found("umber quay paragraph")
    assert daemon.ask("POST", f"/v1/sources/{whole.source}/retry").is_success
    assert daemon.wait_status(whole.source, "failed")["error"]["code"] == "stored_bytes_lost"


def test_a_damaged_index_is_made_again_from_the_stored_bytes(whole: Whole, make_daemon: MakeDaemon) -> None:
    overwrite(whole.index)
    assert whole.verify(repair=True).is_whole
    daemon = make_daemon("data")
    first_task = daemon.source(whole.source)["task"]
    assert daemon.source(whole.source)["status"] == "active"
    daemon.start()
    daemon.wait_ready(whole.source, whole.shared, whole.imported, whole.question, whole.queued)
    assert daemon.source(whole.source)["task"] == first_task
    assert whole.source in daemon.found("umber quay paragraph")
    daemon.close()
    assert whole.problems(read_data=True) == []


def test_a_copy_that_somebody_put_beside_an_index_is_none_of_ours(whole: Whole) -> None:
    kept = Path(shutil.copy(whole.index, whole.index.with_name(f"{whole.team} (copy).db")))
    (whole.files.staging / HALF).touch()
    assert whole.verify(repair=True).is_whole and kept.exists()


def test_a_deletion_goes_on_after_a_repair(whole: Whole, make_daemon: MakeDaemon) -> None:
    whole.sql(f"UPDATE buckets SET status = 'deleting' WHERE id = '{whole.other}'")
    assert whole.verify(repair=True).is_whole
    daemon = make_daemon("data")
    daemon.start()
    daemon.wait(lambda: daemon.count("buckets") == 1, "the bucket is gone")
    daemon.wait_ready(whole.shared)


def test_a_directory_in_use_is_not_looked_at(whole: Whole) -> None:
    with lock_directory(whole.files), pytest.raises(DirectoryLocked, match="Another process is using"):
        whole.verify()


def test_a_database_of_another_release_is_refused(whole: Whole) -> None:
    whole.sql("INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('state', 'm999_later', '')")
    with pytest.raises(StorageError, match="newer release"):
        whole.verify(repair=True)
    whole.sql("DELETE FROM _sqlite_migrations WHERE name IN ('m999_later', 'm007_rechunking')")
    with pytest.raises(StorageError, match="before the first release"):
        whole.verify()


def test_a_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoDirectory, match="no data directory"):
        verify_directory(DataFiles(tmp_path / "none").root, read_data=False, repair=False)
    assert not (tmp_path / "none").exists()
