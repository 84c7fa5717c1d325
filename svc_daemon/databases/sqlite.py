"""One SQLite file: its connections, and the single writer that commits in groups.

Theory of operation:

- A commit costs one fsync, whatever its size. So one thread does all writes: it takes the queued work, runs each piece
  in a savepoint, commits once, and then resolves the futures.
- If a piece raises an error, only that piece is rolled back. If the commit fails, all callers get `StorageError`.
- Each thread reads on its own connection. Each read sees one snapshot.
- Only the writer checkpoints: SQLite before 3.51.3 can lose commits if two connections write and checkpoint.
- SQLite can reset the WAL (write-ahead log) only while nobody reads. If the WAL gets large, reads are briefly blocked.
- After an I/O error, nothing more is written, because a second fsync may falsely succeed. `on_broken` is called, and
  the owner restarts the process. After the restart, the failed commit may exist, so its callers get `CommitUnknown`.
"""

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from svc_daemon.core.shortages import SENTENCES, find_shortage
from svc_daemon.databases.group_commits import GroupWriter, Job, Outcome, connect, resolve
from svc_daemon.errors import CommitUnknown, ShuttingDown, StorageError

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

#: Maximum number of pieces of work per commit. Each caller waits for all of them.
GROUP_LIMIT = 256
#: At this many pages of 4 KB in the WAL, a checkpoint is made.
CHECKPOINT_PAGES = 2000
#: A checkpoint truncates the WAL file to this size.
LOG_SIZE_LIMIT_BYTES = 16 * 1024 * 1024
#: From this size of the WAL on, the writer blocks reads so that it can reset the WAL.
LOG_WAIT_BYTES = 32 * 1024 * 1024
#: After a failed reset, try again when the WAL has grown this much.
LOG_WAIT_STEP_BYTES = 8 * 1024 * 1024
#: Number of pages per step when a database is copied.
COPY_PAGES = 1024
#: How long to wait for other connections' locks, in seconds.
BUSY_TIMEOUT_S = 5
#: The `turn` of all events in SQLite (see `store.rows.events`).
LAST_TURN = 2**62
#: A file may be a stranger's backup: let its schema call only harmless functions, and check its pages.
DISTRUST = "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON"


@dataclass(slots=True)
class _Reader:
    """A thread's read-only connection. The lock is held during each read."""

    connection: sqlite3.Connection
    #: Reentrant, so that a nested read raises an error instead of waiting forever.
    lock: threading.RLock = field(default_factory=threading.RLock)


class SqliteDatabase:
    """One SQLite file. Thread-safe."""

    def __init__(
        self,
        path: Path,
        *,
        prepare: Callable[[sqlite3.Connection], None],
        on_broken: Callable[[sqlite3.Error], None] = lambda _: None,
    ) -> None:
        """Open or create the file, and let `prepare` create or upgrade its schema. Raises StorageError."""
        self.path = path
        #: Number of pieces of work committed so far.
        self.operations = 0
        #: Number of commits so far. `operations / commits` is the average number of pieces of work per commit.
        self.commits = 0
        #: Total time of the commits in seconds. Most of it is spent in fsync.
        self.commits_s = 0.0
        self._on_broken = on_broken
        self._broken: sqlite3.Error | None = None
        self._local = threading.local()
        self._readers: list[_Reader] = []
        self._readers_lock = threading.Lock()
        self._reads_ended = False
        self._may_read = threading.Event()
        self._may_read.set()
        self._log_wait_bytes = LOG_WAIT_BYTES
        self._connection = _open_prepared(path, prepare)
        self._writer = GroupWriter(f"writer:{path.name}", self._commit, GROUP_LIMIT)

    @property
    def is_broken(self) -> bool:
        """Whether an I/O error has stopped all writes."""
        return self._broken is not None

    def submit(self, work: Work[T]) -> "Future[T]":
        """Queue `work` for the writer. The future is resolved after the commit of this work."""
        if self._broken is not None:
            raise StorageError("The database takes no writes; the service must be restarted.") from self._broken
        return self._writer.submit(work)

    def write(self, work: Work[T]) -> T:
        """Run `work` in the writer thread, and wait until its changes are durable."""
        return self.submit(work).result()

    def read(self, work: Work[T]) -> T:
        """Run `work` in one snapshot. Raises StorageError after `close`."""
        with self._reading() as connection:
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                # Ignore an error of COMMIT: a read wrote nothing, and the error of `work` must not be replaced.
                with suppress(sqlite3.Error):
                    if connection.in_transaction:
                        connection.execute("COMMIT")

    def look(self, work: Work[T]) -> T:
        """Run `work`, a single statement, without a transaction. Raises StorageError after `close`."""
        with self._reading() as connection:
            return work(connection)

    def empty_log(self) -> None:
        # `_bound_log` empties it after this commit.
        self._log_wait_bytes = 0
        self.write(lambda _: None)

    def close(self) -> None:
        """Finish the queued work, interrupt reads, then close all connections. Idempotent."""
        if not self._writer.close():
            return
        with self._readers_lock:
            self._reads_ended = True
        for reader in self._readers:
            _close_reader(reader)
        self._connection.close()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Lend this thread's connection.

        Turns disk errors of a read into StorageError, and a text that is not UTF-8 into UnicodeError.
        """
        try:
            reader: _Reader = getattr(self._local, "reader", None) or self._open_reader()
            self._may_read.wait(BUSY_TIMEOUT_S)
            with reader.lock:
                if self._reads_ended:
                    raise ShuttingDown
                yield reader.connection
        except sqlite3.Error as error:
            if _is_named(error, "IOERR", "FULL", "CANTOPEN", "READONLY_"):
                raise StorageError("The disk failed a read; try again, and look at the log.") from error
            if "decode to UTF-8" in str(error):
                raise UnicodeError(str(error)) from error
            raise

    def _open_reader(self) -> _Reader:
        with self._readers_lock:
            if self._reads_ended:
                raise ShuttingDown
            connection = open_connection(self.path)
            connection.execute("PRAGMA query_only = ON")
            # Checkpoints write to the main file, and only the writer may make them.
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            reader = self._local.reader = _Reader(connection)
            self._readers.append(reader)
        return reader

    def _commit(self, group: Sequence[Job]) -> None:
        is_ending = False
        try:
            if self._broken is not None:
                raise self._broken
            self._connection.execute("BEGIN IMMEDIATE")
            outcomes = [self._run_in_savepoint(work) for work, _ in group]
            is_ending, began_s = True, time.monotonic()
            self._connection.execute("COMMIT")
        except (sqlite3.Error, MemoryError) as error:
            # Ignore an error of the rollback: the original one is reported, and nothing is committed without COMMIT.
            with suppress(sqlite3.Error, MemoryError):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            # If COMMIT failed with an I/O error, the WAL may contain the whole group, which a restart would apply.
            is_unknown = is_ending and _is_named(error, "IOERR")
            self._give_up(group, _as_sqlite(error), CommitUnknown if is_unknown else StorageError)
            return
        self.operations += len(group)
        self.commits += 1
        self.commits_s += time.monotonic() - began_s
        for (_, future), (result, failure) in zip(group, outcomes, strict=True):
            resolve(future, result, failure)
        self._bound_log()

    def _run_in_savepoint(self, work: Work[Any]) -> Outcome:
        connection = self._connection
        connection.execute("SAVEPOINT work")
        try:
            result = work(connection)
        except BaseException as error:  # passed to the caller; the group continues
            if not connection.in_transaction or _is_damage(error):
                # SQLite itself has rolled back the whole group, such as after FULL or IOERR.
                failure = _as_sqlite(error)
                # Don't write `from error`: the failure may be `error` itself, and would then be its own cause.
                raise failure from failure.__cause__
            connection.execute("ROLLBACK TO work")
            connection.execute("RELEASE work")
            if not _is_named(error, "FULL", "READONLY", "CANTOPEN"):
                return None, error
            # Callers handle a StorageError for a full or read-only disk.
            refusal = StorageError()
            refusal.__cause__ = error
            return None, refusal
        connection.execute("RELEASE work")
        return result, None

    def _give_up(self, group: Sequence[Job], error: sqlite3.Error, kind: type[StorageError]) -> None:
        """Report the error to the group's callers. If the disk or file is damaged, stop writes and call `on_broken`."""
        is_new = self._broken is None and _is_damage(error)
        if is_new:
            self._broken = error
        for _, future in group:
            failure = kind()
            failure.__cause__ = error
            resolve(future, None, failure)
        if is_new:
            self._on_broken(error)

    def _bound_log(self) -> None:
        """Reset the WAL if it is too large."""
        try:
            size_bytes = log_bytes(self.path)
            if size_bytes < self._log_wait_bytes:
                return
            self._may_read.clear()
            refused, *_ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except (sqlite3.Error, MemoryError, OSError) as error:
            self._give_up((), _as_sqlite(error), StorageError)
        else:
            self._log_wait_bytes = size_bytes + LOG_WAIT_STEP_BYTES if refused else LOG_WAIT_BYTES
        finally:
            self._may_read.set()


def open_connection(path: Path) -> sqlite3.Connection:
    """Open a connection with our settings. Transactions must be begun explicitly."""
    with ExitStack() as stack:
        connection = connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
        stack.callback(connection.close)
        connection.row_factory = sqlite3.Row
        for pragma in (
            f"busy_timeout = {BUSY_TIMEOUT_S * 1000}",
            "journal_mode = WAL",
            "synchronous = FULL",
            "foreign_keys = ON",
            "secure_delete = ON",
            f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
            f"journal_size_limit = {LOG_SIZE_LIMIT_BYTES}",
        ):
            connection.execute(f"PRAGMA {pragma}")
        connection.executescript(DISTRUST)
        # SQLite's own `lower` converts only ASCII.
        connection.create_function(
            "lowercase", 1, lambda text: None if text is None else text.lower(), deterministic=True
        )
        # In PostgreSQL, each node's writer has a number. An SQLite file has only one writer, number 0.
        connection.create_function("writer_number", 0, lambda: 0)
        # In SQLite, `seq` alone orders new events. All get the highest `turn`, to follow events copied from PostgreSQL.
        connection.create_function("this_turn", 0, lambda: LAST_TURN, deterministic=True)
        connection.create_function("unsettled_turn", 0, lambda: LAST_TURN + 1, deterministic=True)
        stack.pop_all()
    return connection


@contextmanager
def open_unchanging(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database read-only, including the WAL that a killed process may have left. No process may have it open.

    Without a WAL, the file is opened as immutable, because otherwise even a reader would create a WAL. With a WAL,
    SQLite must create a third file, `-shm`. So if the folder isn't writable, the file and its WAL are copied to a
    temporary folder.
    """
    with ExitStack() as stack:
        # Without `mode=ro`, SQLite would create a missing file.
        mode = "mode=ro" if log_bytes(path) else "mode=ro&immutable=1"
        if mode == "mode=ro" and not os.access(
            path.parent, os.W_OK, effective_ids=os.access in os.supports_effective_ids
        ):
            folder = Path(stack.enter_context(TemporaryDirectory()))
            for part in (path, path.with_name(f"{path.name}-wal")):
                shutil.copyfile(part, folder / part.name)
            path = folder / path.name
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None)
        stack.callback(connection.close)
        connection.row_factory = sqlite3.Row
        connection.executescript(DISTRUST)
        yield connection


@contextmanager
def open_copy(path: Path, named: Path | None = None) -> Iterator[sqlite3.Connection]:
    """Like `open_unchanging`, but raises StorageError, which names the file or `named`, if it can't be read."""
    try:
        with open_unchanging(path) as connection:
            yield connection
    except sqlite3.Error as error:
        raise StorageError(f"{named or path} can't be read: {error}.") from error


@contextmanager
def open_beside(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file read-only while another process may write to it. The connection makes no checkpoints."""
    opened = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    with closing(opened) as connection:
        connection.row_factory = sqlite3.Row
        connection.executescript(DISTRUST)
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000}")
        yield connection


def copy_database(source: Path, target: Path) -> None:
    """Copy the database to a new file, which the caller must sync. Raises StorageError.

    Another process may write to `source` meanwhile.
    """
    try:
        with open_beside(source) as origin, closing(sqlite3.connect(target)) as copy:
            # Copy one snapshot. Otherwise, each commit of another process would restart the copy.
            origin.execute("BEGIN")
            origin.execute("SELECT count(*) FROM sqlite_master").fetchone()
            copy.execute("PRAGMA synchronous = OFF")
            origin.backup(copy, pages=COPY_PAGES)
    except sqlite3.Error as error:
        raise StorageError(f"{source} can't be copied: {error}.") from error


def log_bytes(path: Path) -> int:
    """Return the size of the file's WAL, or 0 without one."""
    log_path = path.with_name(f"{path.name}-wal")
    return log_path.stat().st_size if log_path.exists() else 0


def _close_reader(reader: _Reader) -> None:
    """Interrupt a thread's reads until they end, then close its connection.

    If the reads never end, the connection stays open until the process ends.
    """
    for _ in range(BUSY_TIMEOUT_S * 20):
        if reader.lock.acquire(timeout=0.05):
            reader.connection.close()
            reader.lock.release()
            return
        # Interrupt in each round, because an interrupt doesn't affect statements that start later.
        reader.connection.interrupt()


def _open_prepared(path: Path, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
    """Open the writer's connection, and let `prepare` create or upgrade the schema. Raises StorageError."""
    try:
        with ExitStack() as stack:
            connection = stack.enter_context(closing(open_connection(path)))
            prepare(connection)
            stack.pop_all()
    except sqlite3.Error as error:
        # SQLite itself calls a full disk an I/O error, as of one that fails.
        shortage = find_shortage(error)
        why = SENTENCES[shortage] if shortage else f"{error}."
        raise StorageError(f"The database {path} can't be opened: {why}") from error
    return connection


def _as_sqlite(error: BaseException) -> sqlite3.Error:
    """Return the first SQLite error among this error and its causes. If there is none, convert the error to one."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, sqlite3.Error):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        cause = sqlite3.OperationalError(str(error))
        cause.__cause__ = error
    return cause


def _is_damage(error: BaseException) -> bool:
    """Whether the disk failed or the file is corrupt. A lack of resources doesn't count."""
    return _is_named(error, "IOERR", "CORRUPT", "NOTADB") and not _is_named(error, "IOERR_NOMEM", "IOERR_SHM")


def _is_named(error: BaseException, *names: str) -> bool:
    """Whether SQLite's name for the error begins with one of `names`."""
    name: str = getattr(error, "sqlite_errorname", "")
    return name.removeprefix("SQLITE_").startswith(names)
