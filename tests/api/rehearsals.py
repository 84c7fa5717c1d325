"""A state that runs each piece of work twice, and keeps only what the second run did.

An engine with several writers runs a transaction again after a conflict. Whatever the first run left outside of its
transaction (a list that it filled, bytes that it deleted) then counts twice, or is wrong.
"""

from collections.abc import Callable
from concurrent.futures import Future
from sqlite3 import Connection
from typing import TypeVar

from svc_daemon.databases.contract import Database
from svc_daemon.databases.sqlite import SqliteDatabase
from svc_daemon.paths import DataFiles
from svc_daemon.store.migrations import migrate

T = TypeVar("T")


class RehearsingDatabase(SqliteDatabase):
    """Runs each piece of work, rolls it back to its savepoint, and runs it again before it counts."""

    def submit(self, work: Callable[[Connection], T]) -> "Future[T]":
        def twice(connection: Connection) -> T:
            connection.execute("SAVEPOINT rehearsal")
            try:
                work(connection)
            except Exception:
                if not connection.in_transaction:
                    raise
            connection.execute("ROLLBACK TO rehearsal")
            connection.execute("RELEASE rehearsal")
            return work(connection)

        return super().submit(twice)


def open_rehearsing(files: DataFiles, on_broken: Callable[[Exception], None]) -> Database:
    return RehearsingDatabase(files.state, prepare=migrate, on_broken=on_broken)
