"""HTTP handlers that look many sources up: a bucket's list, its failures by reason and their retry, sources by ids."""

import base64
import json
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.endpoints import BUCKET, KEY_IGNORED, NO_BUCKET, PAGE, Endpoint
from svc_daemon.api.requests import (
    body_of,
    caller,
    context_of,
    creation_of,
    one_of,
    page_limit,
    page_of,
    query_flag,
    query_list,
    query_text,
)
from svc_daemon.api.responses import respond, respond_in_thread
from svc_daemon.core import ids
from svc_daemon.core.access import api_keys
from svc_daemon.core.json_bodies import refusal
from svc_daemon.databases.contract import MOST_ROWS
from svc_daemon.operations import sources as verbs
from svc_daemon.operations.shared.response_objects import view_member, view_source
from svc_daemon.store.rows.sources.listings import SourceFilter
from svc_daemon.store.rows.sources.sources import SourceRow
from svc_daemon.store.schemas import SORTED
from svc_daemon.wire import listings as wire
from svc_daemon.wire.light.error_codes import ErrorCode as E
from svc_daemon.wire.light.parsing import parse_json

#: Values of the query parameter `status`. Without `status`, a list has only sources that are active in the bucket.
STATUSES = ("all", "queued", "indexing", "active", "failed", "unread_scan")
TYPES = ("file", "page", "qa")
SORTS = (*SORTED, *(f"-{name}" for name in SORTED))


async def list_members(request: Request) -> Response:
    key = caller(request, *api_keys.LIST_SOURCES)
    bucket, chosen = request.path_params["bucket"], _chosen(request)
    if one_of("group_by", query_text(request, "group_by"), ("error_code",)) is not None:
        return await _group_failures(request, bucket, chosen)
    bucket_id, revision, found = await verbs.list_members(context_of(request), key, bucket, chosen)

    def make() -> dict[str, Any]:
        shown = {"bucket_id": bucket_id, "revision": revision}
        if chosen.sort is None:
            page, paging = page_of(request, [view_member(source, key, bucket_id) for source in found], ids.SOURCE)
            return {**shown, "sources": page, **paging}
        limit = page_limit(request)
        rows = [view_member(source, key, bucket_id) for source in found[:limit]]
        if limit is None:
            return {**shown, "sources": rows}
        last_id = _cursor(chosen, found[len(rows) - 1]) if rows else None
        return {**shown, "sources": rows, "has_more": len(rows) < len(found), "last_id": last_id}

    return await respond_in_thread(request, make)


async def _group_failures(request: Request, bucket: str, chosen: SourceFilter) -> Response:
    for name in ("sort", "limit", "after"):
        if name in request.query_params:
            raise refusal(name, "can't be combined with group_by, which counts all.")
    if query_text(request, "status") not in (None, "failed"):
        raise refusal("status", "must be failed, or left out, with group_by=error_code.")
    key = caller(request, *api_keys.LIST_SOURCES)
    bucket_id, revision, found = await verbs.group_failures(context_of(request), key, bucket, chosen)
    groups = [
        wire.FailureGroup(
            code=group.code,
            count=group.count,
            retryable=group.retryable > 0,
            retryable_count=group.retryable,
            message=example.error["message"] if example.error else "",
            source_id=example.id,
        )
        for group, example in found
    ]
    shown = {"bucket_id": bucket_id, "revision": revision, "group_by": "error_code", "groups": groups}
    return respond(request, shown, failed=sum(group["count"] for group in groups))


def _chosen(request: Request) -> SourceFilter:
    """Return what the query string asks for. Raises `invalid_request`."""
    limit, query = page_limit(request), partial(query_text, request)
    sort, after, value = one_of("sort", query("sort"), SORTS), query("after") or "", None
    code = query("error_code")
    if sort is not None and after:
        try:
            order, value, after = parse_json(base64.urlsafe_b64decode(after.encode()))
            is_ours = order == sort and f"{value}{after}".encode().count(0) == 0
        except (ValueError, TypeError):
            is_ours = False
        is_fitting = type(value) is int and 0 <= value < 2**63 if sort.endswith("_bytes") else isinstance(value, str)
        if not (is_ours and is_fitting and isinstance(after, str)):
            raise refusal("after", f"must be the last_id of a page with sort={sort}.")
    return SourceFilter(
        status=one_of("status", query("status"), STATUSES) or ("ready" if code is None else "failed"),
        type=one_of("type", query("type"), TYPES),
        tag=query("tag"),
        words=tuple((query("q") or "").split()),
        title=query("title"),
        sha256=query("sha256"),
        mapping=query("mapping"),
        error_code=code,
        stale=query_flag(request, "stale") if "stale" in request.query_params else None,
        sort=sort.removeprefix("-") if sort else None,
        descending=sort is not None and sort.startswith("-"),
        after=after,
        after_value=value,
        # Read one row more than the page has, to see whether another page follows.
        limit=MOST_ROWS if limit is None else limit + 1,
    )


def _cursor(chosen: SourceFilter, last: SourceRow) -> str:
    """Return what continues a sorted list: by the value of its last source, since the source itself may change."""
    order = f"{'-' if chosen.descending else ''}{chosen.sort}"
    return base64.urlsafe_b64encode(json.dumps([order, getattr(last, chosen.sort or ""), last.id]).encode()).decode()


async def retry_failed(request: Request) -> Response:
    key = creation_of(request, api_keys.FILE_CREATE).key
    body = await body_of(request, wire.BucketRetry)
    outcome = await verbs.retry_failed(context_of(request), key, request.path_params["bucket"], body.codes)
    return respond(request, {"object": "bucket.retry", **outcome})


async def look_up(request: Request) -> Response:
    key, context = caller(request, *api_keys.LIST_SOURCES), context_of(request)
    wanted = list(dict.fromkeys(query_list(request, "ids")))
    most = context.limits.lookup_sources
    if not 1 <= len(wanted) <= most:
        raise refusal("ids", f"must name 1 to {most} sources, separated by commas, not {len(wanted)}.")
    found = verbs.look_up_sources(context, key, wanted)
    return await respond_in_thread(
        request,
        lambda: {
            "sources": [view_source(source, key) for source in found.found],
            "missing": found.missing,
            "replaced_by": found.successors,
        },
    )


_MEMBERS = PAGE | {
    "after": "The last id of the previous page; with `sort`, its opaque `last_id`.",
    "status": "all, queued, indexing, active, failed or unread_scan; without it, active members.",
    "type": "file, page or qa.",
    "tag": "Only sources with this tag.",
    "q": "Only sources with each of these words in their title or file name.",
    "title": "Only sources with exactly this title.",
    "sha256": "Only sources with these bytes.",
    "mapping": "Only sources of this sync mapping.",
    "error_code": "Only failed sources whose error has this code.",
    "stale": "true: only sources with an interval whose last refresh failed; false: only the others.",
    "sort": "title, created_at, updated_at, size_bytes or status; with `-` before it, descending.",
    "group_by": "error_code: count the failed sources by the code of their error, instead of listing them.",
}

# fmt: off
ENDPOINTS = (
    Endpoint("GET", BUCKET + "/sources", list_members, "List a bucket's members",
             {200: wire.BucketSources | wire.BucketFailures}, query=_MEMBERS, strict=True, errors=NO_BUCKET),
    Endpoint("POST", BUCKET + "/retry", retry_failed, "Index the failed sources again that another try can help",
             {200: wire.BucketRetried}, body=wire.BucketRetry, headers=KEY_IGNORED,
             errors=(*NO_BUCKET, E.INVALID_IDEMPOTENCY_KEY)),
    Endpoint("GET", "/v1/sources", look_up, "Look sources up by their ids", {200: wire.SourceList}, strict=True,
             query={"ids": "1 to {lookup_sources} ids, separated by commas."}),
)
# fmt: on
