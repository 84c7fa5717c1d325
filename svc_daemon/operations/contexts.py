"""What every operation and worker is given: the open stores, the clock, the limits, and how to wake the workers."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from sqlite3 import Connection
from typing import TypeVar

from svc_daemon.core.ids import Ids
from svc_daemon.core.times import Clock
from svc_daemon.database import Database
from svc_daemon.fetch.fetchers import Fetcher
from svc_daemon.llm.contract import Llm
from svc_daemon.operations.embedding import Embedding
from svc_daemon.operations.gates import Gates
from svc_daemon.operations.tallies import Tallies
from svc_daemon.operations.writers import Writers
from svc_daemon.provider.contract import SearchProvider
from svc_daemon.settings import Limits
from svc_daemon.store.blobs import Blobs
from svc_daemon.store.parts import Parts

T = TypeVar("T")


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

    def tell_damaged(self, team_id: str) -> None:
        """Have the team's index looked after; on the loop's own thread."""
        self.damaged.add(team_id)
        self.rebuilding.set()

    def tell_unembedded(self, team_id: str) -> None:
        """Have the team's new chunks embedded; on the loop's own thread."""
        self.unembedded.add(team_id)
        self.embedding.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The process's parts, put together once by `server`."""

    database: Database
    blobs: Blobs
    parts: Parts
    provider: SearchProvider
    fetcher: Fetcher
    clock: Clock
    ids: Ids
    limits: Limits
    gates: Gates
    writers: Writers
    wakes: Wakes
    tallies: Tallies = field(default_factory=Tallies)
    #: The installation's own, 32 random bytes: upload tokens and webhook secrets are derived from it.
    secret: bytes
    #: What writes answers; None where no model is set, and they are quoted from the sources.
    llm: Llm | None = None
    embedding: Embedding = field(default_factory=Embedding)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` as one transaction; returns when it is durable."""
        return await asyncio.wrap_future(self.database.submit(work))

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run a short look-up here and now: it costs less than handing it to a thread."""
        return self.database.read(work)

    def look(self, work: Callable[[Connection], T]) -> T:
        """Run a single statement: one statement is a snapshot by itself, and needs no transaction around it."""
        return self.database.look(work)

    async def read_aside(self, work: Callable[[Connection], T]) -> T:
        """Run a read that may be long (listings, counts) in a thread, so that the loop goes on."""
        return await asyncio.to_thread(self.database.read, work)
