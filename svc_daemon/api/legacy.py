"""The legacy doors: permanent aliases whose bodies name the buckets. All but the naming is done by the other doors.

Their answers tell what has succeeded them (`deprecations`).
"""

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.batches import open_batch, refuse_mismatch
from svc_daemon.api.creating import Creating
from svc_daemon.api.deprecations import name_bucket
from svc_daemon.api.imports import take_url
from svc_daemon.api.presenting import body_of, caller, context_of, idempotency_key
from svc_daemon.api.uploads import open_session
from svc_daemon.core import readiness
from svc_daemon.core.access import api_keys
from svc_daemon.core.uploads.destinations import in_body, in_manifest
from svc_daemon.operations.destinations import Destination, find_destination, find_in_manifest
from svc_daemon.wire import legacy as wire

UPLOAD_ROUTE = "POST /v1/knowledge/files/upload-session"
BATCH_ROUTE = "POST /v1/knowledge/files:batch/upload-session"
PAGE_ROUTE = "POST /v1/knowledge/websites"


async def create_upload(request: Request) -> Response:
    creating = _creating(request, UPLOAD_ROUTE)
    body = await body_of(request, wire.LegacyUploadCreate)
    return await open_session(request, creating, _destination(request, creating, body), body)


async def create_batch(request: Request) -> Response:
    context, creating = context_of(request), _creating(request, BATCH_ROUTE)
    body = await body_of(request, wire.LegacyBatchCreate)
    refuse_mismatch(body, context.limits)
    naming = in_manifest(body.manifest)
    destinations = context.read(lambda connection: find_in_manifest(connection, context, creating.key, naming))
    name_bucket(request, destinations[0].slug)
    return await open_batch(request, creating, destinations, body)


async def add_page(request: Request) -> Response:
    creating = _creating(request, PAGE_ROUTE)
    body = await body_of(request, wire.LegacyUrlImport)
    return await take_url(request, creating, _destination(request, creating, body), readiness.PAGE, body)


def _creating(request: Request, route: str) -> Creating:
    return Creating(caller(request, api_keys.FILE_CREATE), idempotency_key(request), route)


def _destination(request: Request, creating: Creating, body: wire.DestinationFields) -> Destination:
    """The buckets of the body; raises `bucket_required` and `bucket_assignment_failed`."""
    context, naming = context_of(request), in_body(body)
    destination = context.read(lambda connection: find_destination(connection, context, creating.key, naming))
    name_bucket(request, destination.slug)
    return destination
