"""HTTP handlers for API keys: create, list and revoke them."""

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.endpoints import DRY, NO_BUCKET, PAGE, Endpoint
from svc_daemon.api.requests import body_of, caller, context_of, creation_of, is_dry_run, meaning_of, page_of
from svc_daemon.api.responses import created, respond, would_create
from svc_daemon.core import ids
from svc_daemon.core.access import api_keys
from svc_daemon.operations import keys as verbs
from svc_daemon.operations.keys import plan_key, view_key
from svc_daemon.operations.shared.authorization import require
from svc_daemon.operations.shared.idempotency import find_earlier
from svc_daemon.wire import keys as wire
from svc_daemon.wire.light.error_codes import ErrorCode as E
from svc_daemon.wire.sources import DryRun


async def create(request: Request) -> Response:
    creation = creation_of(request, api_keys.KEY_MANAGE)
    fields = await body_of(request, wire.KeyCreate)
    context = context_of(request)
    creation = replace(creation, fingerprint=meaning_of(fields))
    if is_dry_run(request, fields.dry_run):
        if find_earlier(context, creation) is not None:
            return would_create(request, None)
        planned = context.read(lambda connection: plan_key(connection, context.ids, creation.key, fields))
        unknown, wanted = ("id", "hint", "created_at", "revoked_at"), view_key(planned.key)
        return would_create(request, {name: each for name, each in wanted.items() if name not in unknown})
    outcome = await verbs.create_new_key(context, creation, fields)
    response = created(request, outcome)
    response.headers["Cache-Control"] = "no-store"
    return response


async def list_all(request: Request) -> Response:
    key = caller(request, api_keys.KEY_MANAGE)
    page, paging = page_of(request, map(view_key, await verbs.list_visible_keys(context_of(request), key)), ids.KEY)
    return respond(request, {"team_id": key.team_id, "keys": page, **paging})


async def revoke(request: Request) -> Response:
    key, key_id = caller(request), request.path_params["key_id"]
    # The holder of a key may end it.
    if key_id != key.id:
        require(key, api_keys.KEY_MANAGE)
    revoked = await verbs.revoke(context_of(request), key, key_id)
    return respond(request, view_key(revoked))


# fmt: off
ENDPOINTS = (
    Endpoint("POST", "/v1/keys", create, "Create an API key, which is shown only once",
             {201: wire.KeyCreated, 200: wire.KeyCreated | DryRun}, body=wire.KeyCreate, query=DRY, repeatable=True,
             errors=(*NO_BUCKET, E.MODEL_NOT_FOUND, E.MODEL_NOT_ALLOWED)),
    Endpoint("GET", "/v1/keys", list_all, "List API keys", {200: wire.KeyList}, query=PAGE),
    Endpoint("DELETE", "/v1/keys/{key_id}", revoke, "Revoke an API key", {200: wire.KeyAnswer},
             errors=(E.KEY_NOT_FOUND,)),
)
# fmt: on
