"""HTTP handlers for single sources, their membership in buckets, and tasks."""

import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from email.utils import format_datetime
from functools import partial
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from svc_daemon.api.endpoints import (
    BUCKET,
    DRY,
    FIELDS,
    INDEX,
    KEY_IGNORED,
    NO_BUCKET,
    NO_SOURCE,
    SIZES,
    Endpoint,
)
from svc_daemon.api.requests import (
    body_of,
    caller,
    context_of,
    creation_of,
    is_dry_run,
    optional_body_of,
    query_flag,
    query_text,
)
from svc_daemon.api.responses import respond, respond_in_thread, would_create
from svc_daemon.core import readiness
from svc_daemon.core.access import api_keys
from svc_daemon.core.answers.passages import QuotePlace
from svc_daemon.core.json_bodies import refusal
from svc_daemon.core.refreshes import why_stale
from svc_daemon.core.text.chunking import Chunk
from svc_daemon.core.uploads import source_fields
from svc_daemon.core.uploads.source_fields import clean_file_name
from svc_daemon.errors import NotFound, stored_error
from svc_daemon.operations import sources as verbs
from svc_daemon.operations.index.extraction import read_again
from svc_daemon.operations.index.vectors import read_vectors
from svc_daemon.operations.ingest.refreshing import refresh_source
from svc_daemon.operations.remove import source_deletions
from svc_daemon.operations.shared.reachable_rows import get_reachable_task
from svc_daemon.operations.shared.response_objects import view_shortage, view_source, view_task
from svc_daemon.operations.shared.schedules import check_choice
from svc_daemon.provider.contract import StoredText, chunk_id
from svc_daemon.store.rows.buckets import find_cascade
from svc_daemon.store.rows.sources.search_candidates import FoundSource
from svc_daemon.store.rows.sources.sources import SourceRow
from svc_daemon.wire import sources as wire
from svc_daemon.wire.light.error_codes import ErrorCode as E
from svc_daemon.wire.sources import Refresh
from svc_daemon.wire.tasks import TaskAnswer
from svc_daemon.wire.vectors import EmbeddedChunk, SourceVectors


async def attach(request: Request) -> Response:
    key = creation_of(request, api_keys.FILE_CREATE).key
    body = await body_of(request, wire.SourceAttach)
    context, bucket = context_of(request), request.path_params["bucket"]
    if is_dry_run(request, body.dry_run):
        found, source = context.read(lambda connection: verbs.check_attach(connection, key, bucket, body.source_id))
        wanted = {"object": "membership", "bucket_id": found.id, "source_id": source.id}
        return would_create(request, None if found.id in source.places else wanted)
    source = await verbs.attach_source(context, key, bucket, body.source_id)
    return respond(request, view_source(source, key), waits_for=None)


async def detach(request: Request) -> Response:
    key = caller(request, api_keys.SOURCE_DELETE)
    source_id = request.path_params["source_id"]
    bucket_id, left = await source_deletions.detach_source(
        context_of(request), key, request.path_params["bucket"], source_id
    )
    body = {"id": source_id, "object": "knowledge_file", "bucket_id": bucket_id, "detached": True}
    return respond(request, body, bucket_ids=key.reachable(left))


async def show(request: Request) -> Response:
    key = caller(request, *api_keys.SHOW_SOURCE)
    source = verbs.show_source(context_of(request), key, request.path_params["source_id"])
    is_settled = source.ready or source.status == readiness.FAILED
    shortage = None if is_settled else view_shortage(context_of(request).shortages.now)
    if not _verify(request, "provider"):
        return respond(request, view_source(source, key), waits_for=shortage)
    provider = await verbs.verify_source(context_of(request), source)
    return respond(request, view_source(source, key), waits_for=shortage, provider=provider)


async def update(request: Request) -> Response:
    key = caller(request, api_keys.FILE_CREATE)
    body = await body_of(request, wire.SourceUpdate)
    limits = context_of(request).limits
    # Validate each field as for a new source.
    change: dict[str, Any] = {}
    if body.filename is not None:
        change["filename"] = clean_file_name(body.filename)
    if body.title is not None:
        # An empty title means the file name, which only the stored source knows.
        change["title"] = source_fields.check_title(body.title, limits) if body.title else ""
    if body.tags is not None:
        change["tags"] = source_fields.check_tags(body.tags, limits)
    if body.metadata is not None:
        change["metadata"] = source_fields.check_metadata(body.metadata, limits)
    schedule = check_choice(key, body.refresh, limits) if body.refresh is not None else None
    source = await verbs.describe_source(context_of(request), key, request.path_params["source_id"], change, schedule)
    return respond(request, view_source(source, key), waits_for=None)


async def delete(request: Request) -> Response:
    key = caller(request, api_keys.SOURCE_DELETE)
    source_id = request.path_params["source_id"]
    force = query_flag(request, "force")
    await source_deletions.delete_everywhere(context_of(request), key, source_id, force=force)
    return respond(request, {"id": source_id, "object": "knowledge_file", "deleted": True})


async def retry(request: Request) -> Response:
    key = caller(request, api_keys.FILE_CREATE)
    source = await verbs.retry_source(context_of(request), key, request.path_params["source_id"])
    return respond(request, view_source(source, key), waits_for=None)


async def refresh(request: Request) -> Response:
    key = caller(request, api_keys.FILE_CREATE)
    body = await optional_body_of(request, Refresh)
    context, extractor = context_of(request), request.app.state.extractor
    source, changed = await refresh_source(context, extractor, key, request.path_params["source_id"], force=body.force)
    # 202: accepted, but searches may find the new content only later.
    return respond(request, view_source(source, key), 202 if changed else 200, waits_for=None, changed=changed)


async def content(request: Request) -> Response:
    key = caller(request, api_keys.READ)
    source = verbs.show_source(context_of(request), key, request.path_params["source_id"])
    blob = context_of(request).blobs.blob(source.blob_name)
    facts = await blob.find()
    if facts is None:
        # The source and its file were deleted after the source was read from the database.
        raise NotFound(E.SOURCE_NOT_FOUND, f"There is no source {source.id!r}.")
    # Browsers save the file under this name (RFC 6266).
    quoted = quote(source.filename)
    name = f'filename="{quoted}"' if quoted == source.filename else f"filename*=utf-8''{quoted}"
    headers = {
        "Content-Length": str(facts.size_bytes),
        "Content-Disposition": f"attachment; {name}",
        "ETag": f'"{source.sha256}"',
        "Last-Modified": format_datetime(facts.modified_at, usegmt=True),
        "Accept-Ranges": "none",
        "X-Content-Type-Options": "nosniff",
        # Scripts in a stored web page must not run with the rights of this service's pages.
        "Content-Security-Policy": "sandbox",
    }
    if request.method == "HEAD":
        return Response(media_type=source.content_type, headers=headers)
    chunks = blob.stream()
    # Bytes that can't be read are an error of this service, which could not be told after the head of the answer.
    first = await anext(chunks, b"")

    async def whole() -> AsyncIterator[bytes]:
        yield first
        async for chunk in chunks:
            yield chunk

    return StreamingResponse(whole(), media_type=source.content_type, headers=headers)


async def text(request: Request) -> Response:
    key = caller(request, api_keys.READ)
    source = verbs.show_source(context_of(request), key, request.path_params["source_id"])
    with_vectors, with_hidden = query_flag(request, "vectors"), query_flag(request, "hidden")
    if _verify(request, "content"):
        if with_vectors or with_hidden:
            raise refusal("vectors" if with_vectors else "hidden", "can't be read together with verify=content.")
        return await _reread(request, source.team_id, source.id)
    stored = await verbs.read_text(context_of(request), source)
    if with_vectors and with_hidden:
        raise refusal("hidden", "can't be read together with vectors.")
    if with_vectors:
        return await _show_vectors(request, source, stored)
    hidden: list[wire.HiddenPiece] | None = None
    if with_hidden:
        # No index keeps it, so that no search finds it.
        again = await read_again(context_of(request), request.app.state.extractor, source.team_id, source.id)
        if again.extraction is None:
            reason = again.failure.message if again.failure else "The stored bytes are gone."
            raise refusal("hidden", f"can't be read: {reason}")
        pieces = again.extraction.hidden
        hidden = [wire.HiddenPiece(text=text, reason=why, page=page, line=line) for text, why, page, line in pieces]

    def show_text() -> dict[str, Any]:
        chunks = [_chunk(source, piece.chunk_id, piece.chunk) for piece in stored.chunks]
        shown = {"id": source.id, "object": "source_text", "text": stored.text, "chunks": chunks}
        return shown if hidden is None else {**shown, "hidden": hidden}

    return await respond_in_thread(request, show_text)


async def _show_vectors(request: Request, source: SourceRow, stored: StoredText) -> Response:
    found = await read_vectors(context_of(request), source, stored)

    def encode(chunk_id: str) -> str | None:
        return base64.b64encode(found.vectors[chunk_id]).decode() if chunk_id in found.vectors else None

    return await respond_in_thread(
        request,
        lambda: {
            "id": source.id,
            "object": "source_vectors",
            "text": stored.text,
            "model": found.model,
            "chunks": [
                EmbeddedChunk(
                    **_chunk(source, each.chunk_id, each.chunk),
                    text_sha256=found.hashes[each.chunk_id],
                    vector=encode(each.chunk_id),
                )
                for each in stored.chunks
            ],
        },
    )


async def _reread(request: Request, team_id: str, source_id: str) -> Response:
    rereading = await read_again(context_of(request), request.app.state.extractor, team_id, source_id)
    source, failure = rereading.source, rereading.failure
    content = wire.StoredContent(
        sha256=rereading.sha256,
        unchanged=rereading.sha256 == source.sha256,
        error=stored_error(failure.code, failure.message, retryable=failure.retryable) if failure else None,
    )
    extraction = rereading.extraction
    text, chunks = (extraction.text, extraction.chunks) if extraction else ("", ())
    return await respond_in_thread(
        request,
        lambda: {
            "id": source.id,
            "object": "source_text",
            "text": text,
            "chunks": [
                _chunk(source, chunk_id(source.id, source.generation, chunk.ordinal), chunk) for chunk in chunks
            ],
            "content": content,
        },
    )


def view_location(source: SourceRow | FoundSource, place: Chunk | QuotePlace) -> wire.Location:
    location = wire.Location(
        page=place.page,
        line_start=place.line_start,
        line_end=place.line_end,
        char_start=place.char_start,
        char_end=place.char_end,
        headings=list(place.headings),
    )
    if (confidence := source.recognized_pages.get(str(place.page))) is not None:
        location["ocr"], location["confidence"] = True, confidence
    return location


def view_freshness(source: FoundSource) -> wire.Freshness:
    reason = why_stale(source.refresh)
    fetched_at = source.fetched.get("fetched_at") if source.fetched else None
    return wire.Freshness(fetched_at=fetched_at, stale=reason is not None, stale_reason=reason)


def _chunk(source: SourceRow, chunk_id: str, chunk: Chunk) -> wire.TextChunk:
    return wire.TextChunk(chunk_id=chunk_id, text=chunk.text, location=view_location(source, chunk))


def _verify(request: Request, by: str) -> bool:
    """Return whether `verify` was sent. Raises `invalid_request` for a value other than `by`."""
    verify = query_text(request, "verify")
    if verify not in (None, by):
        raise refusal("verify", f"must be {by}, not {verify!r}.")
    return verify is not None


async def show_task(request: Request) -> Response:
    key = caller(request, *api_keys.SHOW_SOURCE)
    context, task_id = context_of(request), request.path_params["task_id"]
    task = context.read(partial(get_reachable_task, key=key, task_id=task_id))
    # Read the task before the counts of a bucket's deletion. Then the counts are final if the task has finished.
    cascade = context.read(partial(find_cascade, task_id=task_id))
    chunks = context.progress.get((task.id, task.token)) if task.status == "running" else None
    if chunks is not None:
        task = replace(task, stage="index", chunks_total=chunks)
    shortage = view_shortage(context.shortages.now) if task.finished_at is None else None
    return respond(request, view_task(task, cascade, context.scan_pace), waits_for=shortage)


_SOURCE = "/v1/sources/{source_id}"
_ONE = {200: wire.SourceAnswer}
_REREAD = {
    "verify": "content: read the stored bytes again, whatever the index holds.",
    "vectors": "true: with the vectors of the chunks.",
    "hidden": "true: with what no reader of the document sees, from its stored bytes.",
}
_VERIFY = {"verify": "provider: ask the index itself too."}
_REFETCH = (
    *SIZES,
    E.QUOTA_EXCEEDED,
    E.STORAGE_FULL,
    E.REQUEST_IN_PROGRESS,
    E.URL_FETCH_BLOCKED,
    E.URL_FETCH_FAILED,
    E.URL_IS_WEB_PAGE,
    E.URL_IS_FILE,
    E.WEBSITE_ANALYSIS_FAILED,
)

# fmt: off
ENDPOINTS = (
    Endpoint("POST", BUCKET + "/sources", attach, "Attach a source to another bucket",
             {200: wire.SourceAnswer | wire.DryRun}, body=wire.SourceAttach, query=DRY,
             headers=KEY_IGNORED, errors=(*NO_BUCKET, *NO_SOURCE, E.INVALID_IDEMPOTENCY_KEY)),
    Endpoint("DELETE", BUCKET + "/sources/{source_id}", detach, "Detach a source from this bucket only",
             {200: wire.Detached}, errors=(*NO_BUCKET, *NO_SOURCE)),
    Endpoint("GET", _SOURCE, show, "Show a source and whether it is ready", {200: wire.SourceVerified},
             query=_VERIFY, errors=(*NO_SOURCE, *INDEX)),
    Endpoint("PATCH", _SOURCE, update, "Change a source", _ONE,
             body=wire.SourceUpdate, errors=(*NO_SOURCE, *FIELDS, *INDEX)),
    Endpoint("DELETE", _SOURCE, delete, "Delete a source everywhere", {200: wire.Deleted},
             errors=(*NO_SOURCE, E.DELETE_BLOCKED), query={"force": "true: even if other things depend on it."}),
    Endpoint("POST", _SOURCE + "/retry", retry, "Index a failed source again", _ONE, errors=NO_SOURCE),
    Endpoint("POST", _SOURCE + "/refresh", refresh, "Fetch a source's URL again",
             {200: wire.SourceRefreshed, 202: wire.SourceRefreshed}, body=Refresh, optional=True,
             errors=(*NO_SOURCE, *_REFETCH)),
    Endpoint("GET", _SOURCE + "/content", content, "The stored bytes", {200: None}, errors=NO_SOURCE),
    Endpoint("GET", _SOURCE + "/text", text, "The extracted text and its chunks",
             {200: wire.SourceText | SourceVectors | wire.SourceReread}, query=_REREAD,
             errors=(*NO_SOURCE, E.BUCKET_STORE_INDEXING_PENDING, *INDEX)),
    Endpoint("GET", "/v1/knowledge/files/{source_id}", show, "Show a source (alias)", {200: wire.SourceVerified},
             query=_VERIFY, errors=(*NO_SOURCE, *INDEX)),
    Endpoint("GET", "/v1/knowledge/tasks/{task_id}", show_task, "Show a task", {200: TaskAnswer},
             errors=(E.TASK_NOT_FOUND,)),
)
# fmt: on
