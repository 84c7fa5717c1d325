"""Models of webhooks: deliveries, and the secret that signs the calls."""

from typing import Literal

from typing_extensions import TypedDict

from svc_daemon.wire.requests import Paging


class CallError(TypedDict):
    """Why a webhook call got no response."""

    code: str
    message: str
    #: The cause: one of the values of `details.reason` in the errors `url_fetch_failed` and `url_fetch_blocked`.
    reason: str | None


class DeliveryAttempt(TypedDict):
    #: Number of the attempt, from 1.
    attempt: int
    started_at: str
    duration_ms: int
    #: Status of the receiver's response, if any.
    http_status: int | None
    error: CallError | None


class Delivery(TypedDict):
    """The delivery of one event to one URL, with its attempts."""

    #: The event's id, sent with every call.
    id: str
    object: Literal["webhook_delivery"]
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


class DeliveryList(Paging):
    deliveries: list[Delivery]
    request_id: str


class WebhookSecret(TypedDict):
    """The secret that signs a team's calls."""

    object: Literal["webhook_secret"]
    secret: str
    #: The secret before the last rotation. Calls are also signed with this secret until it expires.
    previous_secret: str | None
    previous_expires_at: str | None
    #: Null if the secret was never rotated.
    rotated_at: str | None
    request_id: str
