"""Creates all components of the daemon, runs them until a signal, and shuts them down.

lock the data directory  ->  bind  ->  open state, index, blobs  ->  clean up after a crash  ->  write daemon.json
->  serve and work  ->  signal: stop accepting, finish work in progress or queue it again, close, exit 0

The address is bound before the database is opened, so that an address in use is reported at once.
"""

import asyncio
import contextlib
import json
import logging
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from ipaddress import ip_address
from math import inf
from typing import Any

from starlette.applications import Starlette

from svc_daemon.api.app import create_app
from svc_daemon.api.connections.protocols import server_config
from svc_daemon.api.middleware.guards import ClientLimits, GuardRules
from svc_daemon.api.middleware.hardening import Hardening
from svc_daemon.api.middleware.response_headers import is_open_to_pages
from svc_daemon.core import ids
from svc_daemon.core.access.urls import AddressPolicy, parse_allowed
from svc_daemon.core.ids import Ids
from svc_daemon.core.times import Clock
from svc_daemon.data_directory import has_state, lock_directory, make_folders, measure_files
from svc_daemon.embed.choices import Choice, OperatorsChoice
from svc_daemon.embed.installed_models import ModelFolder
from svc_daemon.errors import ServiceError, StorageError
from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.extractors import Extractor
from svc_daemon.extract.scans.recognizers import choose as choose_recognizer
from svc_daemon.fetch.contract import FetchLimits
from svc_daemon.fetch.fetchers import Fetcher
from svc_daemon.llm.contract import Llm
from svc_daemon.logs import start_logging
from svc_daemon.operations.index.indexing import release_expired
from svc_daemon.operations.index.syncing import release_expired_syncs
from svc_daemon.operations.installations import prepare_operator_token, serving_installation, write_secret
from svc_daemon.operations.remove.setting_aside import sort_leftovers
from svc_daemon.operations.remove.sweeping import rebuild_lost
from svc_daemon.paths import DataFiles
from svc_daemon.process.contexts import Context
from svc_daemon.process.engine_states import EngineStates
from svc_daemon.process.rate_limits import LocalRateLimits
from svc_daemon.process.resource_shortages import Shortages
from svc_daemon.process.telemetry import open_traces
from svc_daemon.process.wakes import Wakes
from svc_daemon.server.certificates import ServerCertificate, load_certificate
from svc_daemon.server.engines import EMBEDDED, Engines, choose_engines
from svc_daemon.server.sockets import base_url_of, bind, bound_arenas, most_connections, notifying_service_manager
from svc_daemon.server.uvicorn_server import Server, run_until_stopped
from svc_daemon.settings.daemon import Role, Settings
from svc_daemon.settings.limits import Limits, SettingError
from svc_daemon.settings.servers import LlmSettings
from svc_daemon.store.files.staging import clear_away
from svc_daemon.wire.light.local_daemons import digest_settings
from svc_daemon.wire.light.versions import VERSION
from svc_daemon.workers.delivering_webhooks import DeliveringWorker
from svc_daemon.workers.embedding import EmbeddingWorker
from svc_daemon.workers.indexing import IndexingWorker
from svc_daemon.workers.rebuilding import RebuildingWorker, RechunkingWorker
from svc_daemon.workers.refreshing import RefreshingWorker
from svc_daemon.workers.removing import DeletingWorker, RemovingWorker
from svc_daemon.workers.runners import Worker
from svc_daemon.workers.sweeping import CountingWorker, LookingWorker, SweepingWorker
from svc_daemon.workers.syncing import SyncingWorker

log = logging.getLogger(__name__)

#: Threads that write and fsync blobs; more are not faster.
BLOB_THREADS = 8
#: Maximum size of request line and headers.
MAX_HEAD_BYTES = 16 * 1024
#: Seconds that a thread may keep the interpreter's lock. With Python's 5 ms, searches during indexing take
#: more than twice as long as with this value, and with 1 ms a third longer.
SWITCH_INTERVAL_S = 0.0005
SYSTEM_CLOCK = Clock(now=partial(datetime.now, UTC), monotonic=time.monotonic)
#: Seconds of the shutdown reserved for queueing unfinished tasks again (parking) and closing files.
PARK_S = 3
#: Fraction of the remaining shutdown time in which model answers may finish.
FINISH_PART = 0.7


@dataclass(frozen=True, slots=True)
class Process:
    """The components that application and workers share."""

    context: Context
    extractor: Extractor
    choice: Choice
    installation_id: str
    #: The token for `/admin`.
    operator_token: str
    role: Role
    #: Whether sources that an older version has read are read again.
    rereads: bool


def serve(settings: Settings) -> None:
    """Run the daemon until SIGTERM or SIGINT. Raises an error if it can't start."""
    allowed = parse_allowed(settings.fetch_allow)
    certificate = load_certificate(settings.tls) if settings.tls else None
    os.umask(0o077)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    bound_arenas()
    files = DataFiles(settings.data_dir)
    make_folders(files)
    with lock_directory(files), bind(settings) as listener:
        # A directory without state and blobs may still contain the secret of an installation that was moved away.
        is_used = has_state(files) or files.secret.exists() or any(files.blobs.iterdir())
        if settings.faults is not None and is_used and not files.fault_lab.exists():
            raise StorageError(
                f"{files.root} has an installation that was made without --faults, so its content must be safe from"
                " them. Set SVC_DATA_DIR to a new directory."
            )
        if settings.faults is not None:
            files.fault_lab.touch()
        start_logging(files.log, settings.log_level)
        host, port = listener.getsockname()[:2]
        limits = FetchLimits(
            file_bytes=settings.limits.file_bytes,
            fetch_s=settings.limits.fetch_seconds,
            post_s=settings.limits.webhook_seconds,
            redirects=settings.limits.redirects,
        )
        # The operator may allow private addresses, but no request may go to this daemon itself.
        fetcher = Fetcher(AddressPolicy(allowed, own=(ip_address(host), port)), limits)
        try:
            asyncio.run(_serve(settings, files, listener, fetcher, certificate))
        except (ServiceError, SettingError) as error:
            # Nobody may see what the daemon prints.
            log.error("%s", error.message if isinstance(error, ServiceError) else error)  # noqa: TRY400
            raise


async def _serve(
    settings: Settings,
    files: DataFiles,
    listener: socket.socket,
    fetcher: Fetcher,
    certificate: ServerCertificate | None,
) -> None:
    broken, loop = asyncio.Event(), asyncio.get_running_loop()

    def on_broken(error: Exception) -> None:
        # Any thread may call this, but only the event loop may set an event.
        log.critical("the service can't continue and exits; it must be restarted: %s", error, exc_info=error)
        loop.call_soon_threadsafe(broken.set)

    async with contextlib.AsyncExitStack() as stack:
        process = await _open_process(stack, settings, files, fetcher, on_broken)
        base_url = base_url_of(settings, listener)
        lifespan = partial(_lifespan, process, on_broken)
        hardening, console = _hardening(settings, process.context), settings.has_console
        app = create_app(hardening, settings.limits, lifespan, settings.faults, has_console=console)
        server = Server(
            server_config(
                app,
                _client_limits(settings.limits),
                lambda: process.context.ids.make(ids.REQUEST),
                max_head_bytes=MAX_HEAD_BYTES,
                stop_s=max(settings.limits.stop_seconds - PARK_S, 1),
                tls=certificate.context if certificate else None,
            ),
            partial(_stop_answers, process.context, app.state.stopping),
        )
        app.state.measure = lambda: measure_files(files) | {"connections": len(server.server_state.connections)}
        facts = {"base_url": base_url, "installation_id": process.installation_id, **_tls_facts(certificate)}
        stack.enter_context(_announced(files, facts, process.context.clock))
        log.info("listening on %s", base_url)
        await stack.enter_async_context(notifying_service_manager(os.environ))
        await run_until_stopped(server, listener, broken)
    log.info("stopped")
    if broken.is_set():
        raise StorageError("The service had to stop after an error; read the log, then start it again.")


async def _open_process(
    stack: contextlib.AsyncExitStack,
    settings: Settings,
    files: DataFiles,
    fetcher: Fetcher,
    on_broken: Callable[[Exception], None],
) -> Process:
    """Open all components, and clean up after a crash. `stack` closes them in reverse order."""
    if settings.cluster is not None and has_state(files):
        raise StorageError(
            f"{files.root} has an installation of its own. For a node of a cluster, name an empty directory in"
            " SVC_DATA_DIR; to serve this installation, unset SVC_STATE_URL, SVC_BLOBS_URL and SVC_INDEX_URL."
        )
    engines = choose_engines(settings.cluster, os.environ)
    context = open_context(stack, settings.limits, files, fetcher, on_broken, engines=engines)
    if settings.has_traces:
        context = replace(context, traces=stack.enter_context(contextlib.closing(open_traces())))
    if settings.llm is not None:
        context = replace(context, llm=_open_llm(stack, settings.llm, settings.limits, context.clock))
    installation_id = stack.enter_context(serving_installation(files, context.database, context.ids))
    recognizer = choose_recognizer(settings.ocr)
    limits = CageLimits.from_limits(settings.limits, recognizer.name, recognizer.reason)
    extractor = Extractor(files.scratch, limits)
    stack.push_async_callback(extractor.close)
    await _repair(context, engines, installation_id)
    if settings.role is not Role.API:
        await extractor.start()
    choice = OperatorsChoice(
        folder=ModelFolder(files.models),
        error_log=files.log.with_name("model.log"),
        server=settings.embedding,
        timeout_s=settings.limits.embed_seconds,
        threads=settings.limits.embed_threads,
    )
    operator_token = prepare_operator_token(files, os.urandom)
    return Process(context, extractor, choice, installation_id, operator_token, settings.role, settings.rereads)


def open_context(
    stack: contextlib.AsyncExitStack,
    limits: Limits,
    files: DataFiles,
    fetcher: Fetcher,
    on_broken: Callable[[Exception], None],
    clock: Clock = SYSTEM_CLOCK,
    engines: Engines = EMBEDDED,
) -> Context:
    """Open the database, index and files of a locked data directory; `stack` closes them. Raises StorageError."""
    executor = stack.enter_context(ThreadPoolExecutor(BLOB_THREADS, thread_name_prefix="blob"))
    database = stack.enter_context(contextlib.closing(engines.open_state(files, on_broken)))
    wakes, loop = Wakes(), asyncio.get_running_loop()
    provider = engines.make_provider(
        files.index,
        clock=clock.monotonic,
        on_broken=on_broken,
        on_damaged=lambda team_id: loop.call_soon_threadsafe(wakes.note_damaged, team_id),
        on_building=lambda team_id: loop.call_soon_threadsafe(wakes.note_building, team_id),
        signs_bytes=limits.vector_memory_bytes,
    )
    stack.callback(provider.close)
    stores = engines.open_bytes(files, executor, on_broken)
    context = Context(
        database=database,
        blobs=stores.blobs,
        parts=stores.parts,
        set_aside_files=stores.set_aside_files,
        stores=stores,
        provider=provider,
        fetcher=fetcher,
        clock=clock,
        ids=Ids(now=clock.now, random=os.urandom),
        limits=limits,
        rate_limits=LocalRateLimits(limits, clock.monotonic),
        wakes=wakes,
        shortages=Shortages(stores.blobs, limits.free_disk_bytes, clock, wakes.wake_all, provider.check_reachable),
        secret=engines.prepare_secret(files, database),
    )
    return engines.join(stack, context)


def _open_llm(stack: contextlib.AsyncExitStack, server: LlmSettings, limits: Limits, clock: Clock) -> Llm:
    # Imported only if a model server is set, because its import of httpx takes 100 ms.
    from svc_daemon.llm.clients import LlmClient, limits_of  # noqa: PLC0415

    llm = LlmClient(server, limits_of(limits), clock.monotonic)
    stack.push_async_callback(llm.close)
    return llm


async def _repair(context: Context, engines: Engines, installation_id: str) -> None:
    """Clean up after a crash, in the installation's own engines.

    At startup, all leases and staging files are left over from the last run.
    """
    await asyncio.to_thread(engines.check_marks, context, installation_id)
    # If nodes share the state, only an expired lease shows that the process with the lease is gone.
    until_s = inf if context.clock.shared is None else context.clock.lease_s()
    released = await release_expired(context, until_s) + await release_expired_syncs(context, until_s)
    await sort_leftovers(context)
    if context.clock.shared is None:
        await rebuild_lost(context)
    if released:
        log.info("after an unclean stop: %d leases released", released)


@contextlib.asynccontextmanager
async def _lifespan(process: Process, on_broken: Callable[[Exception], None], app: Starlette) -> AsyncIterator[None]:
    """Set the application's state, and run the workers. At the end, the workers queue unfinished tasks again."""
    app.state.context = process.context
    app.state.installation_id = process.installation_id
    app.state.operator_token = process.operator_token
    app.state.extractor = process.extractor
    app.state.started_s = process.context.clock.monotonic()
    running = [asyncio.create_task(worker.run()) for worker in _workers(process)]
    for worker in running:
        # Exit if a worker fails, since nothing else would do its work.
        worker.add_done_callback(lambda ended: None if ended.cancelled() else on_broken(_end_of(ended)))
    try:
        yield
    finally:
        for worker in running:
            worker.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _workers(process: Process) -> Sequence[Worker | Shortages | EngineStates]:
    """Return the workers for the daemon's role."""
    context, extractor = process.context, process.extractor
    is_api = process.role is Role.API
    own: Sequence[Worker | Shortages | EngineStates] = (
        CountingWorker(context),
        EmbeddingWorker(context, process.choice, opens_only=is_api),
        context.shortages,
        *([context.engines] if context.engines.now else []),
    )
    if is_api:
        return own
    return (
        *own,
        IndexingWorker(context, extractor),
        SyncingWorker(context),
        SweepingWorker(context),
        DeletingWorker(context),
        DeliveringWorker(context),
        RebuildingWorker(context, extractor),
        RechunkingWorker(context, extractor, rereads=process.rereads),
        RefreshingWorker(context, extractor),
        RemovingWorker(context),
        *([LookingWorker(context)] if context.clock.shared is not None else []),
    )


def _end_of(worker: asyncio.Task[None]) -> Exception:
    error = worker.exception()
    return error if isinstance(error, Exception) else RuntimeError("a worker has ended")


def _stop_answers(context: Context, stopping: asyncio.Event, left_s: int) -> None:
    """Wake waiting requests, and stop model answers early enough to report the shutdown to their clients."""
    stopping.set()
    context.followers.wake()
    if context.llm is not None:
        asyncio.get_running_loop().call_later(left_s * FINISH_PART, context.llm.stop)


def _tls_facts(certificate: ServerCertificate | None) -> dict[str, Any]:
    if certificate is None:
        return {}
    shown = {"pem": certificate.pem, "names": certificate.names, "expires_at": certificate.expires_at}
    return {"certificate": shown}


@contextlib.contextmanager
def _announced(files: DataFiles, facts: Mapping[str, Any], clock: Clock) -> Iterator[None]:
    """Write `daemon.json` for the command line, and delete it at the end. After a crash, an old file is left behind."""
    fields = {
        "pid": os.getpid(),
        "version": VERSION,
        "log": str(files.log),
        "started_at": clock.timestamp(),
        "settings": digest_settings(os.environ, facts["installation_id"]),
        **facts,
    }
    write_secret(files.daemon, json.dumps(fields))
    try:
        yield
    finally:
        clear_away(files.daemon)


def _hardening(settings: Settings, context: Context) -> Hardening:
    hosts = (*settings.allowed_hosts, settings.host)
    return Hardening(
        new_id=lambda: context.ids.make(ids.REQUEST),
        rules=GuardRules(
            hosts=hosts, origins=settings.allowed_origins, max_head_bytes=MAX_HEAD_BYTES, exempt=is_open_to_pages
        ),
        limits=_client_limits(settings.limits),
        clock=context.clock.monotonic,
        count=context.metrics.count_request,
        traces=context.traces,
    )


def _client_limits(limits: Limits) -> ClientLimits:
    return ClientLimits(
        head_s=limits.header_seconds,
        max_connections=most_connections(ClientLimits().max_connections),
        body_bytes_per_s=limits.body_bytes_per_second,
        body_total_s=limits.body_seconds,
    )
