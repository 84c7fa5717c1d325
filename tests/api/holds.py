"""Holds a provider's calls, refuses changes of rows, or puts a database out of reach, while a test acts."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from svc_daemon.databases.contract import Connection, Database
from svc_daemon.databases.sqlite import SqliteDatabase
from svc_daemon.errors import StoreUnavailable
from tests.acceptance.installations import PATIENCE_S

if TYPE_CHECKING:
    from tests.api.daemons import Daemon
from tests.provider.failing import FailingProvider


class Hold:
    """Calls of one provider method wait here until they are let go."""

    def __init__(self) -> None:
        self._entered = threading.Event()
        self._released = threading.Event()

    def wait_entered(self) -> None:
        """Return when a call has come in."""
        assert self._entered.wait(PATIENCE_S), "no call came in"

    def release(self) -> None:
        self._released.set()

    def pass_through(self) -> None:
        """The call's side: come in, and wait to be let go."""
        self._entered.set()
        assert self._released.wait(PATIENCE_S), "nobody let the call go"


class HeldProvider(FailingProvider):
    """A failing provider whose calls can also be held: writes before their effect, searches after it."""

    def __init__(self, *places: Any, **options: Any) -> None:
        super().__init__(*places, **options)
        self._holds: dict[str, Hold] = {}

    def obey_orders_of(self, other: "HeldProvider") -> None:
        """Fail and hold where the other one does: to a test, the providers of all nodes are one."""
        self._lock, self._orders, self._holds, self.calls = other._lock, other._orders, other._holds, other.calls

    @contextmanager
    def held(self, method: str) -> Iterator[Hold]:
        """Hold every call of this method; let go at the end of the block."""
        hold = self._holds[method] = Hold()
        try:
            yield hold
        finally:
            del self._holds[method]
            hold.release()

    def call(self, method: str, work: Callable[..., Any], *values: Any, **named: Any) -> Any:
        hold = self._holds.get(method)
        if hold is None:
            return super().call(method, work, *values, **named)
        if method != "search":
            hold.pass_through()
        result = super().call(method, work, *values, **named)
        if method == "search":
            hold.pass_through()
        return result


class Away:
    """A database that answers reads, and is out of reach for writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def submit(self, _: object) -> "Future[Any]":
        refused: Future[Any] = Future()
        refused.set_exception(StoreUnavailable("The database can't be reached."))
        return refused


def refuse(daemon: "Daemon", change: str, table: str, condition: str = "1 = 1") -> None:
    """Refuse this change, `INSERT`, `UPDATE` or `DELETE`, of the table's rows; `condition` may name `OLD` and `NEW`."""
    trigger = f"CREATE TRIGGER refused BEFORE {change} ON {table}"
    if isinstance(daemon.context.database, SqliteDatabase):
        statements = [f"{trigger} WHEN {condition} BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"]
    else:
        raising = "BEGIN RAISE EXCEPTION 'refused by the test'; END"
        statements = [
            f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $${raising}$$",
            f"{trigger} FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION refuse()",
        ]

    def work(connection: Connection) -> None:
        for statement in statements:
            connection.execute(statement)

    daemon.write(work)


def allow(daemon: "Daemon", table: str) -> None:
    """Allow it again."""
    is_sqlite = isinstance(daemon.context.database, SqliteDatabase)
    daemon.write(lambda c: c.execute("DROP TRIGGER refused" if is_sqlite else f"DROP TRIGGER refused ON {table}"))
