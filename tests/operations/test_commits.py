"""Tests commits whose outcome is unknown, that are canceled, or whose work runs twice."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import httpx
import pytest

from svc_daemon.databases.contract import Connection, Database
from svc_daemon.databases.sqlite import SqliteDatabase
from svc_daemon.errors import CommitUnknown
from svc_daemon.extract.extractors import Extractor
from svc_daemon.paths import DataFiles
from svc_daemon.store.migrations import migrate
from svc_daemon.store.rows.sources.sources import list_all_blobs
from tests.acceptance.installations import PATIENCE_S
from tests.api.answers import body_of, details_of
from tests.api.daemons import NOTES, Daemon, OpenState
from tests.api.loops import Loop
from tests.api.rehearsals import RehearsingDaemon
from tests.api.sessions import finalize, open_session, put_part

T = TypeVar("T")


class LosingDatabase(SqliteDatabase):
    """A database that loses the outcome of a commit, as when a connection breaks before the answer or the request."""

    #: Whether the next commit is carried out although its outcome is lost. None if its outcome is not lost.
    next_is_stored: bool | None = None

    def submit(self, work: Callable[[sqlite3.Connection], T]) -> "Future[T]":
        is_stored, self.next_is_stored = self.next_is_stored, None
        if is_stored is None:
            return super().submit(work)
        if is_stored:
            super().submit(work).result()
        lost: Future[T] = Future()
        lost.set_exception(CommitUnknown())
        return lost


def open_losing(files: DataFiles, on_broken: Callable[[Exception], None]) -> Database:
    return LosingDatabase(files.state, prepare=migrate, on_broken=on_broken)


class LosingDaemon(Daemon):
    open_state: ClassVar[OpenState] = staticmethod(open_losing)

    def lose_next(self, *, is_stored: bool) -> None:
        database = self.context.database
        assert isinstance(database, LosingDatabase)
        database.next_is_stored = is_stored


@pytest.fixture
def losing(loop: Loop, extractor: Extractor, tmp_path: Path) -> Iterator[LosingDaemon]:
    daemon = LosingDaemon(loop, tmp_path / "data", extractor)
    daemon.make_bucket()
    yield daemon
    daemon.close()


def rows_and_blobs(daemon: Daemon) -> tuple[set[str], set[str]]:
    return set(daemon.read(list_all_blobs)), set(daemon.blob_names())


def uploading(daemon: Daemon) -> Callable[[], httpx.Response]:
    file: dict[str, Any] = {"files": {"file": ("a.md", NOTES)}, "headers": {"Idempotency-Key": "k"}}
    return lambda: daemon.ask("POST", "/v1/buckets/inbox/files", **file)


def finalizing(daemon: Daemon) -> Callable[[], httpx.Response]:
    session = open_session(daemon, NOTES)
    put_part(daemon, session, NOTES, 0, len(NOTES) - 1)
    return lambda: finalize(daemon, session)


@pytest.mark.sqlite
@pytest.mark.parametrize("is_stored", [True, False])
@pytest.mark.parametrize("prepare", [uploading, finalizing])
def test_a_request_with_an_unknown_commit_keeps_its_blob_and_a_retry_ends_with_one_source(
    losing: LosingDaemon, prepare: Callable[[Daemon], Callable[[], httpx.Response]], is_stored: bool
) -> None:
    send = prepare(losing)
    losing.lose_next(is_stored=is_stored)
    answer = send()
    details_of(answer, "storage_full")
    assert answer.headers["Retry-After"] == "1"
    rows, blobs = rows_and_blobs(losing)
    assert (len(rows), len(blobs)) == (is_stored, 1)
    body_of(send(), 200 if is_stored else 201)
    rows, blobs = rows_and_blobs(losing)
    assert (len(rows), rows <= blobs) == (1, True)


@pytest.mark.parametrize("begun", [False, pytest.param(True, marks=pytest.mark.sqlite)])
def test_an_upload_that_is_canceled_during_its_commit_leaves_no_row_without_a_blob(daemon: Daemon, begun: bool) -> None:
    """A shutdown that times out cancels requests, whose commits may be queued or running."""
    may_commit, inside = threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        inside.set()
        assert may_commit.wait(PATIENCE_S)

    if begun:

        def hold(connection: Connection) -> None:
            assert isinstance(connection, sqlite3.Connection)
            connection.create_function("hold_on", 0, slow)
            connection.execute("CREATE TEMP TRIGGER held AFTER INSERT ON main.sources BEGIN SELECT hold_on(); END")

        daemon.write(hold)
    else:
        daemon.context.database.submit(slow)
    asked = daemon.asking("POST", "/v1/buckets/inbox/files", files={"file": ("a.md", NOTES)})
    uploading = daemon.loop.begin(asked())
    daemon.wait(lambda: inside.is_set() and bool(rows_and_blobs(daemon)[1]), "the blob is stored")
    uploading.cancel()
    with pytest.raises(CancelledError):
        uploading.result(PATIENCE_S)
    for _ in range(5):
        # Let the cancellation reach the commit.
        daemon.loop.call(lambda: None)
    may_commit.set()
    body_of(daemon.ask("PUT", "/v1/buckets/afterwards"), 201)
    rows, blobs = rows_and_blobs(daemon)
    assert rows <= blobs and (not begun or len(rows) == 1)


@pytest.fixture
def rehearsing(loop: Loop, extractor: Extractor, tmp_path: Path) -> Iterator[RehearsingDaemon]:
    daemon = RehearsingDaemon(loop, tmp_path / "data", extractor)
    daemon.make_bucket()
    yield daemon
    daemon.close()


def test_only_the_last_run_of_rerun_work_is_committed(rehearsing: RehearsingDaemon) -> None:
    runs: list[int] = []

    def work(connection: Connection) -> int:
        runs.append(len(connection.execute("SELECT * FROM buckets").fetchall()))
        connection.execute("DELETE FROM buckets")
        if len(runs) == 1:
            raise ValueError("only in the first run")
        return len(runs)

    assert (rehearsing.write(work), runs, rehearsing.count("buckets")) == (2, [1, 1], 0)


def test_a_rerun_update_of_the_chunking_keeps_the_changes_of_another_writer(rehearsing: RehearsingDaemon) -> None:
    rehearsing.patch("/v1/buckets/inbox", chunking={"target": 900})

    def change(connection: Connection) -> None:
        sizes = '\'{"target": 900, "min": 500, "max": 1100, "overlap": 50}\''
        connection.execute(f"UPDATE buckets SET chunking = {sizes}")

    rehearsing.state.between = change
    changed = rehearsing.patch("/v1/buckets/inbox", chunking={"max": 1000})
    assert changed["chunking"] == {"target": 900, "min": 500, "max": 1000, "overlap": 50}
