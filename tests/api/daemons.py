"""A daemon inside the test's process: the real app on real files, with workers that run only when a test starts them.

Its parts are put together by `server`, but for three that a test controls: the clock can be set ahead, the provider
can fail or be held, and each worker is started by name. A run with `--nodes` has several nodes behind one daemon.
"""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Protocol, TypeVar

import httpx

from svc_daemon.core import ids
from svc_daemon.core.access import api_keys
from svc_daemon.core.access.urls import AddressPolicy, parse_allowed
from svc_daemon.core.times import Clock
from svc_daemon.databases.contract import Connection, Database
from svc_daemon.databases.sqlite import SqliteDatabase
from svc_daemon.embed.contract import Embedder
from svc_daemon.extract.extractors import Extractor
from svc_daemon.fetch.contract import FetchLimits
from svc_daemon.fetch.fetchers import Fetcher
from svc_daemon.llm.clients import LlmClient, LlmLimits
from svc_daemon.operations.shared.authorization import authenticate
from svc_daemon.paths import DataFiles
from svc_daemon.process.contexts import Context
from svc_daemon.process.embedders import EmbeddingState
from svc_daemon.server.engines import EMBEDDED, Engines, open_folders, open_sqlite
from svc_daemon.settings.limits import Limits
from svc_daemon.settings.servers import LlmSettings
from svc_daemon.store.files.contract import ByteStores
from svc_daemon.store.migrations import migrate
from svc_daemon.store.rows.keys import KeyRow, create_key
from svc_daemon.store.rows.teams import create_team
from svc_daemon.workers.delivering_webhooks import DeliveringWorker
from svc_daemon.workers.indexing import IndexingWorker
from svc_daemon.workers.rebuilding import RebuildingWorker, RechunkingWorker
from svc_daemon.workers.refreshing import RefreshingWorker
from svc_daemon.workers.removing import DeletingWorker, RemovingWorker
from svc_daemon.workers.sweeping import CountingWorker, SweepingWorker
from svc_daemon.workers.syncing import SyncingWorker
from tests.acceptance.installations import PATIENCE_S, wait_until
from tests.api.answers import body_of
from tests.api.documents import check_type
from tests.api.holds import Away
from tests.api.loops import Loop
from tests.api.nodes import Node, Rotation, Shared, node_files, open_node

T = TypeVar("T")
OpenState = Callable[[DataFiles, Callable[[Exception], None]], Database]
OpenBytes = Callable[[DataFiles, Executor, Callable[[Exception], None]], ByteStores]
#: Tests that are not about the limits must not wait for them.
UNLIMITED = Limits(creates_per_second=0, bytes_per_minute=0)
#: Where the servers of the tests are.
LOOPBACK = "127.0.0.0/8"
#: What most uploads of the tests hold.
NOTES = b"# Notes\n\nThe umber quay was built of grey stone.\n"


class Worker(Protocol):
    """Something that runs until it is cancelled."""

    async def run(self) -> None: ...


class Daemon:
    """One data directory, opened, and the app that serves it."""

    #: How the daemons of this run open their state and bytes; options of pytest choose another way.
    open_state: ClassVar[OpenState] = staticmethod(open_sqlite)
    #: Joins what the daemons of this run share with others, and returns the context that uses it.
    join: ClassVar[Callable[[DataFiles, AsyncExitStack, Context], Context]] = staticmethod(lambda *given: given[-1])
    open_bytes: ClassVar[OpenBytes] = staticmethod(open_folders)
    prepare_secret: ClassVar[Callable[[DataFiles, Database], bytes]] = staticmethod(EMBEDDED.prepare_secret)
    #: How many nodes serve each installation of the run; several need engines that they share.
    node_count: ClassVar[int] = 1

    def __init__(
        self, loop: Loop, folder: Path, extractor: Extractor, limits: Limits = UNLIMITED, fetch_allow: str = LOOPBACK
    ) -> None:
        self.loop = loop
        self._fetch_allow = fetch_allow
        self.limits = limits
        self._extractor = extractor
        self._ahead = timedelta()
        self._looks_left = 0
        self._stack = AsyncExitStack()
        self._workers: list[asyncio.Task[None]] = []
        self.nodes: list[Node] = []
        is_new = not folder.exists()
        own, *others = node_files(folder, type(self).node_count)
        self.files = own
        if is_new:
            own.state.write_bytes(_empty_state())
        self.loop.run(self._open([own, *others]))

    async def _open(self, directories: Sequence[DataFiles]) -> None:
        most = self.limits
        limits = FetchLimits(file_bytes=most.file_bytes, fetch_s=most.fetch_seconds, post_s=most.webhook_seconds)
        fetcher = Fetcher(AddressPolicy(parse_allowed(self._fetch_allow)), limits)
        clock = Clock(now=self._now, monotonic=self._monotonic)
        shared = Shared(self._stack, self.limits, fetcher, clock, self._extractor)
        for files in directories:
            engines = Engines(
                open_state=type(self).open_state,
                open_bytes=type(self).open_bytes,
                prepare_secret=type(self).prepare_secret,
                join=partial(type(self).join, files),
            )
            self.nodes.append(await open_node(files, engines, shared, self.nodes[0] if self.nodes else None))
        first = self.nodes[0]
        self.context, self.provider, self.installation_id = first.context, first.provider, first.installation_id
        self.app = first.app if len(self.nodes) == 1 else Rotation([node.app for node in self.nodes])
        self.operator_token = str(first.app.state.operator_token)
        self.key = self.files.admin_key.read_text().strip()
        self.team_id = str(self.read(lambda c: c.execute("SELECT id FROM teams ORDER BY id").fetchone()["id"]))
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
        await self._stack.enter_async_context(self._client)

    def _now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def _monotonic(self) -> float:
        if self._looks_left:
            self._looks_left -= 1
            if not self._looks_left:
                self._ahead += timedelta(hours=1)
        return time.monotonic() + self._ahead.total_seconds()

    def close(self) -> None:
        self.stop()
        self.loop.run(self._stack.aclose())

    def advance(self, seconds: float) -> None:
        """Set both clocks ahead, and have every worker look at them."""
        self._ahead += timedelta(seconds=seconds)
        self.wake()

    def leap(self, looks: int) -> None:
        """Set both clocks an hour ahead at this look at the monotonic one, counted from the next as 1."""
        self._looks_left = looks

    def embed_with(self, embedder: Embedder | None) -> None:
        """Have this model make the vectors of queries from now on."""
        for node in self.nodes:
            node.context.embedding.embedder = embedder
            node.context.embedding.state = EmbeddingState.READY if embedder else EmbeddingState.OFF

    def wake(self) -> None:
        for node in self.nodes:
            for wake in node.context.wakes.shared().values():
                self.loop.call(wake.set_here)

    def start(self, *names: str) -> None:
        """Run these workers on each node, each by the first part of its name (`indexing`), or all."""
        for node in self.nodes:
            context = node.context
            makers: dict[str, Callable[[], Worker]] = {
                "indexing": partial(IndexingWorker, context, self._extractor),
                "syncing": partial(SyncingWorker, context),
                "sweeping": partial(SweepingWorker, context),
                "cascading": partial(DeletingWorker, context),
                "delivering": partial(DeliveringWorker, context),
                "rebuilding": partial(RebuildingWorker, context, self._extractor),
                "rechunking": partial(RechunkingWorker, context, self._extractor),
                "refreshing": partial(RefreshingWorker, context, self._extractor),
                "removing": partial(RemovingWorker, context),
                "counting": partial(CountingWorker, context),
                "shortages": partial(getattr, context, "shortages"),
            }
            for name in names or makers:
                self.run_worker(makers[name])

    def run_worker(self, make: Callable[[], Worker]) -> None:
        """Run one more worker until the stop."""
        self.loop.call(lambda: self._workers.append(asyncio.create_task(make().run())))

    def stop(self) -> None:
        """Stop the workers as a graceful stop of the daemon does."""
        self.loop.run(self._stop())

    async def _stop(self) -> None:
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._workers.clear()

    @contextmanager
    def writing(self, base_url: str, first_word_s: float = PATIENCE_S, silent_s: float = PATIENCE_S) -> Iterator[None]:
        """A model at this address writes the answers while the block runs."""
        longest = {"connect_s": PATIENCE_S, "total_s": PATIENCE_S}
        limits = LlmLimits(first_word_s=first_word_s, silent_s=silent_s, answer_characters=10_000, **longest)
        llm = LlmClient(LlmSettings(base_url=base_url, model="small"), limits, self.context.clock.monotonic)
        try:
            with self.serving_with(llm=llm):
                yield
        finally:
            self.loop.run(llm.close())

    @contextmanager
    def serving_with(self, **parts: Any) -> Iterator[None]:
        """The application has these in place of parts of its context while the block runs."""
        for node in self.nodes:
            node.app.state.context = replace(node.context, **parts)
        try:
            yield
        finally:
            for node in self.nodes:
                node.app.state.context = node.context

    @contextmanager
    def refusing_bytes(self) -> Iterator[None]:
        """The disk is full while the block runs; in a cluster, which needs none, the database is out of reach."""
        reserve_bytes = 10**15
        full = {"limits": replace(self.limits, free_disk_bytes=reserve_bytes)}
        away = {"database": Away(self.context.database)}
        with self.serving_with(**away if self.context.blobs.has_room(reserve_bytes) else full):
            yield

    @contextmanager
    def holding(self, *names: str) -> Iterator[None]:
        """Hold locks, as a request does that can't be interrupted, while the block runs."""
        held = self.context.locks.hold_free(*names)
        assert len(self.loop.run(held.__aenter__())) == len(names)
        try:
            yield
        finally:
            self.loop.run(held.__aexit__(None, None, None))

    def read(self, work: Callable[[Connection], T]) -> T:
        return self.context.database.read(work)

    def write(self, work: Callable[[Connection], T]) -> T:
        return self.context.database.write(work)

    def count(self, table: str) -> int:
        """Rows of a table of the state."""
        return self.read(lambda connection: int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]))

    def kept(self) -> dict[str, int]:
        """How much there is of everything that a create may leave."""
        staged = sum(len(list(node.files.staging.iterdir())) for node in self.nodes)
        tables = "sources memberships tasks idempotency deliveries buckets uploads batches"
        rows = {name: self.count(name) for name in tables.split()}
        return rows | {"blobs": len(self.blob_names()), "staging": staged}

    def blob_names(self) -> list[str]:
        return sorted(self.context.blobs.list_ids())

    def part_ids(self) -> list[str]:
        """The sessions that have bytes."""
        return sorted(self.context.parts.list_ids())

    def read_blob(self, name: str) -> bytes:
        return self.loop.run(self.context.blobs.blob(name).read(0, self.limits.file_bytes))

    def lose_blob(self, name: str) -> None:
        assert self.loop.run(self.context.blobs.delete([name])) == {}

    def add_team(self) -> str:
        """Another team; its admin key."""
        team_id = self.context.ids.make(ids.TEAM)
        self.write(lambda connection: create_team(connection, team_id, "another", self.context.clock.timestamp()))
        return self.add_key(team_id=team_id)

    def add_key(self, *capabilities: str, team_id: str | None = None, **fields: Any) -> str:
        """A key of this team, with all capabilities unless some are named."""
        text = api_keys.mint(self.context.ids.make(ids.KEY), os.urandom(32))
        parts = api_keys.parse(text)
        assert parts is not None
        fields = {"capabilities": capabilities or api_keys.CAPABILITIES, "name": "test", **fields}
        fields |= {"team_id": team_id or self.team_id, "created_at": self.context.clock.timestamp()}
        row = KeyRow(id=parts.key_id, secret_hash=parts.secret_hash, **fields)
        self.write(lambda connection: create_key(connection, row))
        return text

    @property
    def admin(self) -> KeyRow:
        """The row of the admin key."""
        return authenticate(self.context, f"Bearer {self.key}")

    def ask(self, method: str, path: str, *, key: str | None = None, **options: Any) -> httpx.Response:
        """One request, under the admin key unless another is given; an empty key sends none."""
        return self.loop.run(self._ask(method, path, key, **options))

    def show(self, path: str, *, key: str | None = None, **query: str | list[str]) -> dict[str, Any]:
        """The body of a GET that succeeds."""
        return body_of(self.ask("GET", path, key=key, params=query or None))

    def post(self, path: str, status: int = 200, **options: Any) -> dict[str, Any]:
        """The body of a POST that succeeds."""
        return body_of(self.ask("POST", path, **options), status)

    def patch(self, path: str, **body: Any) -> dict[str, Any]:
        """The body of a PATCH that succeeds."""
        return body_of(self.ask("PATCH", path, json=body))

    def delete(self, path: str, **query: str) -> dict[str, Any]:
        """The body of a DELETE that succeeds."""
        return body_of(self.ask("DELETE", path, params=query))

    def ask_together(self, *asks: Callable[[], Coroutine[Any, Any, httpx.Response]]) -> list[httpx.Response]:
        """Requests that run at the same time."""

        async def work() -> list[httpx.Response]:
            return list(await asyncio.gather(*(ask() for ask in asks)))

        return self.loop.run(work())

    def asking(self, method: str, path: str, **options: Any) -> Callable[[], Coroutine[Any, Any, httpx.Response]]:
        """A request for `ask_together`."""
        return partial(self._ask, method, path, options.pop("key", None), **options)

    async def _ask(
        self, method: str, path: str, key: str | None, repeat_key: str | None = None, **options: Any
    ) -> httpx.Response:
        headers = httpx.Headers(options.pop("headers", {}))
        if repeat_key is not None:
            headers["Idempotency-Key"] = repeat_key
        if key != "":
            headers.setdefault("Authorization", f"Bearer {key or self.key}")
        return check_type(await self._client.request(method, path, headers=headers, **options))

    def make_bucket(self, slug: str = "inbox", key: str | None = None) -> str:
        """The bucket's id."""
        answer = self.ask("PUT", f"/v1/buckets/{slug}", key=key)
        assert answer.is_success, answer.text
        return str(answer.json()["id"])

    def upload(
        self, data: bytes = NOTES, *, bucket: str = "inbox", filename: str = "notes.md", **fields: Any
    ) -> httpx.Response:
        """One-call upload, under a `key` and a `repeat_key` if there is one; whatever the answer is."""
        options: dict[str, Any] = {name: fields.pop(name, None) for name in ("key", "repeat_key")}
        return self.ask("POST", f"/v1/buckets/{bucket}/files", files={"file": (filename, data)}, data=fields, **options)

    def add_source(self, data: bytes = NOTES, **options: Any) -> str:
        """The id of a new source."""
        return str(body_of(self.upload(data, **options), 201)["id"])

    def add_ready(self, data: bytes = NOTES, **options: Any) -> str:
        """The id of a new source that is ready; the workers must run."""
        source_id = self.add_source(data, **options)
        self.wait_ready(source_id)
        return source_id

    def source(self, source_id: str, key: str | None = None) -> dict[str, Any]:
        return self.show(f"/v1/sources/{source_id}", key=key)

    def task(self, source_id: str) -> dict[str, Any]:
        """The latest task of the source."""
        return self.show(f"/v1/knowledge/tasks/{self.source(source_id)['task']['id']}")

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Return when the condition holds."""
        wait_until(condition, what, PATIENCE_S)

    def wait_ready(self, *source_ids: str) -> None:
        for source_id in source_ids:
            wait_until(lambda: self.source(source_id)["ready"], f"{source_id} is ready")  # noqa: B023

    def wait_status(self, source_id: str, status: str) -> dict[str, Any]:
        """The source once it has the status."""

        def reached() -> dict[str, Any] | None:
            source = self.source(source_id)
            return source if source["status"] == status else None

        return wait_until(reached, f"{source_id} is {status}")

    def members(self, bucket: str = "inbox", **query: str) -> list[str]:
        """Ids that the bucket lists."""
        return [source["id"] for source in self.show(f"/v1/buckets/{bucket}/sources", **query)["sources"]]

    def search(self, query: str, **body: Any) -> httpx.Response:
        key = body.pop("key", None)
        return self.ask("POST", "/v1/search", key=key, json={"query": query, **body})

    def found(self, query: str, **body: Any) -> list[str]:
        """Ids of the sources that the search finds, best first, each once."""
        return list(dict.fromkeys(result["source_id"] for result in body_of(self.search(query, **body))["data"]))


@cache
def _empty_state() -> bytes:
    """A database with the schema and no row; making one takes thirty writes to the disk."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        SqliteDatabase(path, prepare=migrate).close()
        return path.read_bytes()
