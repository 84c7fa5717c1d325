"""Types of webhooks. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Literal, NotRequired, TypedDict


class CallErrorDict(TypedDict):
    """The error of a webhook call that received no response."""

    code: str
    message: str
    reason: str | None
    """The reason, with the same values as `details.reason` of the errors `url_fetch_failed` and `url_fetch_blocked`."""


class DeliveryAttemptDict(TypedDict):
    attempt: int
    """Number of the attempt, from 1."""
    started_at: str
    duration_ms: int
    http_status: int | None
    """The status of the receiver's response; null if there was none."""
    error: CallErrorDict | None


class DeliveryDict(TypedDict):
    """The delivery of one event to one URL, with its attempts."""

    id: str
    """The event's id, which the receiver gets with every call."""
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
    """The secret with which a team's calls are signed."""

    object: Literal["webhook_secret"]
    secret: str
    previous_secret: str | None
    """The secret before the rotation. Until it expires, calls are signed with both secrets."""
    previous_expires_at: str | None
    rotated_at: str | None
    """When the secret was last rotated; null if it never was."""
    request_id: str
