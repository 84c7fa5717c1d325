"""Runs the tests of other folders with their state on PostgreSQL: `pytest --postgresql tests/api`.

Their daemons share locks, leases and wakes by it, as the nodes of a cluster do.
"""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from svc_daemon.databases.contract import Connection, Database
from svc_daemon.databases.postgres.database import PostgresDatabase
from svc_daemon.databases.postgres.servers import PostgresServer
from svc_daemon.paths import DataFiles
from svc_daemon.process.clusters import join_cluster
from svc_daemon.process.contexts import Context
from svc_daemon.store.migrations import migrate_shared
from tests.cluster.postgres import PostgresEngine, running_postgres


class PostgresStates:
    """One server for the run, started for the first test that needs it, with a database for each data directory."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._urls: dict[Path, str] = {}

    @cached_property
    def _engine(self) -> PostgresEngine:
        return self._stack.enter_context(running_postgres())

    def open_state(self, files: DataFiles, on_broken: Callable[[Exception], None]) -> Database:
        """Open the directory's database, the same at each call."""
        if files.root not in self._urls:
            self._urls[files.root] = self._engine.make_database()
        return PostgresDatabase(self._urls[files.root], prepare=migrate_shared)

    def join(self, files: DataFiles, stack: AsyncExitStack, context: Context) -> Context:
        """Join the other nodes of the directory's database. The test's clock is ahead of the server's, too.

        Rates stay local, since they are measured by the server's clock alone.
        """
        node = f"node-{secrets.token_hex(4)}"
        cluster = join_cluster(stack, self._urls[files.root], node, context.limits, context.wakes)
        clock = replace(context.clock, shared=lambda: cluster.now_s() + context.clock.monotonic() - time.monotonic())
        return replace(context, locks=cluster.locks, clock=clock)

    @cached_property
    def _shared_url(self) -> str:
        return self._engine.make_database()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A connection to a database with the schema and no row; whatever is done with it is rolled back."""
        connection = PostgresServer(self._shared_url).connect_first()
        connection.run("BEGIN")
        try:
            yield connection
        finally:
            connection.close()

    def close(self) -> None:
        self._stack.close()
