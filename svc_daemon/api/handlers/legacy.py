"""HTTP handlers for legacy routes. Their requests name the buckets in the body instead of the path."""

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.endpoints import BUCKET, DRY, FIELDS, NO_SOURCE, PAGED, QUOTAS, SIZES, WEB, Endpoint
from svc_daemon.api.handlers.batches import open_batch
from svc_daemon.api.handlers.imports import take_url
from svc_daemon.api.handlers.sessions import open_session
from svc_daemon.api.middleware.response_headers import name_bucket
from svc_daemon.api.requests import body_of, context_of, creation_of
from svc_daemon.core import readiness
from svc_daemon.core.access import api_keys
from svc_daemon.core.uploads.destination_buckets import in_body, in_manifest
from svc_daemon.core.uploads.manifests import join_files
from svc_daemon.operations.shared.destination_buckets import Destination, find_destination, find_in_manifest
from svc_daemon.operations.shared.idempotency import Creation
from svc_daemon.wire import legacy as wire
from svc_daemon.wire.batches import Batch
from svc_daemon.wire.light.error_codes import ErrorCode as E
from svc_daemon.wire.sessions import Upload
from svc_daemon.wire.sources import DryRun, SourceAnswer


async def create_session(request: Request) -> Response:
    creation = creation_of(request, api_keys.FILE_CREATE)
    body = await body_of(request, wire.LegacyUploadCreate)
    return await open_session(request, creation, _destination(request, creation, body), body)


async def create_batch(request: Request) -> Response:
    context, creation = context_of(request), creation_of(request, api_keys.FILE_CREATE)
    body = await body_of(request, wire.LegacyBatchCreate)
    join_files(body, context.limits)
    naming = in_manifest(body.manifest)
    destinations = context.read(lambda connection: find_in_manifest(connection, context, creation.key, naming))
    name_bucket(request, destinations[0].slug)
    return await open_batch(request, creation, destinations, body)


async def add_page(request: Request) -> Response:
    creation = creation_of(request, api_keys.FILE_CREATE)
    body = await body_of(request, wire.LegacyUrlImport)
    return await take_url(request, creation, _destination(request, creation, body), readiness.PAGE, body)


def _destination(request: Request, creation: Creation, body: wire.DestinationFields) -> Destination:
    """Return the buckets named in the body. Raises `bucket_required`, and the errors of `find_destination`."""
    context, naming = context_of(request), in_body(body)
    destination = context.read(lambda connection: find_destination(connection, context, creation.key, naming))
    name_bucket(request, destination.slug)
    return destination


_NAMED = (E.BUCKET_REQUIRED, E.BUCKET_ASSIGNMENT_FAILED)

# fmt: off
ENDPOINTS = (
    Endpoint("POST", "/v1/knowledge/files/upload-session", create_session, "Create an upload session (alias)",
             {201: Upload, 200: Upload | DryRun}, body=wire.LegacyUploadCreate, query=DRY, repeatable=True,
             successor=BUCKET + "/uploads", errors=(*_NAMED, *NO_SOURCE, *FIELDS, *QUOTAS, *SIZES)),
    Endpoint("POST", "/v1/knowledge/files:batch/upload-session", create_batch, "Create a batch (alias)",
             {201: Batch, 200: Batch | DryRun}, body=wire.LegacyBatchCreate, query=DRY, repeatable=True,
             successor=BUCKET + "/batches", errors=(*_NAMED, *QUOTAS)),
    Endpoint("POST", "/v1/knowledge/websites", add_page, "Ingest a web page (alias)",
             {201: SourceAnswer, 200: SourceAnswer | DryRun}, body=wire.LegacyUrlImport, query=DRY, repeatable=True,
             successor=BUCKET + "/pages", errors=(*_NAMED, *WEB, *PAGED)),
)
# fmt: on
