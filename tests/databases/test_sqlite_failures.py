"""The SQLite database on a full or failing disk, with a damaged file, and without memory or file descriptors."""

import resource
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path
from sqlite3 import Connection

import pytest

from svc_daemon.databases.sqlite import SqliteDatabase
from svc_daemon.errors import StorageError
from tests.acceptance.forks import ROOT
from tests.acceptance.installations import PATIENCE_S
from tests.databases.notes import ids, ids_in, insert, prepare, submit_all
from tests.limits import limited


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.db"


#: The start of each program, which opens a new database in its own process, so that limits affect no other test.
_BEGINNING = """
    import resource, sqlite3, sys
    from contextlib import suppress
    from pathlib import Path
    from svc_daemon.errors import CommitUnknown, StorageError
    from svc_daemon.databases.sqlite import SqliteDatabase
    from tests.databases.notes import ids, insert, prepare

    broken = []
    path = Path(sys.argv[1])
    database = SqliteDatabase(path, prepare=prepare, on_broken=broken.append)
"""


def run_program(source: str, path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(_BEGINNING) + textwrap.dedent(source), str(path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S * 2, check=False)
    assert ended.returncode == 0, ended.stderr


def test_full_database_refuses_a_write_and_has_all_acknowledged_ones(path: Path) -> None:
    database = SqliteDatabase(path, prepare=_prepare_small)
    sizes = [10, 10, 200_000, 10, 10]
    futures = submit_all(database, [insert(number, "x" * size) for number, size in enumerate(sizes)])
    kept = [number for number, future in enumerate(futures) if future.exception(PATIENCE_S) is None]
    refused = futures[2].exception()
    assert isinstance(refused, StorageError)
    assert isinstance(refused.__cause__, sqlite3.OperationalError)
    assert refused.__cause__.sqlite_errorname == "SQLITE_FULL"
    assert database.read(ids) == kept
    assert not database.is_broken
    assert database.write(insert(100)) == 100
    database.close()
    assert ids_in(path) == [*kept, 100]


def test_database_is_usable_after_work_turned_a_full_error_into_another(path: Path) -> None:
    database = SqliteDatabase(path, prepare=_prepare_small)

    def work(connection: Connection) -> None:
        try:
            insert(1, "x" * 200_000)(connection)
        except sqlite3.OperationalError as error:
            raise LookupError("no room") from error

    with pytest.raises((StorageError, LookupError)):
        database.submit(work).result(PATIENCE_S)
    assert database.submit(insert(2)).result(PATIENCE_S) == 2
    assert not database.is_broken
    database.close()


def _prepare_small(connection: Connection) -> None:
    prepare(connection)
    connection.execute("PRAGMA max_page_count = 20")


#: Limits the size of files, so that every further write to the WAL fails with an I/O error.
_FAILING_DISK = """
    for number in range(10):
        database.write(insert(number, "x" * 10_000))
    log_bytes = Path(f"{path}-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (log_bytes, resource.RLIM_INFINITY))
    futures = [database.submit(insert(number, "x" * 10_000)) for number in range(10, 13)]
    failures = [future.exception(30) for future in futures]
    assert all(isinstance(failure, StorageError) for failure in failures), failures
    # The WAL may have received the write before the error.
    assert isinstance(failures[0], CommitUnknown), failures
    assert failures[0].__cause__.sqlite_errorname.startswith("SQLITE_IOERR"), failures[0].__cause__
    assert database.is_broken
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    try:
        database.submit(insert(20))
    except StorageError as refused:
        assert isinstance(refused.__cause__, sqlite3.Error)
    else:
        raise AssertionError("a broken database accepted a write")
    assert database.read(ids) == list(range(10))
    database.close()
    assert len(broken) == 1, broken
"""


def test_io_error_breaks_the_writer_and_keeps_acknowledged_writes(path: Path) -> None:
    run_program(_FAILING_DISK, path)
    assert ids_in(path) == list(range(10))


def test_corruption_found_by_a_write_breaks_the_writer(path: Path) -> None:
    broken: list[sqlite3.Error] = []
    SqliteDatabase(path, prepare=_prepare_large).close()
    content = bytearray(path.read_bytes())
    # Page 1 has the schema; all pages after it are overwritten.
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    database = SqliteDatabase(path, prepare=lambda _: None, on_broken=broken.append)
    failure = database.submit(insert(1_000_000)).exception(PATIENCE_S)
    # An error that is its own cause would be an endless chain.
    assert isinstance(failure, StorageError) and failure.__cause__ is not None and failure.__cause__.__cause__ is None
    with pytest.raises(StorageError):
        database.submit(insert(1))
    database.close()
    assert [error.sqlite_errorname for error in broken] == ["SQLITE_CORRUPT"]


def _prepare_large(connection: Connection) -> None:
    prepare(connection)
    for number in range(100):
        insert(number, "x" * 3000)(connection)


def test_file_that_is_no_database_raises_a_storage_error_and_is_unchanged(path: Path) -> None:
    for content in (b"no database" * 500, b"x" * 100):
        path.write_bytes(content)
        with pytest.raises(StorageError, match=r"notes\.db"):
            SqliteDatabase(path, prepare=prepare)
        assert path.read_bytes() == content


def test_connection_is_closed_if_preparing_the_schema_fails(path: Path) -> None:
    opened: list[Connection] = []

    def prepare(connection: Connection) -> None:
        opened.append(connection)
        raise LookupError("not this one")

    with pytest.raises(LookupError):
        SqliteDatabase(path, prepare=prepare)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")


#: Sets a heap limit, so that SQLite gets no more memory.
_NO_MEMORY = """
    with suppress(MemoryError):  # the limit applies to the result of the pragma too
        sqlite3.connect(":memory:").execute("PRAGMA hard_heap_limit = 1")
    for _ in range(2):
        failure = database.submit(lambda connection: None).exception(30)
        assert isinstance(failure, StorageError), failure
    assert broken == [], broken
    database.close()
"""


def test_lack_of_memory_fails_the_write_and_does_not_break_the_writer(path: Path) -> None:
    run_program(_NO_MEMORY, path)


def test_read_without_a_file_descriptor_raises_a_storage_error(path: Path) -> None:
    database = SqliteDatabase(path, prepare=prepare)
    with limited(resource.RLIMIT_NOFILE, 0), pytest.raises(StorageError):
        database.read(ids)
    assert database.read(ids) == []
    database.close()
