"""What nodes share through a PostgreSQL server besides data: locks, notices (messages) and the server's clock.

- A node takes all locks on one connection. If the node dies or loses this connection, the server frees the locks.
- After a loss, the node opens a new connection, and asks the server to end the lost one.
- Another connection receives notices. While it is lost, notices are missed, so `on_listening` is called each time it is
  opened.
"""

import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import psycopg

from svc_daemon.cluster.postgres.servers import (
    ENGINE,
    NoConnection,
    PostgresServer,
    ServerConnection,
    find_cause,
    unavailable,
)
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ShuttingDown, StoreUnavailable

log = logging.getLogger(__name__)

T = TypeVar("T")

#: How often to check the connection and read the server's clock, in seconds: while locks are held, and while none is.
BEAT_S, IDLE_BEAT_S = 4.0, 15.0
#: How often to check that the connection for notices works, in seconds. The server's end closes it at once otherwise.
LISTEN_CHECK_S = 60.0
#: How long to wait for notices at a time, in seconds. Closing may take as long.
LISTEN_S = 0.5
#: Pause in seconds before a lost connection for notices is opened again.
REOPEN_S = 0.5
#: The channel for notices, the messages between nodes.
CHANNEL = "svc"
#: With these settings, the server soon frees the locks of a lost node.
_SETTINGS = (
    "tcp_keepalives_idle = 4",
    "tcp_keepalives_interval = 2",
    "tcp_keepalives_count = 3",
    "tcp_user_timeout = 10000",
    "statement_timeout = '10s'",
)
#: A statement that takes longer than this, in seconds, shows that the server hangs.
PATIENCE_S = 12.0
#: Ends the connection of a suspended process, to free its locks. TCP keepalives don't detect a suspended process.
_SUSPENDED, _MAY_REST = "SET idle_session_timeout = '15s'", "SET idle_session_timeout = 0"


@dataclass(frozen=True, slots=True)
class Grip:
    """The keys of the locks that a node has taken, and the number (`epoch`) of the connection that holds them."""

    epoch: int
    keys: frozenset[int] = frozenset()


@dataclass(slots=True)
class _Request:
    """A request to the connection's thread. The future returns the locks taken."""

    taken: Collection[int] = ()
    freed: Grip | None = None
    notice: str | None = None
    future: "Future[Grip]" = field(default_factory=Future)


class LockSession:
    """The connection that holds a node's locks. Thread-safe.

    One thread uses the connection, and handles all waiting requests together.
    """

    def __init__(self, url: str, node: str, on_lost: Callable[[], object] = lambda: None) -> None:
        """Connect to the server under the unique name `node`. Raises StorageError.

        If the connection is lost, its thread calls `on_lost`.
        """
        self._server = PostgresServer(url)
        self._server.connect_first().close()
        self._name = f"svc-daemon {node}"
        self._on_lost = on_lost
        self._connection: ServerConnection | None = None
        self._process_id = 0
        self._epoch = 0
        #: The server's clock minus the local monotonic clock, in seconds.
        self._ahead_s = 0.0
        #: When the statements in progress were sent; 0 if there are none.
        self._asked_s = 0.0
        #: A sentence that says why the server can't be used, without its address; None if it can be.
        self.problem: str | None = None
        #: How many locks are held.
        self._held = 0
        #: Whether the server ends the connection if it is idle.
        self._is_guarded = False
        #: When to read the server's clock again.
        self._beat_due_s = 0.0
        self._queue: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._ask_lock = threading.Lock()
        self._is_closed = False
        try:
            self._connect()
        except (NoConnection, psycopg.Error) as error:
            raise unavailable(error) from error
        self._thread = threading.Thread(target=self._run, name="locks", daemon=True)
        self._thread.start()

    @property
    def epoch(self) -> int:
        """Number of the current connection. Locks taken on an earlier connection are lost."""
        return self._epoch

    def now_s(self) -> float:
        """Return the server's time, in seconds since 1970, to within one round trip."""
        return time.monotonic() + self._ahead_s

    def take(self, keys: Collection[int]) -> "Future[Grip]":
        """Take the locks in `keys` that no other node holds. Each lock must be freed as often as it was taken."""
        return self._ask(_Request(taken=keys))

    def free(self, grip: Grip) -> "Future[Grip]":
        """Free the locks. If their connection was lost, they are free already."""
        return self._ask(_Request(freed=grip))

    def notify(self, notice: str) -> None:
        """Send a notice of at most 7,999 bytes to all nodes, including this one. The notice may get lost."""
        self._ask(_Request(notice=notice))

    @property
    def waits_s(self) -> float:
        """How long the server hasn't answered the current statement, in seconds."""
        return time.monotonic() - self._asked_s if self._asked_s else 0.0

    def close(self) -> None:
        """Free all locks by closing the connection. Idempotent."""
        with self._ask_lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._queue.put(None)
        self._thread.join()
        self._server.close()

    def _ask(self, request: _Request) -> "Future[Grip]":
        with self._ask_lock:  # nothing may follow the None that stops the thread
            if self._is_closed:
                raise ShuttingDown
            self._queue.put(request)
        return request.future

    def _run(self) -> None:
        is_last = False
        while not is_last:
            wave, is_last = self._gather()
            self._asked_s = time.monotonic()
            grips = self._try(wave)
            self.problem = grips.message if isinstance(grips, StoreUnavailable) else None
            self._asked_s = 0.0
            for place, request in enumerate(wave):
                if not isinstance(grips, StoreUnavailable):
                    request.future.set_result(grips[place])
                elif request.taken:
                    request.future.set_exception(StoreUnavailable(grips.message, ENGINE))
                else:
                    request.future.set_result(Grip(self._epoch))
        if self._connection is not None:
            self._connection.close()

    def _gather(self) -> tuple[list[_Request], bool]:
        """Wait for requests, or until the connection must be checked.

        Returns all waiting requests, and whether to close the connection.
        """
        wave: list[_Request] = []
        timeout_s = BEAT_S if self._is_guarded else IDLE_BEAT_S
        if self._connection is None:
            timeout_s = REOPEN_S
        while True:
            try:
                request = self._queue.get(timeout=timeout_s)
            except queue.Empty:
                return wave, False
            if request is None:
                return wave, True
            wave.append(request)
            timeout_s = 0

    def _try(self, wave: Sequence[_Request]) -> list[Grip] | StoreUnavailable:
        """Handle the requests, on a new connection if the server has ended the idle one. Its locks are free."""
        while True:
            try:
                return self._serve(wave)
            except (NoConnection, psycopg.Error) as error:
                was_ended = self._connection is not None and self._connection.is_lost
                self._lose(error)
                if not was_ended:
                    return unavailable(error)

    def _serve(self, wave: Sequence[_Request]) -> list[Grip]:
        """Handle the requests, with one statement per kind of request. Returns the locks that each request took."""
        connection = self._connection or self._connect()
        if not self._is_guarded and any(each.taken for each in wave):
            connection.run(_SUSPENDED)
            self._is_guarded = True
        elif self._is_guarded and not wave and not self._held:
            connection.run(_MAY_REST)
            self._is_guarded = False
        freed = [key for each in wave if each.freed and each.freed.epoch == self._epoch for key in each.freed.keys]
        notices = [each.notice for each in wave if each.notice is not None]
        if freed:
            unlock = "SELECT pg_advisory_unlock(CAST(value AS BIGINT)) FROM json_each(:values)"
            connection.execute(unlock, {"values": json.dumps(freed)})
        if notices:
            send = "SELECT pg_notify(:channel, value) FROM json_each(:values)"
            connection.execute(send, {"channel": CHANNEL, "values": json.dumps(notices)})
        got: set[int] = set()
        if wanted := [key for each in wave for key in each.taken]:
            take = (
                "SELECT CAST(value AS BIGINT) AS key FROM json_each(:values)"
                " WHERE pg_try_advisory_lock(CAST(value AS BIGINT))"
            )
            got = {row["key"] for row in connection.execute(take, {"values": json.dumps(wanted)})}
        if time.monotonic() >= self._beat_due_s:
            self._read_clock(connection)
        grips = [Grip(self._epoch, frozenset(each.taken) & got) for each in wave]
        self._held += sum(len(grip.keys) for grip in grips) - len(freed)
        return grips

    def _connect(self) -> ServerConnection:
        connection = self._connection = self._server.connect(
            *_SETTINGS, f"application_name = '{self._name}'", patience_s=PATIENCE_S
        )
        self._held, self._is_guarded = 0, False
        if self._process_id:
            # The server may not have noticed that the previous connection is lost.
            connection.execute(
                "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity"
                " WHERE pid = CAST(:pid AS INTEGER) AND application_name = :name",
                {"pid": self._process_id, "name": self._name},
            )
        self._process_id = connection.execute("SELECT pg_backend_pid() AS pid").fetchone()["pid"]
        self._read_clock(connection)
        return connection

    def _read_clock(self, connection: ServerConnection) -> None:
        began_s = time.monotonic()
        row = connection.execute(
            "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION) AS now_s"
        ).fetchone()
        ended_s = time.monotonic()
        self._ahead_s, self._beat_due_s = row["now_s"] - (began_s + ended_s) / 2, ended_s + BEAT_S / 2

    def _lose(self, error: Exception) -> None:
        if self._connection is not None:
            log.warning("the connection that holds the locks is lost: %s", find_cause(error))
            self._connection.close()
            self._connection = None
            self._epoch += 1
            self._on_lost()


def count_nodes(url: str) -> int:
    """Count the nodes connected to the database. Raises StorageError."""
    connection = PostgresServer(url).connect_first()
    try:
        row = connection.execute(
            "SELECT COUNT(*) AS nodes FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name LIKE 'svc-daemon node-%'"
        ).fetchone()
    finally:
        connection.close()
    return int(row["nodes"])


class NoticeListener:
    """Receives the notices of all nodes. Its thread replaces a lost connection."""

    def __init__(self, url: str, receive: Callable[[str], object], on_listening: Callable[[], object]) -> None:
        """The thread calls `receive` with each notice, and `on_listening` after it has connected."""
        self._server = PostgresServer(url)
        self._receive = receive
        self._on_listening = on_listening
        #: Why the server can't be reached, without its address; None if it can be. It is up to date.
        self.problem: str | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening. Idempotent."""
        self._closing.set()
        self._server.close()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self._listen()
            except (NoConnection, psycopg.Error) as error:
                self.problem = find_cause(error)
                log.debug("notices of other nodes are not received: %s", self.problem)
                self._closing.wait(REOPEN_S)

    def _listen(self) -> None:
        connection = self._server.connect(*_SETTINGS, patience_s=PATIENCE_S)
        try:
            connection.run(f"LISTEN {CHANNEL}")
            self.problem = None
            self._on_listening()
            checked_s = time.monotonic()
            while not self._closing.is_set():
                for notice in connection.notices(LISTEN_S):
                    self._receive(notice)
                if time.monotonic() - checked_s >= LISTEN_CHECK_S:
                    connection.run("SELECT 1")
                    checked_s = time.monotonic()
        finally:
            connection.close()


class ShortTransactions:
    """Runs short transactions that lock the rows they read.

    They have a connection of their own, so that they don't wait for the node's other transactions. If the server
    crashes, the last commits may be lost. Thread-safe; one transaction runs at a time.
    """

    def __init__(self, url: str) -> None:
        self._server = PostgresServer(url)
        self._lock = threading.Lock()
        self._connection: ServerConnection | None = None

    def run(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction. If the connection was lost since its last use, run it again on a new one.

        Raises StorageError.
        """
        with self._lock, _translating():
            connection = self._connection
            if connection is not None:
                try:
                    return self._run_on(connection, work)
                except psycopg.OperationalError:
                    self._forget()
            return self._run_on(self._connect(), work)

    def close(self) -> None:
        with self._lock:
            self._server.close()
            self._forget()

    def _connect(self) -> ServerConnection:
        self._connection = self._server.connect(*_SETTINGS, "synchronous_commit = off", patience_s=PATIENCE_S)
        return self._connection

    def _run_on(self, connection: ServerConnection, work: Callable[[Connection], T]) -> T:
        try:
            connection.run("BEGIN ISOLATION LEVEL READ COMMITTED")
            result = work(connection)
            connection.run("COMMIT")
        except BaseException:
            self._forget()
            raise
        return result

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


@contextmanager
def _translating() -> Iterator[None]:
    try:
        yield
    except (NoConnection, psycopg.Error) as error:
        raise unavailable(error) from error
