"""The single writer: groups share commits, one that fails takes nobody along, a broken disk ends writing."""

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import pytest

from svc_daemon.databases.sqlite import GROUP_LIMIT, LOG_SIZE_LIMIT_BYTES, LOG_WAIT_BYTES, SqliteDatabase
from svc_daemon.errors import StorageError
from tests.notes import DEADLINE_S, busy_writer, held, ids, ids_in, insert, prepare, submit_all

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.db"


@pytest.fixture
def database(path: Path) -> Iterator[SqliteDatabase]:
    opened = SqliteDatabase(path, prepare=prepare)
    yield opened
    opened.close()


def test_what_waits_together_shares_one_commit_up_to_a_bound(database: SqliteDatabase) -> None:
    futures = submit_all(database, [insert(number) for number in range(GROUP_LIMIT)])
    assert [future.result(DEADLINE_S) for future in futures] == list(range(GROUP_LIMIT))
    # One commit for the work that held the writer, one for all the others.
    assert (database.operations, database.commits) == (GROUP_LIMIT + 1, 2)
    futures = submit_all(database, [insert(-number) for number in range(1, GROUP_LIMIT + 2)])
    assert (futures[-1].result(DEADLINE_S), database.commits) == (-GROUP_LIMIT - 1, 5)


def test_many_threads_write_with_fewer_commits_and_lose_nothing(database: SqliteDatabase, path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        answered = list(pool.map(lambda number: database.write(insert(number)), range(400)))
    assert answered == list(range(400))
    assert database.commits < database.operations == 400
    assert ids_in(path) == answered


def test_work_runs_in_the_order_it_was_submitted(database: SqliteDatabase) -> None:
    seen: list[int] = []

    def note(number: int, _: Connection) -> None:
        seen.append(number)

    futures = submit_all(database, [partial(note, number) for number in range(50)])
    futures[-1].result(DEADLINE_S)
    assert seen == list(range(50))


def test_work_that_raises_is_rolled_back_alone_and_its_error_is_the_callers_own(database: SqliteDatabase) -> None:
    def half_done(connection: Connection) -> None:
        connection.execute("INSERT INTO notes (id) VALUES (100)")
        raise LookupError("changed my mind")

    before, wrong, double, after, seen = submit_all(database, [insert(1), half_done, insert(1), insert(2), ids])
    # Work sees what was written before it.
    assert [future.result(DEADLINE_S) for future in (before, after, seen)] == [1, 2, [1, 2]]
    assert isinstance(wrong.exception(DEADLINE_S), LookupError)
    assert isinstance(double.exception(DEADLINE_S), sqlite3.IntegrityError)
    assert database.read(ids) == [1, 2]
    assert database.commits == 2


def test_work_can_be_cancelled_in_the_queue_and_no_more_once_it_runs(database: SqliteDatabase) -> None:
    with busy_writer(database) as running:
        kept, dropped = database.submit(insert(1)), database.submit(insert(2))
        assert dropped.cancel()
        assert not running.cancel()
    running.result(DEADLINE_S)
    kept.result(DEADLINE_S)
    assert database.read(ids) == [1]


def test_a_read_is_one_snapshot_whatever_is_committed_meanwhile(database: SqliteDatabase) -> None:
    database.write(insert(1))

    def work(connection: Connection) -> list[list[int]]:
        before = ids(connection)
        database.write(insert(2))
        return [before, ids(connection)]

    assert database.read(work) == [[1], [1]]
    assert database.read(ids) == [1, 2]


def test_a_write_is_seen_by_the_next_read_of_every_thread(database: SqliteDatabase) -> None:
    with ThreadPoolExecutor(4) as pool:
        for number in range(20):
            database.write(insert(number))
            seen = list(pool.map(lambda _: database.read(ids), range(4)))
            assert seen == [list(range(number + 1))] * 4


def test_a_read_that_fails_or_writes_changes_nothing_and_leaves_its_connection_usable(database: SqliteDatabase) -> None:
    for statement in ("INSERT INTO notes (id) VALUES (1)", "DELETE FROM notes", "DROP TABLE notes"):
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            database.read(lambda connection: connection.execute(statement))  # noqa: B023
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        database.read(lambda connection: connection.execute("SELECT * FROM absent"))
    assert database.read(ids) == []
    database.write(insert(1))
    assert database.read(ids) == [1]


def test_lowercase_knows_letters_of_every_script(database: SqliteDatabase) -> None:
    def work(connection: Connection) -> tuple[Any, ...]:
        return tuple(connection.execute("SELECT lowercase('ÀÉß ЖΔ'), lowercase(NULL)").fetchone())

    assert database.read(work) == ("àéß жδ", None)
    assert database.write(work) == ("àéß жδ", None)


def test_close_finishes_what_is_queued(path: Path) -> None:
    database = SqliteDatabase(path, prepare=prepare)
    with busy_writer(database):
        futures = [database.submit(insert(number)) for number in range(GROUP_LIMIT * 2)]
        closing = threading.Thread(target=database.close)
        closing.start()
    closing.join(DEADLINE_S)
    assert not closing.is_alive()
    assert [future.result(0) for future in futures] == list(range(GROUP_LIMIT * 2))
    assert ids_in(path) == list(range(GROUP_LIMIT * 2))


def test_nothing_is_taken_after_close(path: Path) -> None:
    database = SqliteDatabase(path, prepare=prepare)
    database.read(ids)
    database.close()
    database.close()
    with ThreadPoolExecutor(1) as pool:
        late = lambda: pool.submit(database.read, ids).result(DEADLINE_S)  # noqa: E731
        for call in (lambda: database.submit(insert(1)), lambda: database.read(ids), late):
            with pytest.raises(StorageError):
                call()
    assert not database.is_broken


def test_close_interrupts_reads_and_waits_for_their_threads(path: Path) -> None:
    database = SqliteDatabase(path, prepare=prepare)
    reading = threading.Event()

    def work(connection: Connection) -> None:
        reading.set()
        connection.execute(ENDLESS).fetchone()

    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(database.read, work)
        assert reading.wait(DEADLINE_S)
        closing = threading.Thread(target=database.close)
        closing.start()
        closing.join(DEADLINE_S)
        assert not closing.is_alive()
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            read.result(DEADLINE_S)


def test_the_files_settings_are_those_of_the_design(database: SqliteDatabase) -> None:
    def settings(connection: Connection) -> dict[str, Any]:
        names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "trusted_schema", "query_only")
        return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names}

    common = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 5000, "trusted_schema": 0}
    assert database.write(settings) == {**common, "query_only": 0}
    assert database.read(settings) == {**common, "query_only": 1}


def _write_megabytes(database: SqliteDatabase, megabytes: int) -> int:
    """Returns the largest size of the log on the way, in bytes."""
    log, peak = database.path.with_name(f"{database.path.name}-wal"), 0
    for _ in range(megabytes):
        database.write(lambda connection: connection.execute("INSERT INTO notes (text) VALUES (zeroblob(1000000))"))
        peak = max(peak, log.stat().st_size)
    return peak


def test_the_log_is_cut_back_after_a_reader_held_it_open(database: SqliteDatabase) -> None:
    with ThreadPoolExecutor(1) as pool, held(lambda hold: pool.submit(database.read, hold)):
        assert _write_megabytes(database, 24) > LOG_SIZE_LIMIT_BYTES
    _write_megabytes(database, 3)
    assert database.path.with_name("notes.db-wal").stat().st_size <= LOG_SIZE_LIMIT_BYTES


def test_readers_that_overlap_without_end_do_not_let_the_log_grow_without_end(database: SqliteDatabase) -> None:
    stop = threading.Event()

    def read_on(begin: threading.Barrier) -> None:
        begin.wait(DEADLINE_S)
        while not stop.is_set():
            database.read(lambda connection: (ids(connection), stop.wait(0.05)))

    begin = threading.Barrier(4)
    with ThreadPoolExecutor(4) as pool:
        reads = [pool.submit(read_on, begin) for _ in range(4)]
        peak = _write_megabytes(database, 80)
        stop.set()
        for read in reads:
            read.result(DEADLINE_S)
    assert peak < LOG_WAIT_BYTES + 4 * 10**6
