"""HTTP handlers for the state of the service as a key may see it, and for what watchers of folders report."""

import asyncio
import re
from datetime import timedelta

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.endpoints import Endpoint
from svc_daemon.api.requests import body_of, caller, context_of
from svc_daemon.api.responses import respond
from svc_daemon.core.access import api_keys
from svc_daemon.core.json_bodies import refusal
from svc_daemon.core.times import from_text, to_text
from svc_daemon.operations import service_status as verbs
from svc_daemon.operations.shared.response_objects import view_engines, view_shortage
from svc_daemon.store.rows.keys import WatcherRow
from svc_daemon.wire import services as wire
from svc_daemon.wire.light.local_daemons import least_free_bytes

_WATCHER_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")


async def show(request: Request) -> Response:
    key, context = caller(request, *api_keys.LIST_SOURCES), context_of(request)
    disk = None
    if not key.is_limited:
        sizes = await asyncio.to_thread(request.app.state.measure)
        least = least_free_bytes(context.limits.free_disk_bytes, sizes["total"])
        disk = wire.DiskState(free_bytes=sizes["free"], least_free_bytes=least)
    body = {
        "object": "status",
        "status": "read_only" if context.database.is_broken else "ok",
        "queue": await verbs.count_queue(context, key),
        "vectors": await verbs.measure_vectors(context, key),
        "disk": disk,
        "engines": view_engines(context),
        "shortage": view_shortage(context.shortages.now),
        "last_trouble": verbs.find_trouble(context),
    }
    return respond(request, body)


async def report(request: Request) -> Response:
    key = caller(request, api_keys.FILE_CREATE)
    watcher_id, body = request.path_params["watcher_id"], await body_of(request, wire.WatcherReport)
    if not _WATCHER_ID.fullmatch(watcher_id):
        raise refusal("watcher_id", "must have 1 to 64 letters, digits, - and _.")
    mappings = [
        wire.WatchedMapping(
            name=each.name,
            bucket=each.bucket,
            state=each.state,
            last_look_at=each.last_look_at,
            troubles=each.troubles,
        )
        for each in body.mappings
    ]
    watcher = await verbs.report_watcher(context_of(request), key, watcher_id, mappings)
    forgotten = to_text(from_text(watcher.reported_at) + timedelta(seconds=verbs.FORGET_S))
    return respond(request, _view(watcher), expires_at=forgotten)


async def list_watchers(request: Request) -> Response:
    key = caller(request, *api_keys.LIST_SOURCES)
    found = verbs.list_watchers(context_of(request), key)
    return respond(request, {"object": "list", "data": [_view(watcher) for watcher in found]})


def _view(watcher: WatcherRow) -> wire.Watcher:
    return wire.Watcher(
        id=watcher.id,
        object="watcher",
        key_id=watcher.key_id,
        mappings=watcher.mappings,
        reported_at=watcher.reported_at,
    )


# fmt: off
ENDPOINTS = (
    Endpoint("GET", "/v1/status", show, "Queue, vectors, disk and troubles, as the key may see them",
             {200: wire.ServiceStatus}, strict=True),
    Endpoint("GET", "/v1/watchers", list_watchers, "List the watchers that have reported within a minute",
             {200: wire.WatcherList}, strict=True),
    Endpoint("PUT", "/v1/watchers/{watcher_id}", report, "Report what a watcher watches", {200: wire.WatcherAnswer},
             body=wire.WatcherReport),
)
# fmt: on
