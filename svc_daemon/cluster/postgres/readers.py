"""The connections for reads. Each read sees one snapshot."""

import threading
from collections.abc import Callable
from typing import TypeVar

import psycopg

from svc_daemon.cluster.postgres.servers import (
    NoConnection,
    PostgresServer,
    ServerConnection,
    is_refusal,
    needs_new_connection,
    unavailable,
)
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ShuttingDown, StorageError

T = TypeVar("T")

#: Maximum number of connections, and so of concurrent reads.
MOST = 8
#: Maximum seconds that a read waits for a connection, and that `close` waits for running reads.
PATIENCE_S = 5.0
_SETTINGS = (
    "SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "statement_timeout = '60s'",
    "jit = off",
    "idle_in_transaction_session_timeout = '60s'",
)


class Readers:
    """Runs reads on any thread. Connections are opened as needed and kept."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._idle: list[ServerConnection] = []
        self._busy: set[ServerConnection] = set()
        #: Number of connections being opened.
        self._opening = 0
        self._is_closed = False
        self._changed = threading.Condition()

    def read(self, work: Callable[[Connection], T], *, in_transaction: bool) -> T:
        """Run `work`. If the connection was lost since its last use, run it again on a new one."""
        while True:
            connection = self._take()
            was_used, connection.is_used = connection.is_used, True
            try:
                return _read_in(connection, work) if in_transaction else work(connection)
            except BaseException as error:
                is_lost = connection.is_lost or needs_new_connection(error)
                if is_lost:
                    connection.close()
                if self._is_closed:
                    raise ShuttingDown from error
                if is_lost and was_used:
                    self._forget_idle()
                    continue
                if is_lost or is_refusal(error):
                    raise unavailable(error) from error
                raise
            finally:
                self._give_back(connection)

    def close(self) -> None:
        """Refuse new reads, cancel running ones, and close the connections."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._forget_idle()
        for _ in range(round(PATIENCE_S / 0.05)):
            with self._changed:
                if not self._busy or self._changed.wait_for(lambda: not self._busy, 0.05):
                    return
                running = list(self._busy)
            for connection in running:
                connection.interrupt()

    def _take(self) -> ServerConnection:
        """Wait for a free connection, or open a new one. Raises StorageError."""
        with self._changed:
            if not self._changed.wait_for(
                lambda: self._is_closed or self._idle or len(self._busy) + self._opening < MOST, PATIENCE_S
            ):
                raise StorageError("All connections to the database are in use.", retry_after_seconds=1)
            if self._is_closed:
                raise ShuttingDown
            if self._idle:
                connection = self._idle.pop()
                self._busy.add(connection)
                return connection
            self._opening += 1
        try:
            connection = self._server.connect(*_SETTINGS)
        except NoConnection as error:
            raise unavailable(error) from error
        finally:
            with self._changed:
                self._opening -= 1
                self._changed.notify_all()
        with self._changed:
            self._busy.add(connection)
        return connection

    def _give_back(self, connection: ServerConnection) -> None:
        with self._changed:
            self._busy.discard(connection)
            is_kept = not self._is_closed and not connection.is_lost
            if is_kept:
                self._idle.append(connection)
            self._changed.notify_all()
        if not is_kept:
            connection.close()

    def _forget_idle(self) -> None:
        with self._changed:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def _read_in(connection: ServerConnection, work: Callable[[Connection], T]) -> T:
    connection.run("BEGIN")
    try:
        return work(connection)
    finally:
        try:
            connection.run("ROLLBACK")
        except psycopg.Error:
            # The connection is lost, but the work's own error is more useful.
            connection.close()
