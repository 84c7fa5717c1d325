"""Handlers of upload sessions."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.creating import Creating, told_of, told_of_source
from svc_daemon.api.presenting import (
    answer,
    body_of,
    caller,
    context_of,
    idempotency_key,
    is_dry_run,
    mark_replayed,
    optional_body_of,
    path_destination,
    respond,
    would_create,
)
from svc_daemon.api.request_ids import request_id_of
from svc_daemon.core import ids
from svc_daemon.core.access import api_keys
from svc_daemon.core.uploads import source_fields
from svc_daemon.core.uploads.idempotency import fingerprint
from svc_daemon.core.uploads.source_fields import clean_file_name
from svc_daemon.errors import ServiceError
from svc_daemon.operations import uploads as verbs
from svc_daemon.operations.destinations import Destination
from svc_daemon.operations.finalizing import finalize_upload, judge_finalize
from svc_daemon.operations.ingest import check_replaces
from svc_daemon.operations.keys import refuse_out_of_reach
from svc_daemon.operations.replays import find_outcome
from svc_daemon.operations.views import view_source
from svc_daemon.process.contexts import Context
from svc_daemon.settings import Limits
from svc_daemon.store.keys import KeyRow
from svc_daemon.store.uploads import UploadRow
from svc_daemon.wire import uploads as wire
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.sources import SourceAnswer

ROUTE = "POST /v1/buckets/{bucket}/uploads"


async def create(request: Request) -> Response:
    creating = Creating(caller(request, api_keys.FILE_CREATE), idempotency_key(request), ROUTE)
    destination = path_destination(request, creating.key)
    return await open_session(request, creating, destination, await body_of(request, wire.UploadCreate))


async def open_session(
    request: Request, creating: Creating, destination: Destination, body: wire.UploadCreate
) -> Response:
    """The session that the body asks for, into the buckets that some door has found."""
    context = context_of(request)
    wanted = new_upload(context, creating.key, destination, body)
    told = body.model_dump(include=set(wire.UploadCreate.model_fields)) | {"dry_run": False}
    repeatable = creating.claiming(fingerprint(destination.identity, told))
    if is_dry_run(request, body.dry_run):
        if find_outcome(context, repeatable) is not None:
            return would_create(request, None)
        context.read(lambda connection: check_replaces(connection, creating.key, destination.ids, wanted.replaces))
        return would_create(request, _told(destination, wanted))
    upload, outcome = await verbs.create_upload(context, repeatable, destination, wanted)
    return _created(request, upload, replayed=outcome.replayed)


async def show(request: Request) -> Response:
    key = caller(request)
    return _status(request, key, verbs.progress_of(context_of(request), _find(request, key)))


async def cancel(request: Request) -> Response:
    key = caller(request, api_keys.FILE_CREATE)
    upload = _find_to_end(request, key)
    return _status(request, key, await verbs.cancel_upload(context_of(request), upload))


async def finalize(request: Request) -> Response:
    key = caller(request, api_keys.FILE_CREATE)
    body = await optional_body_of(request, wire.UploadFinalize)
    upload = _find_to_end(request, key, to_finalize=True)
    if is_dry_run(request, body.dry_run):
        judged = await judge_finalize(context_of(request), upload)
        if judged.error is not None:
            raise judged.error
        return would_create(request, None if judged.source is None else told_of_source(judged.source, key))
    outcome = await finalize_upload(context_of(request), upload)
    if outcome.source is None:
        raise ServiceError(ErrorCode.INTERNAL_ERROR)
    response = answer(request, SourceAnswer, view_source(outcome.source, key))
    if outcome.replayed:
        return mark_replayed(response)
    response.status_code = 201
    return response


def _find(request: Request, key: KeyRow, *, to_finalize: bool = False) -> UploadRow:
    """The session that the path names; one of another bucket is `session_not_found`."""
    bucket, session_id = request.path_params["bucket"], request.path_params["session_id"]
    return verbs.find_upload(context_of(request), key, bucket, session_id, to_finalize=to_finalize)


def _find_to_end(request: Request, key: KeyRow, *, to_finalize: bool = False) -> UploadRow:
    """The same, where the key reaches all of its buckets; raises `forbidden_project_key`."""
    upload = _find(request, key, to_finalize=to_finalize)
    refuse_out_of_reach(key, upload.bucket_ids, "upload session", api_keys.FILE_CREATE)
    return upload


def new_upload(context: Context, key: KeyRow, destination: Destination, body: wire.UploadCreate) -> UploadRow:
    """The session that the body asks for, every field checked; raises what a one-call upload raises."""
    source_fields.refuse_webhook(body.webhook)
    filename = clean_file_name(body.filename)
    check_size(body.size_bytes, filename, context.limits)
    expires_at, ends_at = verbs.lifetime(context)
    return UploadRow(
        id=context.ids.make(ids.UPLOAD),
        team_id=key.team_id,
        bucket_ids=destination.ids,
        filename=filename,
        content_type=body.content_type or "",
        size_bytes=body.size_bytes,
        title=source_fields.check_title(filename if body.title is None else body.title, context.limits),
        tags=source_fields.check_tags(body.tags, context.limits),
        metadata=source_fields.check_metadata(body.metadata, context.limits),
        mapping=source_fields.check_mapping(body.mapping, context.limits),
        replaces=body.replaces,
        sha256=source_fields.check_sha256(body.sha256) if body.sha256 is not None else None,
        expires_at=expires_at,
        ends_at=ends_at,
        created_at=context.clock.timestamp(),
    )


def check_size(size_bytes: int, filename: str, limits: Limits) -> None:
    """Raises `empty_file` and `file_too_large`, before any byte is sent."""
    if size_bytes == 0:
        raise ServiceError(ErrorCode.EMPTY_FILE, f"{filename} has no bytes.")
    if size_bytes > limits.file_bytes:
        raise ServiceError(
            ErrorCode.FILE_TOO_LARGE,
            f"{filename} has {size_bytes} bytes; the limit is {limits.file_bytes}.",
            max_bytes=limits.file_bytes,
            size_bytes=size_bytes,
        )


def url_of(request: Request, upload: UploadRow) -> str:
    """The storage address with its capability; made for each answer, never stored."""
    token = verbs.upload_token(context_of(request), upload)
    return str(request.url_for("storage", session_id=upload.id, token=token))


def _created(request: Request, upload: UploadRow, *, replayed: bool) -> Response:
    url = url_of(request, upload)
    told = wire.Upload(
        session_id=upload.id,
        upload_url=url,
        status=verbs.progress_of(context_of(request), upload).state,
        bucket_ids=list(upload.bucket_ids),
        expires_at=upload.expires_at,
        request_id=request_id_of(request.scope),
    )
    response = respond(request, told, 200 if replayed else 201)
    # Google's resumable clients take the address from here.
    response.headers["Location"] = url
    response.headers["Cache-Control"] = "no-store"
    return mark_replayed(response) if replayed else response


def _status(request: Request, key: KeyRow, progress: verbs.UploadProgress) -> Response:
    upload = progress.upload
    return respond(
        request,
        wire.UploadStatus(
            session_id=upload.id,
            status=progress.state,
            filename=upload.filename,
            size_bytes=upload.size_bytes,
            received_bytes=progress.received_bytes,
            bucket_ids=key.reachable(upload.bucket_ids),
            source_id=upload.source_id,
            expires_at=upload.expires_at,
            created_at=upload.created_at,
            request_id=request_id_of(request.scope),
        ),
    )


def _told(destination: Destination, upload: UploadRow) -> dict[str, Any]:
    return {
        "object": "upload_session",
        **told_of(destination),
        "filename": upload.filename,
        "title": upload.title,
        "size_bytes": upload.size_bytes,
    }
