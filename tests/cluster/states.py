"""Run the tests of other folders with their state on PostgreSQL: `pytest --postgresql tests/api`.

Their daemons share locks, leases and wakes through it, like the nodes of a cluster.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from svc_daemon.cluster.migrations import migrate_shared
from svc_daemon.cluster.nodes import join_cluster
from svc_daemon.cluster.postgres.database import PostgresDatabase
from svc_daemon.cluster.postgres.servers import PostgresServer
from svc_daemon.cluster.postgres.sessions import ShortTransactions
from svc_daemon.cluster.shared_limits import SharedRateLimits, Transactions
from svc_daemon.databases.contract import Connection, Cursor, Database, ParameterRows, Parameters
from svc_daemon.operations.installations import prepare_shared_secret, write_secret
from svc_daemon.paths import DataFiles
from svc_daemon.process.contexts import Context
from tests.api.nodes import installation_of
from tests.cluster.postgres import Databases

T = TypeVar("T")
#: The fixed time at which rate limits start, in seconds since 1970.
BEGINNING_S = 1_800_000_000.0


class PostgresStates:
    """The PostgreSQL of a run, with a database for each installation."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self._urls: dict[Path, str] = {}

    def url_for(self, folder: Path) -> str:
        """Return the URL of the database for the installation in this folder, the same at each call."""
        if folder not in self._urls:
            self._urls[folder] = self._databases.make()
        return self._urls[folder]

    def open_state(self, files: DataFiles, _: Callable[[Exception], None]) -> Database:
        """Open the installation's database."""
        return PostgresDatabase(self.url_for(installation_of(files)), prepare=migrate_shared)

    def prepare_secret(self, files: DataFiles, database: Database) -> bytes:
        secret = prepare_shared_secret(database, os.urandom)
        write_secret(files.secret, secret.hex())
        return secret

    def join(self, files: DataFiles, stack: AsyncExitStack, context: Context) -> Context:
        """Join the installation's cluster as a node whose shared clock includes the advance of the test's clock."""
        node = f"node-{secrets.token_hex(4)}"
        url = self.url_for(installation_of(files))
        cluster = join_cluster(stack, url, node, context.limits, context.wakes)

        def ahead_s() -> float:
            return context.clock.monotonic() - time.monotonic()

        transactions = ShortTransactions(url)
        stack.callback(transactions.close)
        rate_limits = SharedRateLimits(context.limits, AheadTransactions(transactions, ahead_s))
        clock = replace(context.clock, shared=lambda: cluster.now_s() + ahead_s())
        return replace(context, locks=cluster.locks, clock=clock, rate_limits=rate_limits)

    @cached_property
    def _shared_url(self) -> str:
        return self._databases.make()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Yield a connection to an empty database with the schema, in a transaction that is rolled back."""
        connection = PostgresServer(self._shared_url).connect_first()
        connection.run("BEGIN")
        try:
            yield connection
        finally:
            connection.close()


class AheadTransactions:
    """Transactions in which only the test moves the clock, so that rates don't recover on a slow machine."""

    def __init__(self, transactions: Transactions, ahead_s: Callable[[], float]) -> None:
        self._transactions = transactions
        self._ahead_s = ahead_s

    def run(self, work: Callable[[Connection], T]) -> T:
        return self._transactions.run(lambda connection: work(_AheadConnection(connection, self._ahead_s())))


class _AheadConnection:
    """A connection whose clock is fixed to this many seconds after `BEGINNING_S`."""

    def __init__(self, connection: Connection, ahead_s: float) -> None:
        self._connection = connection
        self._clock = f"to_timestamp({BEGINNING_S + round(ahead_s, 3)!r})"

    def execute(self, statement: str, parameters: Parameters | None = None, /) -> Cursor:
        return self._connection.execute(statement.replace("clock_timestamp()", self._clock), parameters or {})

    def executemany(self, statement: str, parameters: ParameterRows, /) -> Cursor:
        return self._connection.executemany(statement, parameters)
