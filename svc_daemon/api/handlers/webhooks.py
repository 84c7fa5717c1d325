"""HTTP handlers for webhook deliveries and the webhook secret."""

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.endpoints import PAGE, Endpoint
from svc_daemon.api.requests import caller, context_of, one_of, page_limit, page_of, query_text
from svc_daemon.api.responses import respond
from svc_daemon.core import ids
from svc_daemon.core.access import api_keys
from svc_daemon.databases.contract import MOST_ROWS
from svc_daemon.operations import webhook_deliveries as verbs
from svc_daemon.operations.webhook_deliveries import Logged, Secrets
from svc_daemon.store.rows.webhook_deliveries import DeliveryFilter
from svc_daemon.wire import webhooks as wire
from svc_daemon.wire.light import webhook_calls

STATUSES = (webhook_calls.PENDING, webhook_calls.DELIVERED, webhook_calls.GIVEN_UP)


async def list_deliveries(request: Request) -> Response:
    key = caller(request, api_keys.WEBHOOK_MANAGE)
    limit, query = page_limit(request), partial(query_text, request)
    asked = DeliveryFilter(
        status=one_of("status", query("status"), STATUSES),
        source_id=query("source_id"),
        after=query("after") or "",
        # Read one row more than the page has, to see whether another page follows.
        limit=MOST_ROWS if limit is None else limit + 1,
    )
    page, paging = page_of(request, map(_view, await verbs.list_deliveries(context_of(request), key, asked)), ids.EVENT)
    return respond(request, {"deliveries": page, **paging})


async def resend(request: Request) -> Response:
    key = caller(request, api_keys.WEBHOOK_MANAGE)
    logged = await verbs.resend(context_of(request), key, request.path_params["delivery_id"])
    return respond(request, _view(logged))


async def show_secret(request: Request) -> Response:
    key = caller(request, api_keys.WEBHOOK_MANAGE)
    return _secret(request, verbs.show_secrets(context_of(request), key))


async def rotate_secret(request: Request) -> Response:
    key = caller(request, api_keys.WEBHOOK_MANAGE)
    return _secret(request, await verbs.rotate(context_of(request), key))


def _view(logged: Logged) -> wire.Delivery:
    delivery = logged.delivery
    return wire.Delivery(
        id=delivery.id,
        object="webhook_delivery",
        event=delivery.event,
        source_id=delivery.source_id,
        url=delivery.url,
        status=delivery.status,
        attempts=[
            wire.DeliveryAttempt(
                attempt=attempt.attempt,
                started_at=attempt.started_at,
                duration_ms=attempt.duration_ms,
                http_status=attempt.http_status,
                error=attempt.error,
            )
            for attempt in logged.attempts
        ],
        next_attempt_at=delivery.due_at,
        created_at=delivery.created_at,
    )


def _secret(request: Request, secrets: Secrets) -> Response:
    body = {
        "object": "webhook_secret",
        "secret": secrets.current,
        "previous_secret": secrets.previous,
        "previous_expires_at": secrets.previous_expires_at,
        "rotated_at": secrets.rotated_at,
    }
    response = respond(request, body)
    response.headers["Cache-Control"] = "no-store"
    return response


_CALLS = PAGE | {"status": "pending, delivered or failed.", "source_id": "Only calls about this source."}

# fmt: off
ENDPOINTS = (
    Endpoint("GET", "/v1/webhooks/deliveries", list_deliveries, "List webhook calls", {200: wire.DeliveryList},
             query=_CALLS, strict=True),
    Endpoint("POST", "/v1/webhooks/deliveries/{delivery_id}/resend", resend, "Send a webhook call again",
             {200: wire.DeliveryAnswer}),
    Endpoint("GET", "/v1/webhooks/secret", show_secret, "Show the webhook secret", {200: wire.WebhookSecret}),
    Endpoint("POST", "/v1/webhooks/secret/rotate", rotate_secret, "Create a webhook secret", {200: wire.WebhookSecret}),
)
# fmt: on
