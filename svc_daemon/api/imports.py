"""Handlers of the doors that take a URL: `files/import` and `pages`."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.presenting import body_of, caller, context_of, created, flag, idempotency_key, respond
from svc_daemon.api.request_ids import request_id_of
from svc_daemon.core import api_keys, readiness, source_fields
from svc_daemon.core.idempotency import Claim
from svc_daemon.core.urls import parse_url
from svc_daemon.operations.imports import UrlImport, check_import, create_from_url
from svc_daemon.operations.keys import get_usable_bucket
from svc_daemon.operations.replays import Repeatable
from svc_daemon.settings import Limits
from svc_daemon.store.buckets import Bucket
from svc_daemon.wire import imports as wire
from svc_daemon.wire.sources import DryRun, SourceAnswer

FILE_ROUTE = "POST /v1/buckets/{bucket}/files/import"
PAGE_ROUTE = "POST /v1/buckets/{bucket}/pages"


async def import_file(request: Request) -> Response:
    return await _create(request, readiness.FILE, FILE_ROUTE)


async def add_page(request: Request) -> Response:
    return await _create(request, readiness.PAGE, PAGE_ROUTE)


async def _create(request: Request, kind: str, route: str) -> Response:
    context = context_of(request)
    key = caller(request, api_keys.FILE_CREATE)
    repeat_key = idempotency_key(request)
    bucket = context.look(lambda connection: get_usable_bucket(connection, key, request.path_params["bucket"]))
    body = await body_of(request, wire.UrlImport)
    wanted = _checked(body, kind, context.limits)
    if body.dry_run or flag("dry_run", request.query_params.get("dry_run")):
        await check_import(context, key, bucket, wanted)
        return _dry(request, bucket, wanted)
    # URLs replay by their key alone (specification, Upload, rule 5).
    claim = Claim(route=route, fingerprint=None)
    outcome = await create_from_url(context, Repeatable(key, repeat_key, claim), bucket, wanted)
    return created(request, SourceAnswer, outcome)


def _checked(body: wire.UrlImport, kind: str, limits: Limits) -> UrlImport:
    return UrlImport(
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


def _dry(request: Request, bucket: Bucket, wanted: UrlImport) -> Response:
    told = {
        "object": "knowledge_file",
        "type": wanted.kind,
        "bucket_id": bucket.id,
        "source_url": str(wanted.url),
        "title": wanted.title,
    }
    return respond(request, DryRun(would_create=told, request_id=request_id_of(request.scope)))
