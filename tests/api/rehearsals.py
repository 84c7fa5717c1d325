"""A state that runs each piece of work twice, and keeps only what the second run did.

An engine with several writers runs a transaction again after a conflict, and then on what another writer has committed.
Whatever the first run left outside of its transaction (a list that it filled, bytes that it deleted) would count twice,
or be wrong.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, ClassVar, TypeVar, cast

from svc_daemon.databases.contract import Connection, Database
from svc_daemon.paths import DataFiles
from tests.api.daemons import Daemon, OpenState

T = TypeVar("T")
Work = Callable[[Connection], T]


class Rehearsing:
    """A database that runs each piece of work, rolls it back to a savepoint, and runs it again before it counts."""

    def __init__(self, database: Database, between: Work[object] = lambda _: None) -> None:
        """`between` runs after each first run, as another writer whose commit was the conflict."""
        self.between = between
        self._database = database

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def submit(self, work: Work[T]) -> "Future[T]":
        def twice(connection: Connection) -> T:
            self._rehearse(connection, work)
            self.between(connection)
            return work(connection)

        return self._database.submit(twice)

    def write(self, work: Work[T]) -> T:
        return self.submit(work).result()

    def _rehearse(self, connection: Connection, work: Work[object]) -> None:
        connection.execute("SAVEPOINT rehearsal")
        failure = None
        try:
            work(connection)
        except Exception as error:
            failure = error
        try:
            connection.execute("ROLLBACK TO SAVEPOINT rehearsal")
            connection.execute("RELEASE SAVEPOINT rehearsal")
        except Exception as gone:
            # A failure of the engine has ended the whole transaction.
            raise failure or gone from None


def rehearsing(open_state: OpenState) -> OpenState:
    """Open the state in this way, to rehearse all work on it."""

    def open_rehearsing(files: DataFiles, on_broken: Callable[[Exception], None]) -> Database:
        return cast(Database, Rehearsing(open_state(files, on_broken)))

    return open_rehearsing


def _open_rehearsing(files: DataFiles, on_broken: Callable[[Exception], None]) -> Database:
    return rehearsing(Daemon.open_state)(files, on_broken)


class RehearsingDaemon(Daemon):
    """A daemon whose state, however the run opens it, rehearses all work."""

    open_state: ClassVar[OpenState] = staticmethod(_open_rehearsing)

    @property
    def state(self) -> Rehearsing:
        return cast(Rehearsing, self.context.database)
