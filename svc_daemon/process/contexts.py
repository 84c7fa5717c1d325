"""The context passed to every operation and worker: stores, clock, limits, models, and events that wake workers."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
from svc_daemon.process.gates import Gates, Tallies, Writers
from svc_daemon.process.rate_limits import RateLimits
from svc_daemon.process.shortages import Shortages
from svc_daemon.provider.contract import SearchProvider
from svc_daemon.settings import Limits
from svc_daemon.store.asides import DataFolders
from svc_daemon.store.contract import AsideStore, BlobStore, PartStore

P = ParamSpec("P")
T = TypeVar("T")

#: Maximum number of concurrent model calls, so that a hanging server does not use up all threads.
THREADS = 8


class EmbeddingState(StrEnum):
    """Whether the embedding model can be used and, if not, why."""

    #: No model is configured.
    OFF = "off"
    LOADING = "loading"
    READY = "ready"
    #: The model fails and is being retried; `EmbedderInUse.message` has the reason.
    FAILING = "failing"


@dataclass(slots=True)
class EmbedderInUse:
    """The current embedding model. It may be replaced while the service runs, so read `embedder` once per use."""

    #: The open model; None if no model is configured, or if it isn't open.
    embedder: Embedder | None = None
    state: EmbeddingState = EmbeddingState.OFF
    #: A sentence that describes what is wrong; None if nothing is.
    message: str | None = None
    threads: ThreadPoolExecutor = field(
        default_factory=partial(ThreadPoolExecutor, THREADS, thread_name_prefix="embed")
    )

    async def run(self, call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a long model call on one of the threads reserved for them."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, lambda: call(*arguments, **named))


#: Maximum number of concurrent searches; on machines with fewer cores, one per core, but at least two. Each search
#: thread caches megabytes of the index.
MOST_SEARCHERS = 4


@dataclass(slots=True)
class Wakes:
    """One event per worker; setting it wakes the worker."""

    indexing: asyncio.Event = field(default_factory=asyncio.Event)
    syncing: asyncio.Event = field(default_factory=asyncio.Event)
    sweeping: asyncio.Event = field(default_factory=asyncio.Event)
    cascading: asyncio.Event = field(default_factory=asyncio.Event)
    delivering: asyncio.Event = field(default_factory=asyncio.Event)
    rebuilding: asyncio.Event = field(default_factory=asyncio.Event)
    rechunking: asyncio.Event = field(default_factory=asyncio.Event)
    counting: asyncio.Event = field(default_factory=asyncio.Event)
    embedding: asyncio.Event = field(default_factory=asyncio.Event)
    #: Teams whose index was found damaged and for which no rebuild has been queued yet.
    damaged: set[str] = field(default_factory=set)
    #: Teams whose index may contain chunks without a vector.
    unembedded: set[str] = field(default_factory=set)

    def wake_all(self) -> None:
        """Wake every worker; call on the event loop's thread."""
        for each in (self.indexing, self.syncing, self.sweeping, self.cascading, self.delivering, self.rebuilding):
            each.set()
        for each in (self.rechunking, self.counting, self.embedding):
            each.set()

    def note_damaged(self, team_id: str) -> None:
        """Request a rebuild of the team's damaged index; call on the event loop's thread."""
        self.damaged.add(team_id)
        self.rebuilding.set()

    def note_unembedded(self, team_id: str) -> None:
        """Request embedding of the team's new chunks; call on the event loop's thread."""
        self.unembedded.add(team_id)
        self.embedding.set()


def _searchers() -> ThreadPoolExecutor:
    most = min(max(os.cpu_count() or 1, 2), MOST_SEARCHERS)
    return ThreadPoolExecutor(most, thread_name_prefix="search")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The components that operations and workers use, assembled once by `server`."""

    database: Database
    blobs: BlobStore
    parts: PartStore
    asides: AsideStore
    #: The same byte stores, for work on their files; None if the bytes aren't in the data directory.
    folders: DataFolders | None = None
    provider: SearchProvider
    fetcher: Fetcher
    clock: Clock
    ids: Ids
    limits: Limits
    gates: Gates = field(default_factory=Gates)
    rate_limits: RateLimits
    writers: Writers = field(default_factory=Writers)
    wakes: Wakes
    shortages: Shortages
    tallies: Tallies = field(default_factory=Tallies)
    #: 32 random bytes, unique to the installation: upload tokens and webhook secrets are derived from it.
    secret: bytes
    #: The model that writes answers; None if none is configured, and answers are then quotations from the sources.
    llm: Llm | None = None
    embedding: EmbedderInUse = field(default_factory=EmbedderInUse)
    #: Number of title changes in progress for each source; used on the event loop only.
    retitling: Counter[str] = field(default_factory=Counter)
    #: The number of chunks of each document that is being put into the index, by task id and token; used on the event
    #: loop only.
    progress: dict[tuple[str, int], int] = field(default_factory=dict)
    searchers: ThreadPoolExecutor = field(default_factory=_searchers)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` as one transaction, wait until it is durable, and return its result."""
        return await asyncio.wrap_future(self.database.submit(work))

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run a short look-up on the calling thread, which is faster than switching to another."""
        return self.database.read(work)

    def look(self, work: Callable[[Connection], T]) -> T:
        """Run a single statement, without a transaction: one statement always sees one snapshot."""
        return self.database.look(work)

    async def read_aside(self, work: Callable[[Connection], T]) -> T:
        """Run a long read (listings, counts) in a thread, without blocking the loop."""
        return await asyncio.to_thread(self.database.read, work)

    async def search_aside(self, call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a search on the search threads, which keep the index open and aren't used by listings."""
        work = partial(copy_context().run, call, *arguments, **named)
        return await asyncio.get_running_loop().run_in_executor(self.searchers, work)
