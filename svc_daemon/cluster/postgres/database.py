"""One PostgreSQL database: a node's writer, which commits in groups, and its readers.

Theory of operation:

- One thread does all writes of a node. It takes the queued work, runs each piece in a savepoint, commits once, and then
  resolves the futures.
- All nodes write at the same time, in SERIALIZABLE transactions. If two of them conflict, the server rolls one back
  (errors 40001 and 40P01), and its writer runs it again. After some conflicts, each piece gets its own transaction.
- A conflict concerns pages: one transaction has read a page that another has written. Workers use the newest tasks, all
  on the last page, so two nodes would nearly always conflict. They take turns instead (`Exclusive`).
- A turn is a lock of the table `turns`. A transaction can wait for it before it takes its snapshot.

A group ends in one of these ways:

    committed             the futures get the results
    refused               the server lacks a resource or can't be reached: nothing was stored, StoreUnavailable
    conflict, too often   nothing was stored, StorageError
    unknown               the connection was lost during COMMIT, so the group may be stored: CommitUnknown

If the connection is lost before COMMIT, nothing was stored. If it had been used before, the group runs again on a new
connection, because the server may have restarted.
"""

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import psycopg

from svc_daemon.cluster.postgres import servers
from svc_daemon.cluster.postgres.functions import make_functions
from svc_daemon.cluster.postgres.readers import Readers
from svc_daemon.databases.contract import Connection, Exclusive
from svc_daemon.databases.group_commits import GroupWriter, Job, Outcome, resolve
from svc_daemon.errors import CommitUnknown, StorageError, StoreUnavailable

T = TypeVar("T")

#: Maximum number of pieces of work per commit. Each has a savepoint, and the server keeps only 64 of them in memory.
GROUP_LIMIT = 64
#: Maximum attempts to commit a group and, if all of them conflict, to commit each of its pieces alone.
GROUP_TRIES, SINGLE_TRIES = 3, 40
#: After this many conflicts, a transaction no longer runs at the same time as those of other nodes.
FREE_TRIES = 2
#: Maximum pause in seconds after the first conflict, doubled after each further conflict. The actual pause is random.
FIRST_PAUSE_S = 0.01
OVERTAKEN = "Other requests have changed the same records each time."
#: Key of the lock held while a node prepares the schema.
PREPARING = 0x7376635F73746174
#: First half of the key of a writer's lock. The second half is the writer's number, the lowest that was free.
WRITER = 0x73766377
_BEGIN, _BEGIN_IN_TURN = "BEGIN; SAVEPOINT work", "BEGIN; LOCK TABLE turns IN EXCLUSIVE MODE; SAVEPOINT work"
_SETTINGS = (
    "SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "statement_timeout = '60s'",
    # Compiling a plan (JIT) takes longer than running our statements.
    "jit = off",
    # The server rolls back the transaction of a dead or suspended node after this time.
    "idle_in_transaction_session_timeout = '15s'",
    # A transaction that reads a whole table conflicts with every transaction that writes to it.
    "enable_seqscan = off",
)

#: Ends transactions of nodes that were suspended while they sent rows. The setting exists since PostgreSQL 17.
_LIMIT_TRANSACTIONS = "SELECT set_config(name, '60s', false) FROM pg_settings WHERE name = 'transaction_timeout'"


class _Conflict(Exception):
    """Another transaction conflicted with this one. The cause is the server's error."""


class _Ended(Exception):
    """A piece of work raised an error that ends its group's transaction. The cause is that error."""


class _Lost(Exception):
    """The connection was lost before COMMIT, perhaps before the transaction began."""


class PostgresDatabase:
    """A PostgreSQL database. Thread-safe."""

    #: Always false, because a node does no I/O on the database's files.
    is_broken = False

    def __init__(
        self,
        url: str,
        *,
        prepare: Callable[[Connection], None],
        join: Callable[[Connection], None] = lambda _: None,
        on_broken: Callable[[Exception], None] = lambda _: None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """Connect to the server, and let `prepare` create or upgrade the schema. Raises StorageError.

        `join` is called with each new connection of the writer. If it raises StorageError, this process must not write,
        and `on_broken` is called with that error.
        """
        #: Number of pieces of work committed so far.
        self.operations = 0
        #: Number of commits so far. `operations / commits` is the average number of pieces of work per commit.
        self.commits = 0
        #: Total time of the commits in seconds. Most of it is spent in the server.
        self.commits_s = 0.0
        #: Number of transactions rolled back because of a conflict.
        self.conflicts = 0
        self._draw = draw
        self._join, self._on_broken = join, on_broken
        self._server = servers.PostgresServer(url)
        _prepare(self._server, prepare)
        self._connection: servers.ServerConnection | None = None
        self._readers = Readers(self._server)
        self._writer = GroupWriter("writer:postgresql", self._commit, GROUP_LIMIT)

    def submit(self, work: Callable[[Connection], T]) -> "Future[T]":
        """Queue `work` for the writer. The future is resolved after the commit of this work."""
        return self._writer.submit(work)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in the writer's transaction, and wait until its changes are durable."""
        return self.submit(work).result()

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one snapshot. Raises StorageError if the database can't be reached or is closed."""
        return self._readers.read(work, in_transaction=True)

    def look(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, a single statement, without a transaction."""
        return self._readers.read(work, in_transaction=False)

    def empty_log(self) -> None:
        # The server's log is not ours.
        pass

    def close(self) -> None:
        """Finish the queued work, interrupt reads, then close all connections. Idempotent."""
        self._writer.close()
        self._readers.close()
        self._server.close()
        self._disconnect()

    def _commit(self, group: Sequence[Job]) -> None:
        """Commit the group in one transaction. After several conflicts, commit each piece of work on its own."""
        try:
            outcomes = self._try(group, GROUP_TRIES if len(group) > 1 else SINGLE_TRIES)
        except _Conflict as conflict:
            if len(group) > 1:
                for job in group:
                    self._commit([job])
                return
            outcomes = [(None, _caused(StorageError(OVERTAKEN, retry_after_seconds=1), conflict))]
        except CommitUnknown as error:
            outcomes = [(None, _caused(CommitUnknown(), error)) for _ in group]
        except StoreUnavailable as error:
            outcomes = [(None, _caused(StoreUnavailable(error.message, servers.ENGINE), error)) for _ in group]
        for (_, future), (result, failure) in zip(group, outcomes, strict=True):
            resolve(future, result, failure)

    def _try(self, group: Sequence[Job], tries: int) -> list[Outcome]:
        """Run the group until it is committed. Raises _Conflict after `tries` conflicts."""
        takes_turns = any(isinstance(work, Exclusive) for work, _ in group)
        conflicts, pause_s = 0, FIRST_PAUSE_S
        while True:
            try:
                return self._transact(group, in_turn=takes_turns or conflicts >= FREE_TRIES)
            except _Lost:
                continue
            except _Conflict:
                self.conflicts += 1
                conflicts += 1
                if conflicts == tries:
                    raise
            if conflicts < FREE_TRIES:
                time.sleep(pause_s * self._draw())
                pause_s *= 2

    def _transact(self, group: Sequence[Job], *, in_turn: bool) -> list[Outcome]:
        """Run the group in one transaction. With `in_turn`, only one node at a time does so.

        Raises _Conflict, _Lost or StoreUnavailable if nothing was stored, and CommitUnknown if it may have been stored.
        """
        connection = self._connection = self._connection or self._connect()
        was_used, connection.is_used = connection.is_used, True
        try:
            connection.run(_BEGIN_IN_TURN if in_turn else _BEGIN)
            outcomes = [self._run_piece(connection, work) for work, _ in group]
        except (psycopg.Error, _Ended) as error:
            raise self._give_up(connection, error, was_used=was_used) from error
        began_s = time.monotonic()
        try:
            tag = connection.run("COMMIT")
        except psycopg.Error as error:
            # If the server refused the COMMIT, nothing was stored, and the connection still works.
            if error.diag.severity_nonlocalized == "ERROR" and error.sqlstate != "40003":
                raise self._give_up(connection, error, was_used=False) from error
            self._disconnect()
            raise CommitUnknown from error
        if tag != "COMMIT":
            raise StoreUnavailable("PostgreSQL can't be used: it did not commit.", servers.ENGINE)
        self.operations += len(group)
        self.commits += 1
        self.commits_s += time.monotonic() - began_s
        return outcomes

    def _run_piece(self, connection: servers.ServerConnection, work: Callable[[Any], Any]) -> Outcome:
        """Run a piece of work in its savepoint, then open the next. Raises errors that end the transaction."""
        try:
            result = work(connection)
        except BaseException as error:  # passed to the caller; the group continues
            if servers.is_conflict(error) or servers.is_refusal(error) or _is_lost(connection, error):
                raise _Ended from error
            connection.run("ROLLBACK TO work")
            return None, error
        connection.run("RELEASE work; SAVEPOINT work")
        return result, None

    def _give_up(self, connection: servers.ServerConnection, error: BaseException, *, was_used: bool) -> Exception:
        """Roll back, and return the exception that says how to handle this error."""
        if not _is_lost(connection, error):
            try:
                connection.run("ROLLBACK")
            except psycopg.Error:
                connection.close()
        is_lost = _is_lost(connection, error)
        if is_lost:
            self._disconnect()
        if servers.is_conflict(error):
            return _Conflict()
        if is_lost and was_used:
            return _Lost()
        return servers.unavailable(error)

    def _connect(self) -> servers.ServerConnection:
        try:
            connection = self._server.connect(*_SETTINGS)
        except servers.NoConnection as error:
            raise servers.unavailable(error) from error
        try:
            connection.execute(
                "SELECT set_config('svc.writer', CAST(number AS TEXT), false) FROM generate_series(1, 4096) AS number"
                " WHERE pg_try_advisory_lock(:writer, number) LIMIT 1",
                {"writer": WRITER},
            )
            connection.run(_LIMIT_TRANSACTIONS)
            self._join(connection)
        except (psycopg.Error, StorageError) as error:
            connection.close()
            if isinstance(error, StorageError):
                self._on_broken(error)
            raise servers.unavailable(error) from error
        return connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _caused(failure: StorageError, cause: Exception) -> StorageError:
    """Attach the cause. Each future needs an exception of its own, because raising one changes it."""
    failure.__cause__ = cause
    return failure


def _is_lost(connection: servers.ServerConnection, error: BaseException) -> bool:
    """Whether the writer needs a new connection after this error."""
    return connection.is_lost or servers.needs_new_connection(error) or servers.is_demoted(error)


def _prepare(server: servers.PostgresServer, prepare: Callable[[Connection], None]) -> None:
    """Create or upgrade schema and functions, under a lock that only one node can hold. Raises StorageError."""
    connection = server.connect_first()
    try:
        # This transaction isn't serializable, so that it sees what the previous holder of the lock committed.
        connection.run(f"BEGIN; SELECT pg_advisory_xact_lock({PREPARING})")
        connection.run("CREATE TABLE IF NOT EXISTS turns ()")
        make_functions(connection)
        prepare(connection)
        connection.run("COMMIT")
    except psycopg.Error as error:
        raise StorageError(f"The database can't be prepared: {str(error).strip()}.") from error
    finally:
        connection.close()
