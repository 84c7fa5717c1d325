"""HTTP handlers for buckets: list, create, show, change and delete them."""

import re
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.endpoints import BUCKET, DRY, KEY_IGNORED, NO_BUCKET, PAGE, Endpoint
from svc_daemon.api.requests import (
    body_of,
    caller,
    context_of,
    creation_of,
    is_dry_run,
    meaning_of,
    optional_body_of,
    page_of,
    query_flag,
)
from svc_daemon.api.responses import created, respond, would_create
from svc_daemon.core import ids
from svc_daemon.core.access import api_keys
from svc_daemon.core.json_bodies import refusal
from svc_daemon.core.uploads.source_fields import check_metadata
from svc_daemon.operations import buckets as verbs
from svc_daemon.operations.remove.bucket_deletions import delete_bucket
from svc_daemon.operations.shared.idempotency import find_earlier
from svc_daemon.operations.shared.response_objects import view_deletion
from svc_daemon.wire import buckets as wire
from svc_daemon.wire.light.error_codes import ErrorCode as E
from svc_daemon.wire.sources import DryRun


async def list_all(request: Request) -> Response:
    key = caller(request, *api_keys.LIST_BUCKETS)
    archived = query_flag(request, "include_archived")
    members = _with_members(request)
    found = await verbs.list_reachable_buckets(context_of(request), key, include_archived=archived, members=members)
    page, paging = page_of(request, found, ids.BUCKET)
    return respond(request, {"team_id": key.team_id, "buckets": page, **paging})


async def put(request: Request) -> Response:
    key = creation_of(request, api_keys.BUCKET_CREATE).key
    slug = request.path_params["bucket"]
    if not re.fullmatch(wire.SLUG_PATTERN, slug):
        raise refusal(
            "slug",
            f"{slug!r} is not a slug: 1 to 63 lower-case letters, digits and hyphens, with no hyphen at either end.",
        )
    fields = await optional_body_of(request, wire.BucketFields)
    check_metadata(fields.metadata, context_of(request).limits)
    if is_dry_run(request, fields.dry_run):
        existing = context_of(request).read(lambda connection: verbs.check_put(connection, key, slug))
        return _dry(request, slug, fields) if existing is None else would_create(request, None)
    bucket, is_new = await verbs.put_bucket(context_of(request), key, slug, fields)
    return respond(request, bucket, 201 if is_new else 200, created=is_new)


async def create(request: Request) -> Response:
    creation = creation_of(request, api_keys.BUCKET_CREATE)
    fields = await body_of(request, wire.BucketCreate)
    check_metadata(fields.metadata, context_of(request).limits)
    creation = replace(creation, fingerprint=meaning_of(fields))
    if is_dry_run(request, fields.dry_run):
        if find_earlier(context_of(request), creation) is not None:
            return would_create(request, None)
        context_of(request).read(lambda connection: verbs.check_create(connection, creation.key, fields.slug))
        return _dry(request, fields.slug, fields)
    outcome = await verbs.create_new_bucket(context_of(request), creation, fields)
    return created(request, outcome)


async def show(request: Request) -> Response:
    key = caller(request, *api_keys.SHOW_BUCKET)
    members = _with_members(request)
    bucket = await verbs.show_bucket(context_of(request), key, request.path_params["bucket"], members=members)
    return respond(request, bucket)


async def update(request: Request) -> Response:
    key = caller(request, api_keys.BUCKET_UPDATE)
    change = await body_of(request, wire.BucketUpdate)
    if change.metadata is not None:
        check_metadata(change.metadata, context_of(request).limits)
    bucket = await verbs.change_bucket(context_of(request), key, request.path_params["bucket"], change)
    return respond(request, bucket)


async def delete(request: Request) -> Response:
    key = caller(request, api_keys.BUCKET_DELETE)
    force = query_flag(request, "force")
    bucket, cascade = await delete_bucket(context_of(request), key, request.path_params["bucket"], force=force)
    body = {"id": bucket.id, "slug": bucket.slug, "object": "bucket", "status": "deleting"}
    return respond(request, body, deletion=view_deletion(cascade))


def _with_members(request: Request) -> bool:
    return query_flag(request, "members", default=True)


def _dry(request: Request, slug: str, fields: wire.BucketFields) -> Response:
    wanted = fields.model_dump(exclude={"dry_run"}) | {"object": "bucket", "slug": slug}
    return would_create(request, wanted)


_SHOWN = {"members": "false: without `knowledgeIds`."}
_LIST = PAGE | _SHOWN | {"include_archived": "true: archived ones too."}

# fmt: off
ENDPOINTS = (
    Endpoint("GET", "/v1/buckets", list_all, "List buckets", {200: wire.BucketList}, query=_LIST),
    Endpoint("POST", "/v1/buckets", create, "Create a bucket",
             {201: wire.BucketAnswer, 200: wire.BucketAnswer | DryRun},
             body=wire.BucketCreate, query=DRY, repeatable=True, errors=(E.BUCKET_SLUG_EXISTS, E.METADATA_TOO_LARGE)),
    Endpoint("PUT", BUCKET, put, "Create a bucket unless it exists",
             {201: wire.BucketPutAnswer, 200: wire.BucketPutAnswer | DryRun},
             body=wire.BucketFields, optional=True, query=DRY, headers=KEY_IGNORED,
             errors=(E.BUCKET_SLUG_EXISTS, E.METADATA_TOO_LARGE, E.INVALID_IDEMPOTENCY_KEY)),
    Endpoint("GET", BUCKET, show, "Show a bucket", {200: wire.BucketAnswer}, query=_SHOWN, errors=NO_BUCKET),
    Endpoint("PATCH", BUCKET, update, "Change, archive or restore a bucket", {200: wire.BucketAnswer},
             body=wire.BucketUpdate, errors=(*NO_BUCKET, E.METADATA_TOO_LARGE, E.DELETE_IN_PROGRESS)),
    Endpoint("DELETE", BUCKET, delete, "Delete a bucket and the sources only in it", {200: wire.BucketDeleted},
             query={"force": "true: required."}, errors=(*NO_BUCKET, E.FORCE_REQUIRED, E.DELETE_IN_PROGRESS)),
    Endpoint("GET", "/v1/knowledge/buckets", list_all, "List buckets (alias)", {200: wire.BucketList},
             query=_LIST, successor="/v1/buckets"),
)
# fmt: on
