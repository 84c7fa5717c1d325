"""Handlers of webhooks: the log of deliveries, sending one again, the secret."""

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.presenting import answer, caller, context_of, page_limit, respond
from svc_daemon.api.request_ids import request_id_of
from svc_daemon.core import webhooks
from svc_daemon.core.access import api_keys
from svc_daemon.core.requests import refusal
from svc_daemon.operations import webhooks as verbs
from svc_daemon.operations.webhooks import Logged, Secrets
from svc_daemon.store.deliveries import Attempt, DeliveryFilter
from svc_daemon.wire import webhooks as wire

STATUSES = (webhooks.PENDING, webhooks.DELIVERED, webhooks.GIVEN_UP)


async def list_deliveries(request: Request) -> Response:
    key = caller(request, api_keys.WEBHOOK_MANAGE)
    limit = page_limit(request)
    found = await verbs.list_deliveries(context_of(request), key, _filter(request, limit))
    page = found if limit is None else found[:limit]
    told = wire.DeliveryList(
        deliveries=[_view(logged) for logged in page],
        has_more=len(page) < len(found),
        last_id=page[-1].delivery.id if page else None,
        request_id=request_id_of(request.scope),
    )
    return respond(request, told)


async def resend(request: Request) -> Response:
    key = caller(request, api_keys.WEBHOOK_MANAGE)
    logged = await verbs.resend(context_of(request), key, request.path_params["delivery_id"])
    return answer(request, wire.DeliveryAnswer, _view(logged))


async def show_secret(request: Request) -> Response:
    key = caller(request, api_keys.WEBHOOK_MANAGE)
    return _secret(request, verbs.show_secrets(context_of(request), key))


async def rotate_secret(request: Request) -> Response:
    key = caller(request, api_keys.WEBHOOK_MANAGE)
    return _secret(request, await verbs.rotate(context_of(request), key))


def _filter(request: Request, limit: int | None) -> DeliveryFilter:
    query = request.query_params
    status = query.get("status")
    if status is not None and status not in STATUSES:
        raise refusal("status", f"must be one of {', '.join(STATUSES)}, not {status!r}.")
    return DeliveryFilter(
        status=status,
        source_id=query.get("source_id"),
        after=query.get("after", ""),
        # One more than asked for tells whether there is more.
        limit=-1 if limit is None else limit + 1,
    )


def _view(logged: Logged) -> wire.Delivery:
    delivery = logged.delivery
    return wire.Delivery(
        id=delivery.id,
        event=delivery.event,
        source_id=delivery.source_id,
        url=delivery.url,
        status=delivery.status,
        attempts=[_view_attempt(attempt) for attempt in logged.attempts],
        next_attempt_at=delivery.due_at,
        created_at=delivery.created_at,
    )


def _view_attempt(attempt: Attempt) -> wire.DeliveryAttempt:
    return wire.DeliveryAttempt(
        attempt=attempt.attempt,
        started_at=attempt.started_at,
        duration_ms=attempt.duration_ms,
        http_status=attempt.http_status,
        error=wire.CallError(**attempt.error) if attempt.error else None,
    )


def _secret(request: Request, secrets: Secrets) -> Response:
    told = {
        "secret": secrets.current,
        "previous_secret": secrets.previous,
        "previous_expires_at": secrets.previous_expires_at,
        "rotated_at": secrets.rotated_at,
    }
    response = answer(request, wire.WebhookSecret, told)
    response.headers["Cache-Control"] = "no-store"
    return response
