"""One SQLite file: its connections, and the single writer that commits in groups.

Theory of operation. A commit costs one fsync, whatever it holds. So all writes of a file go through one thread: it
takes everything that is queued, runs each piece of work inside its own savepoint, commits once, and only then
answers everybody. While the disk syncs, the next group gathers. A piece of work that raises is rolled back to its
savepoint and takes nobody with it; a commit that fails answers the whole group with `StorageError`, since none of it
is stored.

Readers are query-only connections, one per thread, each read in one snapshot. SQLite before 3.51.3 can lose commits
when two connections write and checkpoint, hence one writer, and only it checkpoints.

After an I/O error nothing more is written: a failed fsync may have dropped pages, and trying again would succeed
falsely. The owner is told through `on_broken` and restarts the process.
"""

import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from svc_daemon.errors import StorageError

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

#: More than this in one commit would make the first caller wait too long for the last one's work.
GROUP_LIMIT = 256
#: Pages of 4 KB in the log before the writer moves them into the file; keeps the log far under 64 MB.
CHECKPOINT_PAGES = 2000
#: The log file is cut back to this size, in bytes, after a checkpoint.
LOG_SIZE_LIMIT_BYTES = 16 * 1024 * 1024

_Job = tuple[Work[Any], "Future[Any]"]


class Database:
    """The door to one SQLite file. Thread-safe; `close` ends the writer after what is queued."""

    def __init__(
        self,
        path: Path,
        *,
        prepare: Callable[[sqlite3.Connection], None],
        on_broken: Callable[[sqlite3.Error], None] = lambda _: None,
    ) -> None:
        self.path = path
        #: Pieces of work and commits so far: their ratio shows the group commit.
        self.operations = 0
        self.commits = 0
        self._on_broken = on_broken
        self._broken: sqlite3.Error | None = None
        self._closed = False
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._readers_lock = threading.Lock()
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._submit_lock = threading.Lock()
        self._connection = open_connection(path)
        prepare(self._connection)
        self._thread = threading.Thread(target=self._run, name=f"writer:{path.name}", daemon=True)
        self._thread.start()

    @property
    def is_broken(self) -> bool:
        """Whether an I/O error has ended writing."""
        return self._broken is not None

    def submit(self, work: Work[T]) -> "Future[T]":
        """Queue `work` for the writer; the future is resolved after the commit that holds it."""
        future: Future[T] = Future()
        with self._submit_lock:  # nothing may be queued behind the mark that ends the writer
            if self._closed or self._broken is not None:
                raise StorageError("The database is closed for writing; the service must be restarted.")
            self._queue.put((work, future))
        return future

    def write(self, work: Work[T]) -> T:
        """Run `work` in the writer and wait until it is durable."""
        return self.submit(work).result()

    def read(self, work: Work[T]) -> T:
        """Run `work` on this thread's query-only connection, in one snapshot."""
        connection = self._reader()
        connection.execute("BEGIN")
        try:
            return work(connection)
        finally:
            if connection.in_transaction:
                connection.execute("COMMIT")

    def close(self) -> None:
        """Finish what is queued, then close every connection. Safe to call twice."""
        with self._submit_lock:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._thread.join()
        with self._readers_lock:
            for connection in self._readers:
                connection.close()
        self._connection.close()

    def _reader(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is not None:
            return connection
        connection = open_connection(self.path)
        connection.execute("PRAGMA query_only = ON")
        # A reader that checkpointed would be a second writer of the main file.
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        self._local.connection = connection
        with self._readers_lock:
            self._readers.append(connection)
        return connection

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            group, last = self._gather(job)
            self._commit(group)
            if last:
                return

    def _gather(self, first: _Job) -> tuple[list[_Job], bool]:
        """Everything that waits now, and whether the end mark stood behind it."""
        group = [first]
        while len(group) < GROUP_LIMIT:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                return group, False
            if job is None:
                return group, True
            group.append(job)
        return group, False

    def _commit(self, group: Sequence[_Job]) -> None:
        try:
            outcomes = self._apply(group)
        except sqlite3.Error as error:
            self._roll_back(error)
            _fail(group, error)
            return
        self.operations += len(group)
        self.commits += 1
        for (_, future), (result, failure) in zip(group, outcomes, strict=True):
            _resolve(future, result, failure)

    def _apply(self, group: Sequence[_Job]) -> list[tuple[Any, BaseException | None]]:
        if self._broken is not None:
            raise self._broken
        self._connection.execute("BEGIN IMMEDIATE")
        outcomes = [self._run_in_savepoint(work) for work, _ in group]
        self._connection.execute("COMMIT")
        return outcomes

    def _run_in_savepoint(self, work: Work[Any]) -> tuple[Any, BaseException | None]:
        connection = self._connection
        connection.execute("SAVEPOINT work")
        try:
            result = work(connection)
        except BaseException as error:  # whatever it is, it belongs to the caller, and the group goes on
            if not connection.in_transaction:
                # FULL and IOERR roll the whole transaction back by themselves: nothing of the group is left.
                raise _as_sqlite(error) from error
            connection.execute("ROLLBACK TO work")
            connection.execute("RELEASE work")
            return None, _translated(error)
        connection.execute("RELEASE work")
        return result, None

    def _roll_back(self, error: sqlite3.Error) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        if self._broken is None and error.sqlite_errorname.startswith(("SQLITE_IOERR", "SQLITE_CORRUPT")):
            self._broken = error
            self._on_broken(error)


def open_connection(path: Path) -> sqlite3.Connection:
    """A connection with the settings that every file of ours has; transactions are explicit."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    connection.row_factory = sqlite3.Row
    for pragma in (
        "busy_timeout = 5000",
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        "trusted_schema = OFF",
        f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
        f"journal_size_limit = {LOG_SIZE_LIMIT_BYTES}",
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _as_sqlite(error: BaseException) -> sqlite3.Error:
    return error if isinstance(error, sqlite3.Error) else sqlite3.OperationalError(str(error))


def _translated(error: BaseException) -> BaseException:
    """A full disk is the caller's to hear as such; anything else stays what it is."""
    if isinstance(error, sqlite3.Error) and _is_storage(error):
        return StorageError()
    return error


def _is_storage(error: sqlite3.Error) -> bool:
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN"))


def _fail(group: Sequence[_Job], error: sqlite3.Error) -> None:
    for _, future in group:
        failure = StorageError()
        failure.__cause__ = error
        _resolve(future, None, failure)


def _resolve(future: "Future[Any]", result: Any, failure: BaseException | None) -> None:
    if not future.set_running_or_notify_cancel():
        return
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(result)
