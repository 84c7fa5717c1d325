"""Webhook calls: their payload, retries and signatures (Standard Webhooks, v1: HMAC-SHA256).

pending    a call is due: the first one, its retry, or a requested resend
delivered  the receiver has answered with a 2xx status
failed     no attempt is left, and no call was answered with a 2xx status
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
#: Number of calls for an event: the first and one retry.
TRIES = 2

#: Fields of a source in a webhook call.
_FACTS = ("id", "status", "ready", "bucket_sync_status", "type", "source_url")


@dataclass(frozen=True, slots=True)
class Standing:
    """The status of a delivery after a call."""

    status: str
    tries_left: int


def judge_call(http_status: int | None, tries_left: int) -> Standing:
    """Compute the status of a delivery after a call. `http_status` is None if nobody answered."""
    if http_status is not None and 200 <= http_status <= 299:
        return Standing(DELIVERED, 0)
    left = max(tries_left - 1, 0)
    return Standing(PENDING if left else GIVEN_UP, left)


def encode_body(
    event: str, event_id: str, timestamp: str, metadata: Mapping[str, Any], source: Mapping[str, Any]
) -> str:
    """Build the payload: Standard Webhooks' `type`, `timestamp` and `data`, and the specification's own fields."""
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

    There is one signature per secret, the newest first, for receivers that still use the old secret. All attempts for
    an event have the same id.
    """
    if not secrets:
        raise ValueError("a webhook is signed with one secret at least")
    if at.tzinfo is None:
        raise ValueError("a moment needs a time zone")
    # `standardwebhooks` ignores the time zone, so convert to UTC first.
    moment, text = at.astimezone(UTC), body.decode("utf-8")
    signatures = [Webhook(secret).sign(event_id, moment, text) for secret in secrets]
    signed = {ID: event_id, TIMESTAMP: str(int(moment.timestamp())), SIGNATURE: " ".join(signatures)}
    return {"Content-Type": "application/json", **signed}
