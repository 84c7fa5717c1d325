"""Models of webhooks: deliveries with their attempts, and the secret that signs the calls."""

from typing import Literal

from svc_daemon.wire.models import WireModel


class CallError(WireModel):
    """The error of a webhook call that received no response."""

    code: str
    message: str
    #: The reason, with the same values as `details.reason` of the errors `url_fetch_failed` and `url_fetch_blocked`.
    reason: str | None


class DeliveryAttempt(WireModel):
    #: Number of the attempt, from 1.
    attempt: int
    started_at: str
    duration_ms: int
    #: The status of the receiver's response; null if there was none.
    http_status: int | None
    error: CallError | None


class Delivery(WireModel):
    """The delivery of one event to one URL, with its attempts."""

    #: The event's id, which the receiver gets with every call.
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
    """The secret with which a team's calls are signed."""

    object: Literal["webhook_secret"] = "webhook_secret"
    secret: str
    #: The secret before the rotation. Until it expires, calls are signed with both secrets.
    previous_secret: str | None
    previous_expires_at: str | None
    #: When the secret was last rotated; null if it never was.
    rotated_at: str | None
    request_id: str
