"""Handlers of the doors that take a URL: `files/import` and `pages`."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.creating import Creating, told_of
from svc_daemon.api.presenting import (
    body_of,
    caller,
    context_of,
    created,
    idempotency_key,
    is_dry_run,
    path_destination,
    would_create,
)
from svc_daemon.core import readiness
from svc_daemon.core.access import api_keys
from svc_daemon.core.access.urls import parse_url
from svc_daemon.core.uploads import source_fields
from svc_daemon.operations.destinations import Destination
from svc_daemon.operations.imports import WantedImport, check_import, create_from_url
from svc_daemon.operations.replays import find_outcome
from svc_daemon.settings import Limits
from svc_daemon.wire import imports as wire
from svc_daemon.wire.sources import SourceAnswer

FILE_ROUTE = "POST /v1/buckets/{bucket}/files/import"
PAGE_ROUTE = "POST /v1/buckets/{bucket}/pages"


async def import_file(request: Request) -> Response:
    return await _create(request, readiness.FILE, FILE_ROUTE)


async def add_page(request: Request) -> Response:
    return await _create(request, readiness.PAGE, PAGE_ROUTE)


async def _create(request: Request, kind: str, route: str) -> Response:
    creating = Creating(caller(request, api_keys.FILE_CREATE), idempotency_key(request), route)
    destination = path_destination(request, creating.key)
    return await take_url(request, creating, destination, kind, await body_of(request, wire.UrlImport))


async def take_url(
    request: Request, creating: Creating, destination: Destination, kind: str, body: wire.UrlImport
) -> Response:
    """The source of the URL that the body names, in the buckets that some door has found."""
    context = context_of(request)
    wanted = _checked(body, kind, context.limits)
    # URLs replay by their key alone (specification, Upload, rule 5).
    repeatable = creating.claiming(None)
    if is_dry_run(request, body.dry_run):
        if find_outcome(context, repeatable) is not None:
            return would_create(request, None)
        await check_import(context, creating.key, destination, wanted)
        return would_create(request, _told(destination, wanted))
    outcome = await create_from_url(context, repeatable, destination, wanted)
    return created(request, SourceAnswer, outcome)


def _checked(body: wire.UrlImport, kind: str, limits: Limits) -> WantedImport:
    return WantedImport(
        kind=kind,
        url=parse_url(body.url),
        title=source_fields.check_title(body.title, limits) if body.title is not None else None,
        tags=source_fields.check_tags(body.tags, limits),
        metadata=source_fields.check_metadata(body.metadata, limits),
        mapping=source_fields.check_mapping(body.mapping, limits),
        replaces=body.replaces,
        sha256=source_fields.check_sha256(body.sha256) if body.sha256 is not None else None,
        force=body.force,
        webhook=_webhook(body.webhook, limits) if body.webhook is not None else None,
    )


def _webhook(webhook: wire.Webhook, limits: Limits) -> dict[str, Any]:
    url = parse_url(webhook.url)
    return {"url": str(url), "metadata": source_fields.check_metadata(webhook.metadata, limits)}


def _told(destination: Destination, wanted: WantedImport) -> dict[str, Any]:
    return {
        "object": "knowledge_file",
        "type": wanted.kind,
        "bucket_id": next(iter(destination.ids), None),
        **told_of(destination),
        "source_url": str(wanted.url),
        "title": wanted.title,
    }
