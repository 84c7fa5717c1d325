"""Webhooks on the wire: the calls that were made, and the secret that signs them."""

from typing import Literal

from svc_daemon.wire.models import WireModel


class CallError(WireModel):
    """Why a call got no answer."""

    code: str
    message: str
    #: As in `details.reason` of `url_fetch_failed` and `url_fetch_blocked`.
    reason: str | None


class DeliveryAttempt(WireModel):
    #: From 1.
    attempt: int
    started_at: str
    duration_ms: int
    #: What the receiver answered; null where there was no answer.
    http_status: int | None
    error: CallError | None


class Delivery(WireModel):
    """One event on its way to one address."""

    #: The event's id, as the receiver gets it in every call.
    id: str
    object: Literal["webhook_delivery"] = "webhook_delivery"
    #: `source.ready` or `source.failed`.
    event: str
    source_id: str
    url: str
    #: `pending`, `delivered` or `failed`.
    status: str
    attempts: list[DeliveryAttempt]
    next_attempt_at: str | None
    created_at: str


class DeliveryAnswer(Delivery):
    request_id: str


class DeliveryList(WireModel):
    deliveries: list[Delivery]
    has_more: bool | None = None
    last_id: str | None = None
    request_id: str


class WebhookSecret(WireModel):
    """What a team's calls are signed with."""

    object: Literal["webhook_secret"] = "webhook_secret"
    secret: str
    #: The one before; during a rotation calls are signed with both.
    previous_secret: str | None
    previous_expires_at: str | None
    #: Null for a team that never rotated.
    rotated_at: str | None
    request_id: str
