"""Tests that a commit with an unknown outcome deletes no blob, since rows that need it may exist."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from sqlite3 import Connection
from typing import ClassVar, TypeVar

import httpx
import pytest

from svc_daemon.databases.contract import Database
from svc_daemon.databases.sqlite import SqliteDatabase
from svc_daemon.errors import CommitUnknown
from svc_daemon.extract.extractors import Extractor
from svc_daemon.paths import DataFiles
from svc_daemon.store.migrations import migrate
from svc_daemon.store.sources import list_all_blobs
from tests.api.answers import body_of, details_of
from tests.api.daemons import NOTES, Daemon, OpenState
from tests.api.loops import Loop
from tests.api.sessions import finalize, open_session, put_part

pytestmark = pytest.mark.sqlite

T = TypeVar("T")


class LosingDatabase(SqliteDatabase):
    """A database that loses the outcome of a commit, as when a connection breaks before the answer or the request."""

    #: Whether the next commit is carried out although its outcome is lost. None if its outcome is not lost.
    next_is_stored: bool | None = None

    def submit(self, work: Callable[[Connection], T]) -> "Future[T]":
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


@pytest.mark.parametrize("is_stored", [True, False])
def test_an_upload_with_an_unknown_commit_keeps_its_blob_and_a_retry_ends_with_one_source(
    losing: LosingDaemon, is_stored: bool
) -> None:
    def upload() -> httpx.Response:
        file = {"file": ("a.md", NOTES)}
        return losing.ask("POST", "/v1/buckets/inbox/files", files=file, headers={"Idempotency-Key": "k"})

    losing.lose_next(is_stored=is_stored)
    answer = upload()
    details_of(answer, "storage_full")
    assert answer.headers["Retry-After"] == "1"
    rows, blobs = rows_and_blobs(losing)
    assert (len(rows), len(blobs)) == (is_stored, 1)
    body_of(upload(), 200 if is_stored else 201)
    rows, blobs = rows_and_blobs(losing)
    assert (len(rows), rows <= blobs) == (1, True)


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_finalize_with_an_unknown_commit_keeps_its_blob_and_a_retry_ends_with_one_source(
    losing: LosingDaemon, is_stored: bool
) -> None:
    session = open_session(losing, NOTES)
    put_part(losing, session, NOTES, 0, len(NOTES) - 1)
    losing.lose_next(is_stored=is_stored)
    details_of(finalize(losing, session), "storage_full")
    rows, blobs = rows_and_blobs(losing)
    assert (len(rows), len(blobs)) == (is_stored, 1)
    body_of(finalize(losing, session), 200 if is_stored else 201)
    rows, blobs = rows_and_blobs(losing)
    assert (len(rows), rows <= blobs) == (1, True)
