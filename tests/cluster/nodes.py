"""Daemons that share the three engines, and checks that the engines' rows, bytes and index agree."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from anyio.from_thread import BlockingPortal, start_blocking_portal

from svc_daemon.cluster.s3.stores import ObjectStores
from svc_daemon.core.access.urls import AddressPolicy
from svc_daemon.core.readiness import ACTIVE
from svc_daemon.core.times import Clock
from svc_daemon.data_directory import make_folders
from svc_daemon.fetch.contract import FetchLimits
from svc_daemon.fetch.fetchers import Fetcher
from svc_daemon.operations.remove.sweeping import sweep_objects
from svc_daemon.paths import DataFiles
from svc_daemon.process.contexts import Context
from svc_daemon.server.engines import choose_engines
from svc_daemon.server.server import SYSTEM_CLOCK, open_context
from svc_daemon.settings.limits import Limits
from svc_daemon.settings.servers import ClusterSettings
from svc_daemon.store.checks import check_rows, list_every_source, list_uncleaned
from svc_daemon.store.rows.teams import list_team_ids
from tests.acceptance.installations import Installation
from tests.cluster.milvus import RunningMilvus
from tests.cluster.object_store import BUCKET, ObjectStore

if TYPE_CHECKING:
    from tests.cluster.postgres import PostgresEngine

T = TypeVar("T")
MakeNode = Callable[..., Installation]
#: By then, each object without a row is old enough for the sweeper.
OLD = timedelta(days=Limits().set_aside_days + 1)


@dataclass(frozen=True, slots=True)
class RunningEngines:
    """PostgreSQL, the object store and Milvus."""

    postgres: "PostgresEngine"
    store: ObjectStore
    milvus: RunningMilvus

    def environ(self) -> dict[str, str]:
        """Return the variables of a daemon with an empty database and an empty prefix in the S3 bucket."""
        return {
            "SVC_STATE_URL": self.postgres.make_database(),
            "SVC_BLOBS_URL": f"s3://{BUCKET}/{uuid4().hex}",
            "SVC_INDEX_URL": self.milvus.url,
            **self.store.environ,
        }


@dataclass(frozen=True, slots=True)
class EngineInspector:
    """Reads and sweeps the engines of an installation like a node, without serving requests."""

    environ: Mapping[str, str]
    #: The machine's clock, unless a test sets another.
    clock: Clock = SYSTEM_CLOCK

    def list_deleted(self) -> list[str]:
        """Return the ids of deleted sources whose bytes may still be stored."""

        async def look(context: Context) -> list[str]:
            return context.read(lambda connection: list(list_uncleaned(connection)))

        return self.run(look)

    def check_bytes(self, known: Mapping[str, str] | None = None) -> dict[str, str]:
        """Assert that each source not in `known` has its bytes, and return the hashes of all sources by id."""

        async def check(context: Context) -> dict[str, str]:
            sources = context.read(lambda connection: list(list_every_source(connection)))
            for source in sources:
                if known is None or known.get(source.id) != source.sha256:
                    hashed = await context.blobs.blob(source.blob_name).hash()
                    assert hashed == source.sha256, source
            return {source.id: source.sha256 for source in sources}

        return self.run(check)

    def assert_consistent(self) -> set[str]:
        """Sweep, assert that rows, bytes and index agree, and return all source ids; no node may be running."""

        async def compare(context: Context) -> None:
            problems = context.read(lambda connection: [found.message for found in check_rows(connection)])
            rows = context.read(lambda connection: list(list_every_source(connection)))
            team_ids = context.read(list_team_ids)
            listed = {(each, found.source_id) for each in team_ids for found in context.provider.list_documents(each)}
            assert (problems, listed) == ([], {(row.team_id, row.id) for row in rows if row.status == ACTIVE})
            assert isinstance(context.stores, ObjectStores)
            assert {row.blob_name for row in rows} == set(context.stores.blobs.list_ids())
            assert context.stores.parts.list_ids() == set()

        self.sweep()
        self.run(compare)
        return set(self.check_bytes())

    def sweep(self) -> None:
        """Sweep all objects as if they were old; no request may be running."""

        async def sweep(context: Context) -> None:
            key: str | None = ""
            while key is not None:
                key = await sweep_objects(context, key)

        self.run(sweep, later=OLD)

    def run(self, work: Callable[[Context], Awaitable[T]], later: timedelta = timedelta()) -> T:
        """Run `work` with a node's context, whose clock is `later`."""

        async def run() -> T:
            async with self._opened() as context:
                return await work(_at(context, later))

        return asyncio.run(run())

    @contextmanager
    def connected(self) -> "Iterator[EngineInspector]":
        """Keep the connections open during the block, for repeated use."""
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(self._opened()) as context:
            yield _ConnectedInspector(self.environ, self.clock, portal=portal, context=context)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Context]:
        limits, cluster = Limits(), ClusterSettings.from_environ(self.environ)
        seconds = {"fetch_s": limits.fetch_seconds, "post_s": limits.webhook_seconds}
        fetching = FetchLimits(file_bytes=limits.file_bytes, **seconds)
        with TemporaryDirectory() as name:
            files = DataFiles(Path(name))
            make_folders(files)
            async with AsyncExitStack() as stack:
                engines, fetcher = choose_engines(cluster, self.environ), Fetcher(AddressPolicy(()), fetching)
                yield open_context(stack, limits, files, fetcher, lambda _: None, self.clock, engines)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ConnectedInspector(EngineInspector):
    portal: BlockingPortal
    context: Context

    def run(self, work: Callable[[Context], Awaitable[T]], later: timedelta = timedelta()) -> T:
        return self.portal.call(work, _at(self.context, later))


def _at(context: Context, later: timedelta) -> Context:
    now = context.clock.now
    return replace(context, clock=replace(context.clock, now=lambda: now() + later))
