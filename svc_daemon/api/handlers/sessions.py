"""HTTP handlers for upload sessions and storage URLs.

A storage URL receives bytes by Google's resumable upload protocol. The URL's token authorizes the request.
"""

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.bodies import content_length, refuse_encoding
from svc_daemon.api.endpoints import BUCKET, DRY, FIELDS, NO_BUCKET, NO_SOURCE, QUOTAS, SIZES, Endpoint
from svc_daemon.api.middleware.response_headers import STORAGE_PREFIX
from svc_daemon.api.requests import (
    body_of,
    caller,
    context_of,
    creation_of,
    header_of,
    is_dry_run,
    optional_body_of,
    path_destination,
)
from svc_daemon.api.responses import mark_replayed, respond, view_destinations, would_create
from svc_daemon.core import ids
from svc_daemon.core.access import api_keys
from svc_daemon.core.idempotency import fingerprint
from svc_daemon.core.uploads import sessions as rules
from svc_daemon.core.uploads.source_fields import check_description, check_sha256, choose_title, clean_file_name
from svc_daemon.errors import ServiceError
from svc_daemon.operations.ingest import sessions as verbs
from svc_daemon.operations.ingest.files import check_replaces
from svc_daemon.operations.ingest.finalizing import finalize_session, judge_finalize
from svc_daemon.operations.ingest.packs import authorize_pack, put_pack
from svc_daemon.operations.ingest.sessions import SessionStart
from svc_daemon.operations.shared.authorization import refuse_out_of_reach
from svc_daemon.operations.shared.destination_buckets import Destination
from svc_daemon.operations.shared.idempotency import Creation, find_earlier
from svc_daemon.operations.shared.response_objects import view_source
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sessions import SessionRow
from svc_daemon.wire import sessions as wire
from svc_daemon.wire.batches import BatchFile, ManifestItem
from svc_daemon.wire.light.error_codes import ErrorCode as E
from svc_daemon.wire.sources import DryRun, SourceAnswer


async def create(request: Request) -> Response:
    creation = creation_of(request, api_keys.FILE_CREATE)
    destination = path_destination(request, creation.key)
    return await open_session(request, creation, destination, await body_of(request, wire.UploadCreate))


async def open_session(
    request: Request, creation: Creation, destination: Destination, body: wire.UploadCreate
) -> Response:
    """Open the requested upload session."""
    context = context_of(request)
    wanted = new_session(context, creation.key, destination, body, body, verbs.begin_session(context))
    meaning = body.model_dump(include=set(wire.UploadCreate.model_fields)) | {"dry_run": False}
    creation = replace(creation, fingerprint=fingerprint(destination.identity, meaning))
    if is_dry_run(request, body.dry_run):
        if find_earlier(context, creation) is not None:
            return would_create(request, None)
        context.read(lambda connection: check_replaces(connection, creation.key, destination.ids, wanted.replaces))
        fields = {
            "object": "upload_session",
            **view_destinations(destination),
            "filename": wanted.filename,
            "title": wanted.title,
            "size_bytes": wanted.size_bytes,
        }
        return would_create(request, fields)
    session, outcome = await verbs.create_session(context, creation, destination, wanted)
    url = url_of(request, session)
    opened = {
        "session_id": session.id,
        "object": "upload_session",
        "upload_strategy": wire.STRATEGY,
        "upload_url": url,
        "status": (await verbs.progress_of(context, session)).state,
        "bucket_ids": list(session.bucket_ids),
        "expires_at": session.expires_at,
    }
    response = respond(request, opened, 200 if outcome.replayed else 201)
    # Clients of Google's resumable upload protocol read the upload URL from this header.
    response.headers["Location"] = url
    response.headers["Cache-Control"] = "no-store"
    return mark_replayed(response) if outcome.replayed else response


async def show(request: Request) -> Response:
    key = caller(request, *api_keys.LIST_SOURCES)
    return _status(request, key, await verbs.progress_of(context_of(request), _find(request, key)))


async def cancel(request: Request) -> Response:
    key = caller(request, api_keys.FILE_CREATE)
    session = _find_to_end(request, key)
    return _status(request, key, await verbs.cancel_session(context_of(request), session, key.id))


async def finalize(request: Request) -> Response:
    key = caller(request, api_keys.FILE_CREATE)
    body = await optional_body_of(request, wire.UploadFinalize)
    session = _find_to_end(request, key, to_finalize=True)
    if is_dry_run(request, body.dry_run):
        judged = await judge_finalize(context_of(request), session)
        if judged.error is not None:
            raise judged.error
        # Fields of the source that are known before it exists.
        known = {"object", "type", "bucket_ids", "filename", "title", "content_type", "size_bytes", "sha256"}
        fields = view_source(judged.source, key).items() if judged.source else ()
        return would_create(request, {name: each for name, each in fields if name in known} or None)
    outcome = await finalize_session(context_of(request), session, key)
    if outcome.source is None:
        raise ServiceError(E.INTERNAL_ERROR)
    source = view_source(outcome.source, key)
    if outcome.replayed:
        return mark_replayed(respond(request, source, waits_for=None))
    return respond(request, source, 201, waits_for=None)


def _find(request: Request, key: KeyRow, *, to_finalize: bool = False) -> SessionRow:
    """Return the upload session with the id in the path. Raises `session_not_found`.

    With `to_finalize`, the bucket must be active.
    """
    bucket, session_id = request.path_params["bucket"], request.path_params["session_id"]
    return verbs.find_session(context_of(request), key, bucket, session_id, to_finalize=to_finalize)


def _find_to_end(request: Request, key: KeyRow, *, to_finalize: bool = False) -> SessionRow:
    """Return the upload session with the id in the path.

    Raises `forbidden_project_key` unless the key may access all of the session's buckets.
    """
    session = _find(request, key, to_finalize=to_finalize)
    refuse_out_of_reach(key, session.bucket_ids, "upload session", api_keys.FILE_CREATE)
    return session


def new_session(
    context: Context,
    key: KeyRow,
    destination: Destination,
    body: wire.UploadCreate | ManifestItem,
    file: wire.UploadCreate | BatchFile,
    begun: SessionStart,
) -> SessionRow:
    """Build an upload session from the validated body.

    `file` has the file's name, type and size. Outside of a batch, `file` and `body` are the same object.
    """
    filename = clean_file_name(file.filename)
    rules.check_size(filename, file.size_bytes, context.limits)
    return SessionRow(
        id=begun.id,
        team_id=key.team_id,
        bucket_ids=destination.ids,
        filename=filename,
        content_type=file.content_type or "",
        size_bytes=file.size_bytes,
        **check_description(body, choose_title(body.title, filename), context.limits),
        sha256=check_sha256(body.sha256),
        batch_id=begun.batch_id,
        client_file_id=begun.client_file_id,
        position=begun.position,
        expires_at=begun.expires_at,
        ends_at=begun.ends_at,
        created_at=begun.created_at,
    )


def url_of(request: Request, session: SessionRow) -> str:
    """Build the session's storage URL, which contains a secret token. The token isn't stored."""
    return storage_url(request, session.id, verbs.session_token(context_of(request), session))


def storage_url(request: Request, session_id: str, token: str) -> str:
    """Build a storage URL. For a pack, `session_id` is the id of the batch."""
    # Don't use `url_for`, which would search all routes for each file of a batch.
    return f"{str(request.base_url).rstrip('/')}{STORAGE_PREFIX}{session_id}/{token}"


def _status(request: Request, key: KeyRow, progress: verbs.SessionProgress) -> Response:
    session = progress.session
    fields = {
        "session_id": session.id,
        "object": "upload_session",
        "status": progress.state,
        "filename": session.filename,
        "size_bytes": session.size_bytes,
        "received_bytes": progress.received_bytes,
        "bucket_ids": key.reachable(session.bucket_ids),
        "source_id": session.source_id,
        "expires_at": session.expires_at,
        "created_at": session.created_at,
    }
    return respond(request, fields)


async def preflight(_request: Request) -> Response:
    headers = {
        "Access-Control-Allow-Methods": "PUT, OPTIONS",
        "Access-Control-Allow-Headers": "Content-Type, Content-Range, X-Guploader-No-308",
        "Access-Control-Max-Age": "3600",
        # Lets public web pages upload to a service in a private network.
        "Access-Control-Allow-Private-Network": "true",
    }
    return Response(status_code=204, headers=headers)


async def put(request: Request) -> Response:
    context = context_of(request)
    refuse_encoding(request)
    session_id, token = request.path_params["session_id"], request.path_params["token"]
    if ids.is_id(session_id, ids.BATCH):
        pack = await put_pack(context, session_id, authorize_pack(context, session_id, token), _chunk_body(request))
        if pack.received_bytes < pack.size_bytes:
            return _partial(request, pack.received_bytes)
        status = rules.FINALIZED if pack.state == rules.FINALIZED else rules.UPLOADED
        fields = {"batch_id": session_id, "object": "pack", "status": status, "received_bytes": pack.received_bytes}
        return respond(request, fields)
    session = verbs.authorize(context, session_id, token)
    progress = await verbs.put_bytes(context, session.id, _chunk_body(request))
    if progress.sha256 is None:
        return _partial(request, progress.received_bytes)
    return respond(
        request,
        {
            "session_id": session.id,
            "status": progress.state,
            "received_bytes": progress.received_bytes,
            "sha256": progress.sha256,
        },
    )


def _chunk_body(request: Request) -> verbs.ChunkBody:
    asked = rules.parse_range(header_of(request, "Content-Range"))
    return verbs.ChunkBody(asked, content_length(request), request.stream())


def _partial(request: Request, received_bytes: int) -> Response:
    """Tell the client which range of bytes of an incomplete upload is stored."""
    stored = rules.stored_range(received_bytes)
    headers = {} if stored is None else {"Range": stored}
    # In browsers, `fetch` can't read a response with status 308.
    if request.headers.get("X-Guploader-No-308", "").lower() == "yes":
        return Response(status_code=200, headers=headers | {"X-Http-Status-Code-Override": "308"})
    return Response(status_code=308, headers=headers)


_SESSION, _STORAGE = BUCKET + "/uploads/{session_id}", STORAGE_PREFIX + "{session_id}/{token}"
_NO_SESSION, _ENDED = (E.SESSION_NOT_FOUND,), (E.SESSION_EXPIRED, E.SESSION_CANCELED, E.REQUEST_IN_PROGRESS)
_MISPLACED = (E.OFFSET_MISMATCH, E.SIZE_MISMATCH, E.CHECKSUM_MISMATCH, E.UNSUPPORTED_MEDIA_TYPE)
_PART = {
    "Content-Range": "bytes FIRST-LAST/TOTAL of the chunk, or bytes */TOTAL to ask; without it, the whole file.",
    "X-Guploader-No-308": "yes: answer a part with 200, no body, and X-Http-Status-Code-Override: 308.",
}

# fmt: off
ENDPOINTS = (
    Endpoint("POST", BUCKET + "/uploads", create, "Create an upload session",
             {201: wire.Upload, 200: wire.Upload | DryRun}, body=wire.UploadCreate, query=DRY, repeatable=True,
             errors=(*NO_BUCKET, *NO_SOURCE, *FIELDS, *QUOTAS, *SIZES)),
    Endpoint("GET", _SESSION, show, "Show an upload session", {200: wire.UploadStatus},
             errors=(*_NO_SESSION, *NO_BUCKET)),
    Endpoint("DELETE", _SESSION, cancel, "Cancel an upload session", {200: wire.UploadStatus},
             errors=(*_NO_SESSION, *NO_BUCKET, E.REQUEST_IN_PROGRESS)),
    Endpoint("POST", _SESSION + "/finalize", finalize, "Create a source from an uploaded file",
             {201: SourceAnswer, 200: SourceAnswer | DryRun}, body=wire.UploadFinalize, optional=True, query=DRY,
             errors=(*_NO_SESSION, *NO_BUCKET, *NO_SOURCE, *_ENDED, E.BLOB_NOT_UPLOADED, E.CHECKSUM_MISMATCH)),
    Endpoint("PUT", _STORAGE, put, "Send bytes of a session or a pack",
             {200: wire.StorageAnswer | wire.PackAnswer, 308: None},
             raw=True, headers=_PART, errors=(*_NO_SESSION, *_ENDED, *_MISPLACED), keyed=False),
    Endpoint("OPTIONS", _STORAGE, preflight, "Answer a browser's preflight request (CORS)", {204: None}, keyed=False),
)
# fmt: on
