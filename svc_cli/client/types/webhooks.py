"""Types of webhooks. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Literal, NotRequired, TypedDict


class CallErrorDict(TypedDict):
    """Why a webhook call got no response."""

    code: str
    message: str
    reason: str | None
    """The cause: one of the values of `details.reason` in the errors `url_fetch_failed` and `url_fetch_blocked`."""


class DeliveryAttemptDict(TypedDict):
    attempt: int
    """Number of the attempt, from 1."""
    started_at: str
    duration_ms: int
    http_status: int | None
    """Status of the receiver's response, if any."""
    error: CallErrorDict | None


class DeliveryDict(TypedDict):
    """The delivery of one event to one URL, with its attempts."""

    id: str
    """The event's id, sent with every call."""
    object: Literal["webhook_delivery"]
    event: str
    """`source.ready` or `source.failed`."""
    source_id: str
    url: str
    status: str
    """`pending`, `delivered` or `failed`."""
    attempts: list[DeliveryAttemptDict]
    next_attempt_at: str | None
    created_at: str


class DeliveryAnswerDict(DeliveryDict):
    request_id: str


class DeliveryListDict(TypedDict):
    deliveries: list[DeliveryDict]
    has_more: NotRequired[bool]
    last_id: NotRequired[str | None]
    request_id: str


class WebhookSecretDict(TypedDict):
    """The secret that signs a team's calls."""

    object: Literal["webhook_secret"]
    secret: str
    previous_secret: str | None
    """The secret before the last rotation. Calls are also signed with this secret until it expires."""
    previous_expires_at: str | None
    rotated_at: str | None
    """Null if the secret was never rotated."""
    request_id: str
