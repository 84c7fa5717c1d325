"""A PostgreSQL server: opens connections, runs statements and interprets errors.

An outage begins when a connection can't be opened. Requests for connections then fail at once, until a thread that
keeps trying succeeds.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import conninfo
from psycopg.types.numeric import NumericLoader
from psycopg.types.string import StrDumper

from svc_daemon.cluster.postgres.statements import translate
from svc_daemon.databases.contract import Cursor, ParameterRows, Parameters
from svc_daemon.errors import StorageError, StoreUnavailable

log = logging.getLogger(__name__)

#: The oldest supported release, in the server's notation.
OLDEST_VERSION = 150000
#: Settings that the URL may override. With them, a lost connection is noticed within 15 seconds.
_DEFAULTS = {
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
    "fallback_application_name": "svc-daemon",
    # Refuse a server that accepts no writes, such as the former primary after a failover.
    "target_session_attrs": "read-write",
}
#: The name of this engine for programs.
ENGINE = "postgresql"
#: How long a statement may take in seconds, and on the thread of the event loop, which runs only short ones.
PATIENCE_S, LOOP_PATIENCE_S = 65.0, 8.0
#: Pause in seconds between attempts to connect during an outage.
PROBE_S = 0.5
#: Error codes for a transaction that was idle for too long, or that ran for too long.
_ENDED = ("25P03", "25P04")
#: Error code for a prepared statement whose plan is older than the latest change of the schema.
_OUTDATED = "0A000"


#: What a part of libpq's error text, in small letters, means.
_CAUSES = {
    "connection refused": "it refuses connections",
    "could not translate host name": "its name can't be resolved",
    "timeout": "it does not answer in time",
    "timed out": "it does not answer in time",
    "password authentication failed": "it refuses the user or the password",
    "no pg_hba.conf entry": "it refuses this machine or its user",
    "certificate": "its certificate is not trusted",
    "does not support ssl": "it does not offer TLS",
    "does not exist": "the database or the user does not exist",
    "too many": "it has no connection left",
    "connection slots": "it has no connection left",
    "starting up": "it is starting",
    "shutting down": "it is stopping",
    "closed the connection": "it has ended the connection",
    "administrator command": "it is stopping",
    "read-only": "it accepts no writes",
    "recovery": "it accepts no writes",
    "no space left": "its disk is full",
    "out of memory": "it is out of memory",
    "out of shared memory": "it is out of memory",
    "fatal": "it refuses the connection",
}


class NoConnection(Exception):
    """No connection could be opened. The message never contains the password."""

    def __init__(self, message: str, cause: str) -> None:
        super().__init__(message)
        #: Why, without any address.
        self.cause = cause


class PostgresRow:
    """A row with access by name and position."""

    __slots__ = ("_positions", "_values")

    def __init__(self, positions: dict[str, int], values: Sequence[Any]) -> None:
        self._positions = positions
        self._values = values

    def keys(self) -> Iterable[str]:
        return self._positions.keys()

    def __getitem__(self, column: str | int, /) -> Any:
        return self._values[column if isinstance(column, int) else self._positions[column]]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class _PatientConnection(psycopg.Connection[PostgresRow]):  # type: ignore[misc]
    """A connection that is closed if the server does not answer a statement in time."""

    #: The longest wait in seconds, longer than the server's own `statement_timeout`.
    patience_s = PATIENCE_S

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait for the server. The event loop waits less, since it serves all requests."""
        is_loop = threading.current_thread() is threading.main_thread()
        most_s = min(self.patience_s, LOOP_PATIENCE_S) if is_loop else self.patience_s
        try:
            return super().wait(gen, interval, most_s if timeout is None else timeout)
        except psycopg.errors._WaitTimeout:
            if timeout is not None:
                raise
            self.close()
            raise psycopg.OperationalError("timeout: the server hangs") from None


class ServerConnection:
    """A connection, for one thread at a time."""

    def __init__(self, opened: _PatientConnection) -> None:
        self._opened = opened
        #: Whether the connection was used before. If so, it may have been lost since then.
        self.is_used = False

    @property
    def is_lost(self) -> bool:
        return bool(self._opened.closed)

    def execute(self, statement: str, parameters: Parameters | None = None, /) -> Cursor:
        query, names = translate(statement)
        cursor: Cursor = self._opened.execute(query, _values(names, parameters or {}) or None)
        return cursor

    def executemany(self, statement: str, parameters: ParameterRows, /) -> Cursor:
        query, names = translate(statement)
        cursor = self._opened.cursor()
        cursor.executemany(query, [_values(names, each) for each in parameters])
        result: Cursor = cursor
        return result

    def run(self, commands: str) -> str:
        """Run commands without parameters in one round trip. Returns the last status, such as `COMMIT`."""
        return str(self._opened.execute(commands.encode()).statusmessage)

    def notices(self, timeout_s: float) -> Iterator[str]:
        """Yield messages from other nodes that arrive within this time."""
        for notice in self._opened.notifies(timeout=timeout_s):
            yield notice.payload

    def interrupt(self) -> None:
        """Ask the server to cancel the running statement. Called by another thread."""
        try:
            self._opened.cancel_safe(timeout=1)
        except psycopg.Error as error:
            log.debug("a read could not be canceled: %s", error)

    def close(self) -> None:
        self._opened.close()


class PostgresServer:
    """Connects to a database, and knows whether the server can be reached. Thread-safe."""

    def __init__(self, url: str) -> None:
        """Parse the URL. Raises StorageError, whose message contains no part of the URL."""
        try:
            given = conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            given = {}
        # After an unescaped @ in the password, the rest of the password is taken for the host, which errors would show.
        if not given or "@" in str(given.get("host", "")):
            raise StorageError("The URL of the database is not one of PostgreSQL; escape @, : and / in its password.")
        self._parameters = {**_DEFAULTS, **given, "client_encoding": "UTF8"}
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._is_out = False
        #: Why the last connection could not be opened.
        self._cause = ""

    def connect(self, *settings: str, patience_s: float = PATIENCE_S) -> ServerConnection:
        """Open a connection with these settings. Raises NoConnection, without waiting during an outage.

        The connection is closed if a statement takes longer than `patience_s`.
        """
        if self._is_out:
            raise NoConnection(f"PostgreSQL can't be used: {self._cause}", self._cause)
        try:
            return self._open(settings, patience_s)
        except NoConnection:
            self._begin_outage()
            raise

    def connect_first(self) -> ServerConnection:
        """Open a connection and check the server. Raises StorageError."""
        try:
            connection = self._open(())
        except NoConnection as error:
            raise StorageError(f"The database can't be reached: {error}.") from error
        row = connection.execute(
            "SELECT current_setting('server_version_num') AS number, current_setting('server_encoding') AS encoding"
        ).fetchone()
        if int(row["number"]) < OLDEST_VERSION or row["encoding"] != "UTF8":
            connection.close()
            raise StorageError("The database must be PostgreSQL 15 or newer, with the encoding UTF8.")
        return connection

    def close(self) -> None:
        """Stop the thread that tries to connect during an outage."""
        self._closing.set()

    def _open(self, settings: Sequence[str], patience_s: float = PATIENCE_S) -> ServerConnection:
        try:
            opened = _PatientConnection.connect(
                autocommit=True, cursor_factory=psycopg.RawCursor, row_factory=_make_rows, **self._parameters
            )
            opened.adapters.register_dumper(str, StrDumper)
            opened.adapters.register_loader("numeric", _SumLoader)
            opened.patience_s = patience_s
            connection = ServerConnection(opened)
            if settings:
                connection.run("; ".join(f"SET {setting}" for setting in settings))
        except (psycopg.Error, OSError) as error:
            self._cause = find_cause(error)
            raise NoConnection(str(error).strip(), self._cause) from error
        return connection

    def _begin_outage(self) -> None:
        with self._lock:
            if self._is_out or self._closing.is_set():
                return
            self._is_out = True
        log.debug("the database can't be reached (%s); requests are refused until it is back", self._cause)
        threading.Thread(target=self._probe, name="database-probe", daemon=True).start()

    def _probe(self) -> None:
        while not self._closing.wait(PROBE_S):
            try:
                self._open(()).close()
            except NoConnection as error:
                log.debug("the database can't be reached yet: %s", error)
            else:
                self._is_out = False
                log.debug("the database is in reach again")
                return


class _SumLoader(NumericLoader):  # type: ignore[misc]
    """IndexingScheduler sums of integers back to integers. PostgreSQL returns them as `numeric`."""

    def load(self, data: Any) -> Any:
        return int(data) if b"." not in bytes(data) else float(data)


def _causes_of(error: BaseException) -> Iterator["psycopg.Error"]:
    """Yield the PostgreSQL errors among the error and its causes."""
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if isinstance(cause, psycopg.Error):
            yield cause
        cause = cause.__cause__ or cause.__context__


def unavailable(error: BaseException) -> StoreUnavailable:
    """Return the error that tells clients why the server can't be used."""
    return StoreUnavailable(f"PostgreSQL can't be used: {find_cause(error)}.", ENGINE)


def find_cause(error: BaseException) -> str:
    """Say why the server can't be used, without any address."""
    if isinstance(error, NoConnection):
        return error.cause
    text = " ".join(str(each) for each in (error, *_causes_of(error))).lower()
    return next((cause for part, cause in _CAUSES.items() if part in text), "it does not answer")


def is_conflict(error: BaseException) -> bool:
    """Whether another transaction conflicted with this one. The same work can succeed when run again."""
    return any(cause.sqlstate in ("40001", "40P01") for cause in _causes_of(error))


def is_refusal(error: BaseException) -> bool:
    """Whether the server refuses all work now: it lacks a resource, is stopping, or has failed."""
    states = [cause.sqlstate or "" for cause in _causes_of(error)]
    return any(state.startswith(("08", "53", "57", "58")) or state in _ENDED for state in states)


def needs_new_connection(error: BaseException) -> bool:
    """Whether the connection must not be used again."""
    states = [cause.sqlstate or "" for cause in _causes_of(error)]
    return any(state.startswith(("08", "57P")) or state in _ENDED or state == _OUTDATED for state in states)


def is_demoted(error: BaseException) -> bool:
    """Whether the server refused a write because it is no longer the primary."""
    return any(cause.sqlstate == "25006" for cause in _causes_of(error))


def _values(names: Sequence[str], parameters: Parameters | Sequence[Any]) -> list[Any]:
    values = [parameters[name] for name in names] if isinstance(parameters, Mapping) else parameters
    # PostgreSQL's texts can't contain NUL, so replace it, as HTML parsers do.
    return [value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in values]


@lru_cache(maxsize=512)
def _positions(names: tuple[str, ...]) -> dict[str, int]:
    return {name: position for position, name in enumerate(names)}


def _make_rows(cursor: Any) -> Callable[[Sequence[Any]], PostgresRow]:
    positions = _positions(tuple(column.name for column in cursor.description or ()))
    return lambda values: PostgresRow(positions, values)
