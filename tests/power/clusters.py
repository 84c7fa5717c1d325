"""A cluster in one thread: the real workers and statements of each node on SQLite in memory, under simulated time."""

import asyncio
import random
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar, cast

from svc_daemon.core.ids import Ids
from svc_daemon.core.text.chunking import Chunk, Extraction
from svc_daemon.core.times import Clock
from svc_daemon.databases.contract import Exclusive
from svc_daemon.databases.sqlite import LAST_TURN
from svc_daemon.errors import ServiceError, ShuttingDown
from svc_daemon.extract.documents import ExtractionFailed, StoredDocument
from svc_daemon.process.contexts import Context
from svc_daemon.process.rate_limits import LocalRateLimits
from svc_daemon.process.resource_shortages import Shortages
from svc_daemon.process.wakes import Wakes
from svc_daemon.provider.contract import STATE_ACTIVE, DocumentState, IndexDocument, ListedDocument, document_id
from svc_daemon.provider.errors import DocumentMissing
from svc_daemon.settings.limits import Limits
from svc_daemon.store.migrations import MIGRATIONS
from svc_daemon.wire.light.error_codes import ErrorCode, SourceErrorCode
from svc_daemon.workers.delivering_webhooks import DeliveringWorker
from svc_daemon.workers.indexing import IndexingWorker
from svc_daemon.workers.sweeping import SweepingWorker
from svc_daemon.workers.syncing import SyncingWorker
from tests.power.loops import NODE, SimulatedLoop

T = TypeVar("T")
#: When each simulation begins.
BEGINNING_S = 1_800_000_000.0
LIMITS = Limits(creates_per_second=0, bytes_per_minute=0, extract_children=2, free_disk_bytes=0)
#: How long the extraction of a document takes at most, without a failure.
LONGEST_EXTRACTION_S = 45.0
#: A dead node's locks are free after this time at the latest.
LOCKS_S = 10.0
_TEXT = "The umber quay."
_EXTRACTION = Extraction(
    content_type="text/plain", text=_TEXT, chunks=(Chunk(ordinal=0, text=_TEXT, char_start=0, char_end=len(_TEXT)),)
)


class Cluster:
    """What all nodes share: the database, the index, the locks, the clock and the receiver of webhook calls."""

    def __init__(self, loop: SimulatedLoop, draw: random.Random) -> None:
        self.loop = loop
        self.draw = draw
        #: How far the shared clock is ahead of the simulated time, and the latest time that it has shown.
        self.ahead_s = BEGINNING_S
        self.latest_s = BEGINNING_S
        self.connection = _open_state()
        self.documents: dict[str, IndexDocument] = {}
        self.locks: dict[str, Node] = {}
        self.calls: list[tuple[str, int | None]] = []
        #: The chance that an extraction or a webhook call fails.
        self.failures = 0.0
        self.log: list[str] = []
        #: Called after each commit; raises AssertionError.
        self.check: Callable[[], None] = lambda: None
        self.broken: AssertionError | None = None
        self.nodes: list[Node] = []

    def now_s(self) -> float:
        now_s = self.loop.time() + self.ahead_s
        self.latest_s = max(self.latest_s, now_s)
        return now_s

    def note(self, who: object, what: str) -> None:
        self.log.append(f"{self.loop.time():10.3f} s  {who}: {what}")

    def start_node(self, name: str) -> "Node":
        node = Node(self, name)
        self.nodes.append(node)
        copy_context().run(node.start)
        return node


class Node:
    """One daemon of the cluster, with its own workers."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name = name
        self.cluster = cluster
        self.is_alive = True
        self._running: list[asyncio.Task[None]] = []
        self.context = _open_context(self)

    def __str__(self) -> str:
        return self.name

    def start(self) -> None:
        NODE.set(self)
        workers = (
            IndexingWorker(self.context, cast(Any, FakeExtractor(self.cluster))),
            SyncingWorker(self.context),
            SweepingWorker(self.context),
            DeliveringWorker(self.context),
        )
        self._running = [self.cluster.loop.create_task(worker.run()) for worker in workers]

    def kill(self) -> None:
        """End the node at once: nothing that it does from now on has an effect."""
        self.is_alive = False
        self.cluster.loop.frozen.pop(self, None)
        for task in self._running:
            task.cancel()
        delay_s = self.cluster.draw.random() * LOCKS_S
        self.cluster.loop.call_later(delay_s, self._free_locks, context=copy_context())

    def check_alive(self) -> None:
        if not self.is_alive:
            raise ShuttingDown

    def _free_locks(self) -> None:
        for name in [name for name, holder in self.cluster.locks.items() if holder is self]:
            del self.cluster.locks[name]


class NodeDatabase:
    """A node's connection to the shared database. A commit takes a while, and the node may die or stop meanwhile."""

    operations = commits = 0
    is_broken = False

    def __init__(self, node: Node) -> None:
        self._node = node
        self._cluster = node.cluster

    def submit(self, work: Callable[[Any], T]) -> "Future[T]":
        self._node.check_alive()
        future: Future[T] = Future()
        # The server commits even if the node stops meanwhile.
        outside = copy_context()
        outside.run(NODE.set, None)
        delay_s = self._cluster.draw.random() * 0.2
        self._cluster.loop.call_later(delay_s, self._commit, work, future, context=outside)
        return future

    def read(self, work: Callable[[Any], T]) -> T:
        self._node.check_alive()
        return work(self._cluster.connection)

    look = read

    def empty_log(self) -> None:
        self._node.check_alive()

    def _commit(self, work: Callable[[Any], T], future: "Future[T]") -> None:
        cluster, connection = self._cluster, self._cluster.connection
        if not self._node.is_alive and cluster.draw.random() < 0.5:
            future.set_exception(ShuttingDown())
            return
        connection.execute("BEGIN")
        try:
            result = work(connection)
        except BaseException as error:  # passed on to whoever waits
            connection.execute("ROLLBACK")
            future.set_exception(error)
            return
        connection.execute("COMMIT")
        cluster.note(self._node, _name_of(work))
        try:
            cluster.check()
        except AssertionError as broken:
            cluster.broken = cluster.broken or broken
        future.set_result(result)


@dataclass(slots=True)
class FakeIndex:
    """The search index that all nodes share."""

    node: Node

    @property
    def _documents(self) -> dict[str, IndexDocument]:
        self.node.check_alive()
        return self.node.cluster.documents

    def put_documents(self, _team: str, documents: Sequence[IndexDocument]) -> set[str]:
        kept = set()
        for document in documents:
            there = self._documents.get(document.source_id)
            if there is not None and there.generation >= document.generation:
                kept.add(document.source_id)
            else:
                self._documents[document.source_id] = document
                self.node.cluster.note(self.node, f"put {document.source_id} of generation {document.generation}")
        return kept

    def set_buckets(self, _team: str, source_id: str, generation: int, bucket_ids: Sequence[str]) -> None:
        there = self._find(source_id)
        if there.generation != generation:
            raise DocumentMissing(source_id)
        self._documents[source_id] = _changed(there, bucket_ids=tuple(bucket_ids))

    def set_title(self, _team: str, source_id: str, title: str) -> None:
        self._documents[source_id] = _changed(self._find(source_id), title=title)

    def delete_document(self, _team: str, source_id: str) -> None:
        self._documents.pop(source_id, None)

    def get_document(self, _team: str, source_id: str) -> DocumentState | None:
        there = self._documents.get(source_id)
        if there is None:
            return None
        name = document_id(source_id, there.generation)
        buckets = tuple(sorted(there.bucket_ids))
        return DocumentState(
            state=STATE_ACTIVE, document_id=name, generation=there.generation, chunks=1, bucket_ids=buckets
        )

    def list_documents(self, _team: str) -> Iterator[ListedDocument]:
        for source_id, each in sorted(self._documents.items()):
            yield ListedDocument(source_id, each.generation, tuple(sorted(each.bucket_ids)), 1)

    def purge(self, _team: str) -> bool:
        return False

    def check_reachable(self) -> None:
        self.node.check_alive()

    def _find(self, source_id: str) -> IndexDocument:
        if (there := self._documents.get(source_id)) is None:
            raise DocumentMissing(source_id)
        return there


@dataclass(slots=True)
class FakeExtractor:
    cluster: Cluster

    async def extract(self, document: StoredDocument) -> Extraction:
        draw = self.cluster.draw
        await asyncio.sleep(draw.random() ** 3 * LONGEST_EXTRACTION_S)
        if draw.random() < self.cluster.failures:
            raise ExtractionFailed(SourceErrorCode.EXTRACTION_CRASHED, "It failed.", retryable=draw.random() < 0.8)
        return _EXTRACTION

    async def extract_wave(self, documents: Sequence[StoredDocument]) -> list[Extraction | Exception]:
        results: list[Extraction | Exception] = []
        for document in documents:
            try:
                results.append(await self.extract(document))
            except ExtractionFailed as failed:
                results.append(failed)
        return results


@dataclass(slots=True)
class FakeReceiver:
    """Makes webhook calls to a receiver that is slow, or fails."""

    node: Node

    async def post(self, _url: str, body: bytes, headers: dict[str, str]) -> int:
        cluster = self.node.cluster
        await asyncio.sleep(cluster.draw.random() * 3)
        self.node.check_alive()
        status = 500 if cluster.draw.random() < cluster.failures else 200
        cluster.calls.append((headers["webhook-id"], status))
        cluster.note(self.node, f"call {headers['webhook-id']}: {status}")
        await asyncio.sleep(cluster.draw.random())
        if cluster.draw.random() < cluster.failures:
            raise ServiceError(ErrorCode.URL_FETCH_FAILED, "The answer was lost.")
        return status


@dataclass(slots=True)
class FakeLocks:
    node: Node

    @asynccontextmanager
    async def hold_free(self, *names: str) -> AsyncIterator[Sequence[str]]:
        self.node.check_alive()
        locks = self.node.cluster.locks
        held = [name for name in names if name not in locks]
        locks |= dict.fromkeys(held, self.node)
        try:
            yield held
        finally:
            for name in held:
                if self.node.is_alive:
                    locks.pop(name, None)


@dataclass(slots=True)
class FakeBytes:
    """All stored bytes: each blob is there, and nothing else is."""

    node: Node
    deleted: list[str] = field(default_factory=list)

    def blob(self, name: str) -> str:
        return name

    def has_room(self, _reserve_bytes: int) -> bool:
        return True

    def try_room(self, _size_bytes: int) -> None:
        pass

    async def delete(self, names: Sequence[str]) -> dict[str, Exception]:
        self.node.check_alive()
        self.deleted += names
        return {}

    async def find_stored(self, _source_ids: object) -> set[str]:
        return set()

    def list_names(self) -> list[str]:
        return []


def _open_context(node: Node) -> Context:
    cluster = node.cluster
    stored, wakes = cast(Any, FakeBytes(node)), Wakes(look_s=10.0)

    def now() -> datetime:
        return datetime.fromtimestamp(cluster.now_s(), UTC)

    clock = Clock(now=now, monotonic=cluster.loop.time, shared=cluster.now_s)
    return Context(
        database=cast(Any, NodeDatabase(node)),
        blobs=stored,
        parts=stored,
        set_aside_files=stored,
        stores=stored,
        provider=cast(Any, FakeIndex(node)),
        fetcher=cast(Any, FakeReceiver(node)),
        clock=clock,
        ids=Ids(now=now, random=cluster.draw.randbytes),
        limits=LIMITS,
        rate_limits=LocalRateLimits(LIMITS, clock.monotonic),
        locks=cast(Any, FakeLocks(node)),
        wakes=wakes,
        shortages=Shortages(stored, 0, clock, wakes.wake_all),
        secret=bytes(32),
    )


def _changed(document: IndexDocument, **fields: Any) -> IndexDocument:
    values = {name: getattr(document, name) for name in IndexDocument.__slots__}
    return IndexDocument(**{**values, **fields})


def _name_of(work: Callable[[Any], object]) -> str:
    work = work.work if isinstance(work, Exclusive) else work
    return str(getattr(getattr(work, "func", work), "__qualname__", work))


@cache
def _empty_state() -> bytes:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for change in MIGRATIONS.values():
        change(connection)
    return connection.serialize()


def _open_state() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=512, check_same_thread=False)
    connection.deserialize(_empty_state())
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    connection.create_function("lowercase", 1, lambda text: None if text is None else text.lower(), deterministic=True)
    connection.create_function("writer_number", 0, lambda: 0)
    connection.create_function("this_turn", 0, lambda: LAST_TURN, deterministic=True)
    connection.create_function("unsettled_turn", 0, lambda: LAST_TURN + 1, deterministic=True)
    return connection
