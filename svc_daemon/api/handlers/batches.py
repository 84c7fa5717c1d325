"""HTTP handlers for batches: open, finalize and show them."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.endpoints import BUCKET, DRY, NO_BUCKET, QUOTAS, Endpoint
from svc_daemon.api.handlers.sessions import new_session, storage_url, url_of
from svc_daemon.api.requests import (
    body_of,
    caller,
    context_of,
    creation_of,
    is_dry_run,
    optional_body_of,
    path_destination,
    query_flag,
)
from svc_daemon.api.responses import mark_replayed, respond, view_destinations, would_create
from svc_daemon.core import ids
from svc_daemon.core.access import api_keys
from svc_daemon.core.idempotency import fingerprint
from svc_daemon.core.uploads.batches import DELETED
from svc_daemon.core.uploads.manifests import join_files, refuse_unhashed
from svc_daemon.errors import ERRORS, ServiceError
from svc_daemon.operations.ingest import batches as verbs
from svc_daemon.operations.ingest import sessions
from svc_daemon.operations.ingest.files import check_replaces
from svc_daemon.operations.ingest.finalizing import Finalized
from svc_daemon.operations.ingest.packs import has_pack, pack_token
from svc_daemon.operations.ingest.sessions import SessionStart
from svc_daemon.operations.shared.batch_items import BatchItemStatus
from svc_daemon.operations.shared.destination_buckets import Destination
from svc_daemon.operations.shared.idempotency import Creation, check_key, find_earlier
from svc_daemon.operations.shared.response_objects import withheld_by
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows.batches import BatchRow
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sessions import SessionRow
from svc_daemon.store.rows.sources.sources import SourceRow
from svc_daemon.wire import batches as wire
from svc_daemon.wire.legacy import DestinationFields
from svc_daemon.wire.light.error_codes import ErrorCode as E
from svc_daemon.wire.light.errors import ErrorBody
from svc_daemon.wire.sessions import STRATEGY
from svc_daemon.wire.sources import DryRun

_FIELDS = set(DestinationFields.model_fields)
#: Fields in which old clients name buckets. The request's fingerprint contains the buckets instead of these fields.
_DESTINATIONS: dict[str, Any] = {"manifest": {**dict.fromkeys(_FIELDS, True), "items": {"__all__": _FIELDS}}}
#: Fields that `join_files` has moved into the manifest, so that it doesn't matter in which place they were sent.
_MOVED: dict[str, Any] = {"files": {"__all__": set(wire.DESCRIPTION)}}


async def create(request: Request) -> Response:
    creation = creation_of(request, api_keys.FILE_CREATE)
    destination = path_destination(request, creation.key)
    body = await body_of(request, wire.BatchCreate)
    join_files(body, context_of(request).limits)
    destinations = [destination] * len(body.manifest.items)
    return await open_batch(request, creation, destinations, body)


async def open_batch(
    request: Request, creation: Creation, destinations: Sequence[Destination], body: wire.BatchFields
) -> Response:
    """Open the requested batch. `destinations` has the buckets of each item of the manifest.

    The body must have passed `join_files`.
    """
    context = context_of(request)
    if body.pack:
        refuse_unhashed(body)
    batch_key = check_key(context, body.manifest.batch_idempotency_key)
    by_id = {item.client_file_id: place for item, place in zip(body.manifest.items, destinations, strict=True)}
    opening = _judge_files(context, creation.key, by_id, body)
    await asyncio.sleep(0)  # let other requests run before this one continues
    # Compute the same fingerprint whether the manifest names the buckets or every file names the same buckets.
    places: Any = {name: destination.identity for name, destination in by_id.items()}
    if len(set(places.values())) == 1:
        places = next(iter(places.values()))
    # `pack` only selects how the files are sent, so two requests that differ only in `pack` count as the same.
    meaning = fingerprint(
        places, body.model_dump(exclude={**_DESTINATIONS, **_MOVED, "pack": True}) | {"dry_run": False}
    )
    creation = replace(creation, idempotency_key=creation.idempotency_key or batch_key, fingerprint=meaning)
    if is_dry_run(request, body.dry_run):
        if find_earlier(context, creation) is not None:
            return would_create(request, None)
        verbs.refuse_empty(opening)
        files = {"files": len(opening.wanted)}
        fields = {"object": "batch", **view_destinations(*(place for _, place in opening.wanted)), **files}
        if body.pack and has_pack(context, wanted := [session for session, _ in opening.wanted]):
            fields["pack"] = {"size_bytes": sum(session.size_bytes for session in wanted)}
        errors = [{"path": item["client_file_id"], "message": item["error"]["message"]} for item in opening.rejected]
        return would_create(request, fields, errors)
    members, outcome = await verbs.create_batch(context, creation, opening)
    return _opened(request, creation.key, members, outcome, asks_pack=body.pack)


async def finalize(request: Request) -> Response:
    context = context_of(request)
    key = caller(request, api_keys.FILE_CREATE)
    body = await optional_body_of(request, wire.BatchFinalize)
    batch = verbs.find_batch(context, key, request.path_params["bucket"], request.path_params["batch_id"])
    if is_dry_run(request, body.dry_run):
        judged = await verbs.judge_batch(context, batch)
        names = [_client_id(one.session) for one in judged if one.source is not None]
        fields = {"object": "batch", "batch_id": batch.id, "files": len(names), "client_file_ids": names}
        errors = [{"path": _client_id(one.session), "message": one.error.message} for one in judged if one.error]
        return would_create(request, fields if names else None, errors)
    report = await verbs.finalize_batch(context, key, batch, abandon=body.mode == "abandon_pending")
    made = [(outcome, outcome.source) for outcome in report.outcomes if outcome.source is not None]
    fields = {
        "batch_id": batch.id,
        "status": report.status,
        "finalized": [_names(one, source) for one, source in made if not one.replayed],
        "replayed": [
            {
                **_names(one, source),
                "status": DELETED if one.is_gone else source.status,
                "ready": source.ready,
                "ready_withheld_by": withheld_by(source),
            }
            for one, source in made
            if one.replayed
        ],
        "failed": [
            {"client_file_id": _client_id(one.session), "session_id": one.session.id, "error": _error(one.error)}
            for one in report.outcomes
            if one.error is not None
        ],
        "pending": [
            {"client_file_id": _client_id(session), "session_id": session.id, "reason": reason}
            for session, reason in report.pending
        ],
    }
    return respond(request, fields)


async def show(request: Request) -> Response:
    key = caller(request, *api_keys.LIST_SOURCES)
    batch, rolled, items = verbs.show_batch(context_of(request), key, request.path_params["batch_id"])
    with_items = query_flag(request, "include_items")
    is_withheld = any(item.member.in_maintenance for item in items)
    status = {
        "batch_id": batch.id,
        "object": "batch",
        "bucket_ids": key.reachable(batch.bucket_ids),
        "status": rolled.status,
        "terminal": rolled.terminal,
        "ready": rolled.ready and not is_withheld,
        "ready_withheld_by": str(E.TEAM_STORE_MAINTENANCE) if is_withheld else None,
        "counters": rolled.counters,
        "created_at": batch.created_at,
        "expires_at": batch.expires_at,
    }
    return respond(request, status, **{"items": [_item(item, key) for item in items]} if with_items else {})


def _judge_files(
    context: Context, key: KeyRow, destinations: Mapping[str, Destination], body: wire.BatchFields
) -> verbs.Opening:
    """Validate each file. Returns upload sessions for the valid files, and errors for the others."""
    items = {item.client_file_id: item for item in body.manifest.items}
    batch = BatchRow(
        id=context.ids.make(ids.BATCH),
        team_id=key.team_id,
        bucket_ids=(),
        expires_at=sessions.lifetime(context)[1],
        created_at=context.clock.timestamp(),
    )
    wanted: list[tuple[SessionRow, Destination]] = []
    rejected: list[dict[str, Any]] = []
    for session_id, file in zip(context.ids.make_many(ids.SESSION, len(body.files)), body.files, strict=True):
        destination = destinations[file.client_file_id]
        begun = SessionStart(
            id=session_id,
            created_at=batch.created_at,
            # All sessions expire with their batch.
            expires_at=batch.expires_at,
            ends_at=batch.expires_at,
            batch_id=batch.id,
            client_file_id=file.client_file_id,
            position=len(wanted),
        )
        try:
            wanted.append((_new_item(context, key, destination, items[file.client_file_id], file, begun), destination))
        except ServiceError as error:
            rejected.append({"client_file_id": file.client_file_id, "error": _error(error)})
    return verbs.Opening(batch, wanted, rejected)


def _new_item(
    context: Context,
    key: KeyRow,
    destination: Destination,
    item: wire.ManifestItem,
    file: wire.BatchFile,
    begun: SessionStart,
) -> SessionRow:
    """Build the upload session of one file from its manifest item."""
    session = new_session(context, key, destination, item, file, begun)
    if session.replaces is not None:
        context.read(lambda connection: check_replaces(connection, key, destination.ids, session.replaces))
    return session


def _opened(request: Request, key: KeyRow, members: list[SessionRow], made: Creation, *, asks_pack: bool) -> Response:
    context, body, replayed = context_of(request), made.body, made.replayed
    batch_id, status, expires_at = body["batch_id"], "open", members[0].expires_at
    if replayed:
        batch, rolled, _ = verbs.show_batch(context, key, batch_id)
        status, expires_at = rolled.status, batch.expires_at
    targets = [
        wire.BatchTarget(
            client_file_id=_client_id(session),
            session_id=session.id,
            upload_url=url_of(request, session),
            bucket_ids=list(session.bucket_ids),
            expires_at=session.expires_at,
        )
        for session in members
    ]
    opened = {
        "batch_id": batch_id,
        "object": "batch",
        "status": status,
        "upload_strategy": STRATEGY,
        "bucket_ids": body["bucket_ids"],
        "items": targets,
        "rejected": body["rejected"],
        "expires_at": expires_at,
    }
    if asks_pack and has_pack(context, members):
        size_bytes = 0
        for target, session in zip(targets, members, strict=True):
            target |= {"offset": size_bytes, "size_bytes": session.size_bytes}
            size_bytes += session.size_bytes
        pack_url = storage_url(request, batch_id, pack_token(context, batch_id, members))
        opened["pack"] = wire.BatchPack(upload_url=pack_url, size_bytes=size_bytes, expires_at=expires_at)
    response = respond(request, opened, 200 if replayed else 201)
    response.headers["Cache-Control"] = "no-store"
    return mark_replayed(response) if replayed else response


def _client_id(session: SessionRow) -> str:
    return session.client_file_id or ""


def _names(outcome: Finalized, source: SourceRow) -> wire.FinalizedItem:
    return {
        "client_file_id": _client_id(outcome.session),
        "session_id": outcome.session.id,
        "knowledge_id": source.id,
        "task_id": source.task_id or "",
    }


def _error(error: ServiceError) -> ErrorBody:
    return ErrorBody(code=str(error.code), message=error.message, retryable=error.rule.retryable, details=error.details)


def _item(item: BatchItemStatus, key: KeyRow) -> wire.BatchItem:
    member = item.member
    error: ErrorBody | None = {"details": {}, **item.error} if item.error else None
    bucket_ids = key.reachable(member.bucket_ids)
    if error is not None and member.session_error is not None and len(bucket_ids) < len(member.bucket_ids):
        # The original error message may name a bucket that the key can't access.
        error["message"] = ERRORS[E(error["code"])].sentence
    return wire.BatchItem(
        client_file_id=member.client_file_id,
        session_id=member.session_id,
        knowledge_id=member.source_id,
        task_id=member.task_id,
        bucket_ids=bucket_ids,
        status=item.state,
        ready=item.ready and not member.in_maintenance,
        error=error,
        warnings=list(member.source_warnings),
    )


# fmt: off
ENDPOINTS = (
    Endpoint("POST", BUCKET + "/batches", create, "Create a batch", {201: wire.Batch, 200: wire.Batch | DryRun},
             body=wire.BatchCreate, query=DRY, repeatable=True, errors=(*NO_BUCKET, *QUOTAS)),
    Endpoint("POST", BUCKET + "/batches/{batch_id}/finalize", finalize, "Create sources from a batch's files",
             {200: wire.BatchFinalized | DryRun}, body=wire.BatchFinalize, optional=True, query=DRY,
             errors=(*NO_BUCKET, E.BATCH_NOT_FOUND, E.REQUEST_IN_PROGRESS)),
    Endpoint("GET", "/v1/knowledge/batches/{batch_id}", show, "Show a batch", {200: wire.BatchStatus},
             query={"include_items": "true: each file too."}, errors=(E.BATCH_NOT_FOUND,)),
)
# fmt: on
