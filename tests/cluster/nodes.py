"""The three engines together, the daemons that share them, and what is held of them all: bytes, rows and sweeps."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from svc_daemon.core.access.addresses import AddressPolicy
from svc_daemon.core.times import Clock
from svc_daemon.data_directory import make_folders
from svc_daemon.engines import choose_engines
from svc_daemon.fetch.downloads import FetchLimits
from svc_daemon.fetch.fetchers import Fetcher
from svc_daemon.operations.sweeping import sweep_objects
from svc_daemon.paths import DataFiles
from svc_daemon.process.contexts import Context
from svc_daemon.server import open_context
from svc_daemon.settings import ClusterSettings, Limits
from svc_daemon.store.checks import list_every_source
from svc_daemon.store.objects.stores import ObjectStores
from svc_daemon.store.sources import SourceRow
from tests.acceptance.installations import Installation
from tests.cluster.milvus import RunningMilvus
from tests.cluster.object_store import BUCKET, ObjectStore

if TYPE_CHECKING:
    from tests.cluster.postgres import PostgresEngine

T = TypeVar("T")
MakeNode = Callable[..., Installation]
#: Whatever no row names is old enough for the sweeper then.
OLD = timedelta(days=Limits().set_aside_days + 1)


@dataclass(frozen=True, slots=True)
class RunningEngines:
    """All three."""

    postgres: "PostgresEngine"
    store: ObjectStore
    milvus: RunningMilvus

    def environ(self) -> dict[str, str]:
        """The variables of a daemon on an empty database and an empty folder of the bucket."""
        return {
            "SVC_STATE_URL": self.postgres.make_database(),
            "SVC_BLOBS_URL": f"s3://{BUCKET}/{uuid4().hex}",
            "SVC_INDEX_URL": self.milvus.url,
            **self.store.environ,
        }


@dataclass(frozen=True, slots=True)
class Onlooker:
    """Looks at the engines of an installation as a node would that never serves."""

    environ: Mapping[str, str]

    def list_sources(self) -> list[SourceRow]:
        """Every row, whether or not anybody was told of it."""

        async def look(context: Context) -> list[SourceRow]:
            return context.read(lambda connection: list(list_every_source(connection)))

        return self._run(look)

    def hold_bytes(self) -> int:
        """Raise AssertionError unless each source has its bytes, with their hash; how many sources there are."""

        async def hold(context: Context) -> int:
            sources = context.read(lambda connection: list(list_every_source(connection)))
            for source in sources:
                hashed, size_bytes = hashlib.sha256(), 0
                async for chunk in context.blobs.blob(source.blob_name).stream():
                    hashed.update(chunk)
                    size_bytes += len(chunk)
                assert (size_bytes, hashed.hexdigest()) == (source.size_bytes, source.sha256), source
            return len(sources)

        return self._run(hold)

    def sweep(self) -> None:
        """Sweep as if everything were old already. No request may be on its way."""

        async def sweep(context: Context) -> None:
            key: str | None = ""
            while key is not None:
                key = await sweep_objects(context, key)

        self._run(sweep, later=OLD)

    def list_objects(self) -> set[str]:
        """What is in the store: the names of blobs, and the ids of sessions with bytes."""

        async def list_all(context: Context) -> set[str]:
            assert isinstance(context.stores, ObjectStores)
            pages, key = list[str](), ""
            while page := await context.stores.list_page(key):
                pages += [each.blob or each.session_id or each.key for each in page]
                key = page[-1].key
            return set(pages)

        return self._run(list_all)

    def _run(self, work: Callable[[Context], Awaitable[T]], later: timedelta = timedelta()) -> T:
        async def run() -> T:
            async with self._opened(later) as context:
                return await work(context)

        return asyncio.run(run())

    @asynccontextmanager
    async def _opened(self, later: timedelta) -> AsyncIterator[Context]:
        limits, variables = Limits(), ("SVC_STATE_URL", "SVC_BLOBS_URL", "SVC_INDEX_URL")
        cluster = ClusterSettings(*(self.environ[name] for name in variables))
        fetching = FetchLimits(limits.file_bytes, limits.fetch_seconds, limits.webhook_seconds)
        clock = Clock(now=lambda: datetime.now(UTC) + later, monotonic=time.monotonic)
        with TemporaryDirectory() as name:
            files = DataFiles(Path(name))
            make_folders(files)
            async with AsyncExitStack() as stack:
                engines = choose_engines(cluster, self.environ)
                yield open_context(
                    stack, limits, files, Fetcher(AddressPolicy(()), fetching), lambda _: None, clock, engines
                )
