"""The context that every operation and worker gets: open stores, clock, limits, the model, and the workers' wakes."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from sqlite3 import Connection
from typing import ParamSpec, TypeVar

from svc_daemon.core.ids import Ids
from svc_daemon.core.times import Clock
from svc_daemon.database import Database
from svc_daemon.embed.contract import Embedder
from svc_daemon.fetch.fetchers import Fetcher
from svc_daemon.llm.contract import Llm
from svc_daemon.process.gates import Gates, Tallies, Writers
from svc_daemon.process.rate_limits import RateLimits
from svc_daemon.process.shortages import Shortages
from svc_daemon.provider.contract import SearchProvider
from svc_daemon.settings import Limits
from svc_daemon.store.asides import Asides
from svc_daemon.store.blobs import Blobs
from svc_daemon.store.parts import Parts

P = ParamSpec("P")
T = TypeVar("T")

#: The most calls of a model at the same time, so that a hanging server does not use up all threads.
THREADS = 8


class EmbeddingState(StrEnum):
    """Whether the model can be used."""

    #: None is chosen.
    OFF = "off"
    LOADING = "loading"
    READY = "ready"
    #: It fails and is retried; the message has the reason.
    FAILING = "failing"


@dataclass(slots=True)
class EmbedderInUse:
    """Another model may be chosen while the service runs: read `embedder` once for each use."""

    #: None where none is chosen, or none could be opened so far.
    embedder: Embedder | None = None
    state: EmbeddingState = EmbeddingState.OFF
    #: A sentence, where something is wrong.
    message: str | None = None
    threads: ThreadPoolExecutor = field(
        default_factory=partial(ThreadPoolExecutor, THREADS, thread_name_prefix="embed")
    )

    async def run(self, call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a long call of a model on a thread of its own."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, lambda: call(*arguments, **named))


#: Searches at the same time, depending on the number of cores. Each thread keeps megabytes of the index.
MOST_SEARCHERS = 4


@dataclass(slots=True)
class Wakes:
    """One event per worker; setting it means that there is something to do."""

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
    #: Teams in whose index there may be chunks without a vector.
    unembedded: set[str] = field(default_factory=set)

    def wake_all(self) -> None:
        """Have every worker look for work; on the loop's own thread."""
        for each in (self.indexing, self.syncing, self.sweeping, self.cascading, self.delivering, self.rebuilding):
            each.set()
        for each in (self.rechunking, self.counting, self.embedding):
            each.set()

    def note_damaged(self, team_id: str) -> None:
        """Have the team's damaged index rebuilt; call on the loop's thread."""
        self.damaged.add(team_id)
        self.rebuilding.set()

    def note_unembedded(self, team_id: str) -> None:
        """Have the team's new chunks embedded; on the loop's own thread."""
        self.unembedded.add(team_id)
        self.embedding.set()


def _searchers() -> ThreadPoolExecutor:
    most = min(max(os.cpu_count() or 1, 2), MOST_SEARCHERS)
    return ThreadPoolExecutor(most, thread_name_prefix="search")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The parts of the process, assembled once by `server`."""

    database: Database
    blobs: Blobs
    parts: Parts
    asides: Asides
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
    #: The installation's own, 32 random bytes: upload tokens and webhook secrets are derived from it.
    secret: bytes
    #: What writes answers; None where no model is set, and they are quoted from the sources.
    llm: Llm | None = None
    embedding: EmbedderInUse = field(default_factory=EmbedderInUse)
    #: How many changes of its title are running for each source; used on the loop only.
    retitling: Counter[str] = field(default_factory=Counter)
    searchers: ThreadPoolExecutor = field(default_factory=_searchers)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` as one transaction; returns when it is durable."""
        return await asyncio.wrap_future(self.database.submit(work))

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run a short look-up directly, which is faster than in another thread."""
        return self.database.read(work)

    def look(self, work: Callable[[Connection], T]) -> T:
        """Run a single statement: one statement is a snapshot by itself, and needs no transaction around it."""
        return self.database.look(work)

    async def read_aside(self, work: Callable[[Connection], T]) -> T:
        """Run a long read (listings, counts) in a thread, without blocking the loop."""
        return await asyncio.to_thread(self.database.read, work)

    async def search_aside(self, call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a search on its own threads, where it doesn't wait for listings and finds the index open."""
        work = partial(copy_context().run, call, *arguments, **named)
        return await asyncio.get_running_loop().run_in_executor(self.searchers, work)
