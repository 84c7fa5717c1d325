"""The context that every operation and worker gets: stores, clock, limits, models, and wake-ups."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import ParamSpec, TypeVar

from svc_daemon.core.ids import Ids
from svc_daemon.core.times import Clock
from svc_daemon.databases.contract import Connection, Database
from svc_daemon.embed.contract import Embedder
from svc_daemon.fetch.fetchers import Fetcher
from svc_daemon.llm.contract import Llm
from svc_daemon.process.engine_states import EngineStates
from svc_daemon.process.indexing_scheduler import ScanPace, UploadPriority
from svc_daemon.process.locks import LocalLocks, Locks
from svc_daemon.process.rate_limits import RateLimits, UsageCounters
from svc_daemon.process.resource_shortages import Shortages
from svc_daemon.process.telemetry import Metrics, Traces
from svc_daemon.provider.contract import SearchProvider
from svc_daemon.settings.limits import Limits
from svc_daemon.store.files.contract import BlobStore, ByteStores, PartStore, SetAsideStore

T = TypeVar("T")

#: After a read of the event log, no other begins for this many times the processor time that it took. So many clients
#: that read the whole log take together a tenth of a processor, and the rest is left to uploads and searches.
REST_TIMES = 9


class Followers:
    """The requests of this process that read or follow the event log. Use this class only on the event loop."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Event] = set()
        self._turn = asyncio.Lock()
        self._rests_until_s = 0.0

    def wake(self) -> None:
        """Wake all waiting requests, so that they read the event log again."""
        for each in self._waiting:
            each.set()

    @contextmanager
    def following(self) -> Iterator[asyncio.Event]:
        """Yield an asyncio event that is set after each commit while the block runs."""
        woken = asyncio.Event()
        self._waiting.add(woken)
        try:
            yield woken
        finally:
            self._waiting.discard(woken)

    async def read(self, call: Callable[[], T]) -> T:
        """Read a small part of the log in a thread, when it is this request's turn."""

        def work() -> tuple[T, float]:
            began_s = time.thread_time()
            return call(), time.thread_time() - began_s

        async with self._turn:
            await asyncio.sleep(self._rests_until_s - time.monotonic())
            result, took_s = await asyncio.to_thread(work)
            self._rests_until_s = time.monotonic() + REST_TIMES * took_s
        return result


P = ParamSpec("P")

#: How much of the average time of a chunk is that of the latest batch.
NEWEST_PART = 0.2

#: Number of threads reserved for calls of models.
THREADS = 8


class EmbeddingState(StrEnum):
    """Whether the embedding model can be used."""

    #: No model is configured.
    OFF = "off"
    LOADING = "loading"
    READY = "ready"
    #: The model fails and is retried; `EmbedderInUse.message` has the reason.
    FAILING = "failing"


@dataclass(slots=True)
class EmbedderInUse:
    """The current embedding model. The model may change at any time, so read `embedder` only once per use."""

    #: None if no model is configured or loaded.
    embedder: Embedder | None = None
    state: EmbeddingState = EmbeddingState.OFF
    #: A sentence that says what is wrong with the model; None if nothing is wrong.
    message: str | None = None
    #: Seconds that a chunk took lately, from the list of chunks to the stored vector; None before the first batch.
    chunk_s: float | None = None
    threads: ThreadPoolExecutor = field(
        default_factory=partial(ThreadPoolExecutor, THREADS, thread_name_prefix="embed")
    )

    def note_batch(self, chunks: int, took_s: float) -> None:
        """Take a batch into the average time of a chunk. The latest batches count most."""
        latest_s = took_s / chunks
        self.chunk_s = latest_s if self.chunk_s is None else self.chunk_s + (latest_s - self.chunk_s) * NEWEST_PART

    async def run(self, call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a long call of a model on a thread reserved for such calls."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, lambda: call(*arguments, **named))


#: Maximum number of concurrent searches, because each search thread caches megabytes of the index.
MOST_SEARCHERS = 4


class Wake(asyncio.Event):
    """An event that wakes a worker of this process and, in a cluster, of the other nodes."""

    def __init__(self) -> None:
        super().__init__()
        #: Wakes the same worker on the other nodes.
        self.announce: Callable[[], None] = lambda: None

    def set(self) -> None:
        """Wake the worker on all nodes."""
        super().set()
        self.announce()

    def set_here(self) -> None:
        """Wake only the worker of this process."""
        super().set()


@dataclass(slots=True)
class Wakes:
    """The events that wake the workers."""

    indexing: Wake = field(default_factory=Wake)
    syncing: Wake = field(default_factory=Wake)
    sweeping: Wake = field(default_factory=Wake)
    cascading: Wake = field(default_factory=Wake)
    delivering: Wake = field(default_factory=Wake)
    rebuilding: Wake = field(default_factory=Wake)
    rechunking: Wake = field(default_factory=Wake)
    counting: Wake = field(default_factory=Wake)
    embedding: Wake = field(default_factory=Wake)
    removing: Wake = field(default_factory=Wake)
    refreshing: Wake = field(default_factory=Wake)
    #: Longest time in seconds that a worker sleeps, because the event that wakes it may get lost.
    look_s: float = 60.0
    #: Teams with a damaged index whose rebuild isn't queued yet.
    damaged: set[str] = field(default_factory=set)
    #: Teams whose documents' words are indexed again, and whose sources are still shown as ready.
    building: set[str] = field(default_factory=set)
    #: Teams whose index may contain chunks without a vector.
    unembedded: set[str] = field(default_factory=set)

    def shared(self) -> dict[str, Wake]:
        """Return the wake-up events, by name, of the workers whose work any node can do."""
        names = ("indexing", "syncing", "sweeping", "cascading", "delivering", "rebuilding", "rechunking", "removing")
        return {name: getattr(self, name) for name in (*names, "refreshing")}

    def wake_all(self) -> None:
        """Wake every worker of this process. Call it on the event loop's thread."""
        for wake in (*self.shared().values(), self.counting, self.embedding):
            wake.set_here()

    def note_damaged(self, team_id: str) -> None:
        """Request a rebuild of the team's damaged index. Call it on the event loop's thread."""
        self.damaged.add(team_id)
        self.rebuilding.set_here()

    def note_building(self, team_id: str) -> None:
        """Show that the words of the team's documents are indexed again. Call it on the event loop's thread."""
        self.building.add(team_id)
        self.rebuilding.set_here()

    def note_unembedded(self, team_id: str) -> None:
        """Request vectors for the team's new chunks. Call it on the event loop's thread."""
        self.unembedded.add(team_id)
        self.embedding.set_here()


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
