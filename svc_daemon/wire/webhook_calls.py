"""Webhook calls: their payload, retries and signatures (Standard Webhooks, v1: HMAC-SHA256).

    pending    a call is due: the first one, the retry after a pause, or a resend that was requested
    delivered  the receiver has answered with a 2xx status
    failed     no call was answered with a 2xx status, and no attempt is left

The daemon makes these calls, and so does `svc webhook listen`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from standardwebhooks import Webhook

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"

READY, FAILED = "source.ready", "source.failed"
PENDING, DELIVERED, GIVEN_UP = "pending", "delivered", "failed"
#: Number of calls for an event: the first call and one retry (specification, Events).
TRIES = 2

#: The fields of a source that are sent in a webhook call.
_FACTS = ("id", "status", "ready", "bucket_sync_status", "type", "source_url")


@dataclass(frozen=True, slots=True)
class Standing:
    """The status of a delivery after a call, and how many attempts are left."""

    status: str
    tries_left: int


def judge_call(http_status: int | None, tries_left: int) -> Standing:
    """Compute the status of a delivery after a call. An `http_status` of None means that there was no response."""
    if http_status is not None and 200 <= http_status <= 299:
        return Standing(DELIVERED, 0)
    # The number must not become negative if `tries_left` is already 0.
    left = max(tries_left - 1, 0)
    return Standing(PENDING if left else GIVEN_UP, left)


def encode_body(
    event: str, event_id: str, timestamp: str, metadata: Mapping[str, Any], source: Mapping[str, Any]
) -> str:
    """Build the payload: Standard Webhooks' `type`, `timestamp` and `data`, and the specification's own fields.

    `source` is the source in the format of the API.
    """
    error = source.get("error")
    body = {
        "id": event_id,
        "type": event,
        "event": event,
        "timestamp": timestamp,
        "source_id": source["id"],
        **({"reason": error["code"]} if error else {}),
        "metadata": metadata,
        "data": {name: source[name] for name in _FACTS} | ({"error": error} if error else {}),
    }
    return json.dumps(body, ensure_ascii=False)


def signed_headers(secrets: Sequence[str], event_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """Build the headers for a UTF-8 `body` that is sent at `at`, an aware datetime.

    There is one signature per secret, newest secret first, because a receiver may still use the old secret during a
    rotation. All attempts for an event have the same id, but different timestamps.
    """
    if not secrets:
        raise ValueError("a webhook is signed with one secret at least")
    if at.tzinfo is None:
        raise ValueError("a moment needs a time zone")
    # `standardwebhooks` ignores the time zone and treats the time as UTC, so convert it first.
    moment, text = at.astimezone(UTC), body.decode("utf-8")
    signatures = [Webhook(secret).sign(event_id, moment, text) for secret in secrets]
    signed = {ID: event_id, TIMESTAMP: str(int(moment.timestamp())), SIGNATURE: " ".join(signatures)}
    return {"Content-Type": "application/json", **signed}
