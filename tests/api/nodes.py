"""The nodes of a daemon inside the test's process: one, or several on the same engines behind one door."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import State
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from svc_daemon.api.app import create_app
from svc_daemon.api.middleware.guards import GuardRules
from svc_daemon.api.middleware.hardening import Hardening
from svc_daemon.api.middleware.response_headers import is_open_to_pages
from svc_daemon.core import ids
from svc_daemon.core.times import Clock
from svc_daemon.data_directory import measure_files
from svc_daemon.extract.extractors import Extractor
from svc_daemon.fetch.fetchers import Fetcher
from svc_daemon.operations.installations import prepare_installation, prepare_operator_token
from svc_daemon.paths import DataFiles
from svc_daemon.process.contexts import Context
from svc_daemon.server.engines import Engines
from svc_daemon.server.server import open_context
from svc_daemon.settings.limits import Limits
from tests.api.holds import HeldProvider

#: Separates the number of a node from the name of the installation's folder.
_NUMBER = "+node"


@dataclass(frozen=True, slots=True)
class Shared:
    """What all nodes of an installation are opened with."""

    #: Closes them.
    stack: AsyncExitStack
    limits: Limits
    fetcher: Fetcher
    clock: Clock
    extractor: Extractor


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What one process of an installation has for itself."""

    files: DataFiles
    provider: HeldProvider
    context: Context
    app: Starlette
    installation_id: str


class Rotation:
    """Sends each request to the next of these applications, as a load balancer does that knows no affinity."""

    def __init__(self, apps: Sequence[Starlette]) -> None:
        self._first = apps[0]
        self._turns = cycle(apps)

    @property
    def routes(self) -> list[BaseRoute]:
        return self._first.routes

    @property
    def state(self) -> State:
        return self._first.state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Operators use the routes of their own machine, whose token they read there.
        is_local = scope["type"] != "http" or scope["path"].startswith("/admin")
        await (self._first if is_local else next(self._turns))(scope, receive, send)


async def open_node(files: DataFiles, engines: Engines, shared: Shared, first: Node | None) -> Node:
    """Open a node of an installation; its provider obeys the orders of the `first` one's."""
    made: list[HeldProvider] = []

    def make_provider(*places: Path, **options: Any) -> HeldProvider:
        made.append(HeldProvider(*places, **options))
        if first is not None:
            made[0].obey_orders_of(first.provider)
        return made[0]

    engines = replace(engines, make_provider=make_provider)
    context = open_context(shared.stack, shared.limits, files, shared.fetcher, lambda _: None, shared.clock, engines)
    if first is not None:
        # It connects with the first call, which takes most of a search's time on a busy machine.
        made[0].list_teams()
    installation_id = prepare_installation(files, context.database, context.ids)
    new_id = partial(context.ids.make, ids.REQUEST)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.context = context
        app.state.installation_id = installation_id
        app.state.operator_token = prepare_operator_token(files, os.urandom)
        app.state.extractor = shared.extractor
        app.state.measure = partial(measure_files, files)
        app.state.started_s = context.clock.monotonic()
        yield

    hardening = Hardening(new_id=new_id, rules=GuardRules(exempt=is_open_to_pages), count=context.metrics.count_request)
    app = create_app(hardening, shared.limits, lifespan)
    await shared.stack.enter_async_context(app.router.lifespan_context(app))
    return Node(files=files, provider=made[0], context=context, app=app, installation_id=installation_id)


def node_files(folder: Path, count: int) -> list[DataFiles]:
    """Name the data directories of so many nodes, and make their folders; that of the first is the folder."""
    others = [folder.with_name(f"{folder.name}{_NUMBER}{number}") for number in range(2, count + 1)]
    made = [*map(DataFiles, (folder, *others))]
    for files in made:
        for path in (files.root, files.blobs, files.staging, files.parts, files.index):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return made


def installation_of(files: DataFiles) -> Path:
    """Return the folder that all nodes of an installation are named after."""
    return files.root.with_name(files.root.name.partition(_NUMBER)[0])
