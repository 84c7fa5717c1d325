"""The context that every operation and worker gets: stores, clock, limits, models, and wake-ups."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec, TypeVar

from svc_daemon.core.ids import Ids
from svc_daemon.core.times import Clock
from svc_daemon.databases.contract import Connection, Database
from svc_daemon.fetch.fetchers import Fetcher
from svc_daemon.llm.contract import Llm
from svc_daemon.process.embedders import EmbedderInUse
from svc_daemon.process.engine_states import EngineStates
from svc_daemon.process.event_followers import Followers
from svc_daemon.process.indexing_scheduler import ScanPace, UploadPriority
from svc_daemon.process.locks import LocalLocks, Locks
from svc_daemon.process.rate_limits import RateLimits
from svc_daemon.process.resource_shortages import Shortages
from svc_daemon.process.telemetry import Metrics, Traces
from svc_daemon.process.usage_counters import UsageCounters
from svc_daemon.process.wakes import Wakes
from svc_daemon.provider.contract import SearchProvider
from svc_daemon.settings.limits import Limits
from svc_daemon.store.files.contract import BlobStore, ByteStores, PartStore, SetAsideStore

P = ParamSpec("P")
T = TypeVar("T")

#: Maximum number of concurrent searches, because each search thread caches megabytes of the index.
MOST_SEARCHERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The components that operations and workers use, assembled once by `server`."""

    database: Database
    blobs: BlobStore
    parts: PartStore
    set_aside_files: SetAsideStore
    #: The stores `blobs`, `parts` and `set_aside_files` in one object.
    stores: ByteStores
    provider: SearchProvider
    fetcher: Fetcher
    clock: Clock
    ids: Ids
    limits: Limits
    upload_priority: UploadPriority = field(default_factory=UploadPriority)
    rate_limits: RateLimits
    locks: Locks = field(default_factory=LocalLocks)
    wakes: Wakes
    shortages: Shortages
    engines: EngineStates = field(default_factory=EngineStates)
    usage_counters: UsageCounters = field(default_factory=UsageCounters)
    metrics: Metrics = field(default_factory=Metrics)
    traces: Traces = field(default_factory=Traces)
    #: 32 random bytes from which upload tokens and webhook secrets are derived.
    secret: bytes
    #: The model that writes answers; None if answers consist of quotations.
    llm: Llm | None = None
    embedding: EmbedderInUse = field(default_factory=EmbedderInUse)
    #: Number of chunks of each document being indexed, by the id and token of the document's task.
    progress: dict[tuple[str, int], int] = field(default_factory=dict)
    scan_pace: ScanPace = field(default_factory=ScanPace)
    followers: Followers = field(default_factory=Followers)
    searchers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(
            min(max(os.cpu_count() or 1, 2), MOST_SEARCHERS), thread_name_prefix="search"
        )
    )

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` as one transaction, and return its result once the transaction is durable."""
        result = await asyncio.wrap_future(self.database.submit(self.traces.carried(work)))
        self.followers.wake()
        return result

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run a short read on the calling thread, which is faster than switching threads."""
        return self.database.read(work)

    def look(self, work: Callable[[Connection], T]) -> T:
        """Run a single SELECT without a transaction."""
        return self.database.look(work)

    async def read_in_thread(self, work: Callable[[Connection], T]) -> T:
        """Run a long read, such as a list or a count, in a thread, so that the event loop isn't blocked."""
        return await asyncio.to_thread(self.database.read, work)

    async def search_in_thread(self, call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a search on a thread reserved for searches."""
        work = partial(copy_context().run, call, *arguments, **named)
        return await asyncio.get_running_loop().run_in_executor(self.searchers, work)
