"""Handlers of API keys."""

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.creating import meaning_of
from svc_daemon.api.presenting import (
    answer,
    body_of,
    caller,
    context_of,
    created,
    idempotency_key,
    is_dry_run,
    page_limit,
    respond,
    would_create,
)
from svc_daemon.api.request_ids import request_id_of
from svc_daemon.core.access import api_keys
from svc_daemon.core.uploads.idempotency import Claim
from svc_daemon.operations import keys as verbs
from svc_daemon.operations.keys import plan_key, view_key
from svc_daemon.operations.replays import Repeatable, find_outcome
from svc_daemon.wire import keys as wire


async def create(request: Request) -> Response:
    key = caller(request, api_keys.KEY_MANAGE)
    repeat_key = idempotency_key(request)
    fields = await body_of(request, wire.KeyCreate)
    context = context_of(request)
    repeatable = Repeatable(key, repeat_key, Claim(route="POST /v1/keys", fingerprint=meaning_of(fields)))
    if is_dry_run(request, fields.dry_run):
        if find_outcome(context, repeatable) is not None:
            return would_create(request, None)
        planned = context.read(lambda connection: plan_key(connection, context.ids, key, fields))
        wanted = view_key(planned.key).model_dump(exclude={"id", "hint", "created_at", "revoked_at"})
        return would_create(request, wanted)
    outcome = await verbs.create_new_key(context, repeatable, fields)
    response = created(request, wire.KeyCreated, outcome)
    response.headers["Cache-Control"] = "no-store"
    return response


async def list_all(request: Request) -> Response:
    key = caller(request, api_keys.KEY_MANAGE)
    limit = page_limit(request)
    found = await verbs.list_visible_keys(context_of(request), key)
    rest = [each for each in found if each.id > request.query_params.get("after", "")]
    page = rest if limit is None else rest[:limit]
    told = wire.KeyList(
        team_id=key.team_id,
        keys=[view_key(each) for each in page],
        has_more=len(page) < len(rest),
        last_id=page[-1].id if page else None,
        request_id=request_id_of(request.scope),
    )
    return respond(request, told)


async def revoke(request: Request) -> Response:
    key = caller(request, api_keys.KEY_MANAGE)
    revoked = await verbs.revoke(context_of(request), key, request.path_params["key_id"])
    return answer(request, wire.KeyAnswer, view_key(revoked))
