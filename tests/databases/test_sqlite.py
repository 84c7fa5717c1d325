"""The SQLite database: the contract of databases, its settings, the size of its WAL, and grouped inserts."""

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import pytest

from svc_daemon.databases.group_commits import GROUP_ROWS, group_rows
from svc_daemon.databases.sqlite import GROUP_LIMIT, LOG_SIZE_LIMIT_BYTES, LOG_WAIT_BYTES, SqliteDatabase
from tests.acceptance.installations import PATIENCE_S, wait_until
from tests.databases.contract_suite import DatabaseContract, OpenDatabase
from tests.databases.notes import held, ids, prepare


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.db"


@pytest.fixture
def database(path: Path) -> Iterator[SqliteDatabase]:
    opened = SqliteDatabase(path, prepare=prepare)
    yield opened
    opened.close()


class TestSqliteDatabase(DatabaseContract):
    group_limit = GROUP_LIMIT
    duplicate = sqlite3.IntegrityError
    wrong = interrupted = sqlite3.OperationalError

    @pytest.fixture
    def open_database(self, path: Path) -> OpenDatabase:
        return partial(SqliteDatabase, path, prepare=prepare)


def test_connections_have_the_expected_pragma_settings(database: SqliteDatabase) -> None:
    def settings(connection: Connection) -> dict[str, Any]:
        names = (
            "journal_mode",
            "synchronous",
            "foreign_keys",
            "busy_timeout",
            "trusted_schema",
            "query_only",
            "secure_delete",
        )
        return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names}

    common = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 5000, "trusted_schema": 0}
    common["secure_delete"] = 1
    assert database.write(settings) == {**common, "query_only": 0}
    assert database.read(settings) == {**common, "query_only": 1}


def _write_megabytes(database: SqliteDatabase, megabytes: int) -> int:
    """Write rows of a megabyte each, and return the largest size of the WAL meanwhile, in bytes."""
    log, peak = database.path.with_name(f"{database.path.name}-wal"), 0
    for _ in range(megabytes):
        database.write(lambda connection: connection.execute("INSERT INTO notes (text) VALUES (zeroblob(1000000))"))
        peak = max(peak, log.stat().st_size)
    return peak


def test_wal_is_truncated_after_a_long_read_ends(database: SqliteDatabase) -> None:
    with ThreadPoolExecutor(1) as pool, held(lambda hold: pool.submit(database.read, hold)):
        assert _write_megabytes(database, 24) > LOG_SIZE_LIMIT_BYTES
    _write_megabytes(database, 3)
    assert database.path.with_name("notes.db-wal").stat().st_size <= LOG_SIZE_LIMIT_BYTES


def test_deleted_row_is_in_no_file_after_the_log_was_emptied(database: SqliteDatabase) -> None:
    for statement in ("INSERT INTO notes (text) VALUES ('the umber quay')", "DELETE FROM notes"):
        database.write(lambda connection, statement=statement: connection.execute(statement))  # type: ignore[misc]
    files = [database.path, database.path.with_name("notes.db-wal")]
    assert any(b"umber" in file.read_bytes() for file in files)
    database.empty_log()
    wait_until(lambda: not any(b"umber" in file.read_bytes() for file in files), "the log is empty")


def test_wal_stays_limited_while_reads_overlap_continuously(database: SqliteDatabase) -> None:
    stop = threading.Event()

    def read_on(begin: threading.Barrier) -> None:
        begin.wait(PATIENCE_S)
        while not stop.is_set():
            database.read(lambda connection: (ids(connection), stop.wait(0.05)))

    begin = threading.Barrier(4)
    with ThreadPoolExecutor(4) as pool:
        reads = [pool.submit(read_on, begin) for _ in range(4)]
        peak = _write_megabytes(database, 80)
        stop.set()
        for read in reads:
            read.result(PATIENCE_S)
    assert peak < LOG_WAIT_BYTES + 4 * 10**6


def test_single_row_inserts_are_grouped_and_other_statements_are_not() -> None:
    for row, names, group in (
        ("(:id, 'it''s :x', f(), :text)", ("id", "text"), "(?, 'it''s :x', f(), ?)"),
        ("(?, ?)", (), "(?, ?)"),
    ):
        for tail in ("", " ON CONFLICT (id) DO NOTHING"):
            head = "INSERT INTO notes (id, text)\n VALUES "
            assert group_rows(head + row + tail) == (head + ", ".join([group] * GROUP_ROWS) + tail, names)
    for other in (
        "DELETE FROM notes WHERE id = ?",
        "INSERT INTO notes (id) SELECT :id",
        "INSERT INTO notes VALUES (?)",
        "INSERT INTO notes (id) VALUES (:id) ON CONFLICT (id) DO UPDATE SET text = :text",
        "INSERT INTO notes (id) VALUES (?) ON CONFLICT (id) DO UPDATE SET text = ?",
    ):
        assert group_rows(other) is None, other
