"""HTTP handlers for the routes that import a URL: `files/import` and `pages`."""

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.endpoints import BUCKET, BYTES, DRY, NO_BUCKET, PAGED, WEB, Endpoint
from svc_daemon.api.requests import body_of, context_of, creation_of, is_dry_run, path_destination
from svc_daemon.api.responses import created, view_destinations, would_create
from svc_daemon.core import readiness
from svc_daemon.core.access import api_keys
from svc_daemon.core.access.urls import naming, parse_url
from svc_daemon.core.uploads import source_fields
from svc_daemon.operations.ingest.urls import WantedImport, check_import, create_from_url, find_scheduled
from svc_daemon.operations.shared.destination_buckets import Destination
from svc_daemon.operations.shared.idempotency import Creation, find_earlier
from svc_daemon.operations.shared.schedules import check_choice
from svc_daemon.wire import sources as wire
from svc_daemon.wire.light.error_codes import ErrorCode as E
from svc_daemon.wire.sources import DryRun, SourceAnswer, WebhookCall


async def import_file(request: Request) -> Response:
    return await _create(request, readiness.FILE)


async def add_page(request: Request) -> Response:
    return await _create(request, readiness.PAGE)


async def _create(request: Request, kind: str) -> Response:
    creation = creation_of(request, api_keys.FILE_CREATE)
    destination = path_destination(request, creation.key)
    return await take_url(request, creation, destination, kind, await body_of(request, wire.UrlImport))


async def take_url(
    request: Request, creation: Creation, destination: Destination, kind: str, body: wire.UrlImport
) -> Response:
    """Create a source from the URL in the body."""
    context = context_of(request)
    limits, webhook = context.limits, None
    if body.webhook is not None:
        metadata = source_fields.check_metadata(body.webhook.metadata, limits)
        with naming("webhook.url"):
            webhook = WebhookCall(url=str(parse_url(body.webhook.url)), metadata=metadata)
    wanted = WantedImport(
        kind=kind,
        url=parse_url(body.url),
        **source_fields.check_description(body, body.title or "", limits),
        sha256=source_fields.check_sha256(body.sha256),
        force=body.force,
        webhook=webhook,
        refresh=body.refresh and check_choice(creation.key, body.refresh, limits),
    )
    # A repeated import is recognized by its idempotency key alone, whatever its body: it has no fingerprint.
    if is_dry_run(request, body.dry_run):
        known = context.read(lambda connection: find_scheduled(connection, creation.key, destination, wanted))
        if known is not None or find_earlier(context, creation) is not None:
            return would_create(request, None)
        await check_import(context, creation.key, destination, wanted)
        fields = {
            "object": "knowledge_file",
            "type": wanted.kind,
            "bucket_id": next(iter(destination.ids), None),
            **view_destinations(destination),
            "source_url": str(wanted.url),
            "title": wanted.title or None,
        }
        return would_create(request, fields)
    outcome = await create_from_url(context, creation, destination, wanted)
    return created(request, outcome, waits_for=None)


_ANSWERS = {201: SourceAnswer, 200: SourceAnswer | DryRun}

# fmt: off
ENDPOINTS = (
    Endpoint("POST", BUCKET + "/files/import", import_file, "Import a file from a URL", _ANSWERS,
             body=wire.UrlImport, query=DRY, repeatable=True, errors=(*NO_BUCKET, *WEB, *BYTES, E.URL_IS_WEB_PAGE)),
    Endpoint("POST", BUCKET + "/pages", add_page, "Ingest a web page", _ANSWERS,
             body=wire.UrlImport, query=DRY, repeatable=True, errors=(*NO_BUCKET, *WEB, *PAGED)),
)
# fmt: on
