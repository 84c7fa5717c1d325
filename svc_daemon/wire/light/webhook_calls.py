"""Webhook calls (Standard Webhooks): their payload, their signature, and when one is retried.

A delivery is `pending` while another call is planned, and `delivered` once the receiver has answered with a 2xx status.
It is `failed` if no attempt is left.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from standardwebhooks import Webhook

READY, FAILED = "source.ready", "source.failed"

#: The source's fields that a webhook call contains.
_FACTS = ("id", "status", "ready", "bucket_sync_status", "type", "source_url")


def encode_body(
    event: str, event_id: str, timestamp: str, metadata: Mapping[str, Any], source: Mapping[str, Any]
) -> str:
    """Build the payload, with the fields of Standard Webhooks (`type`, `timestamp` and `data`) and others."""
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


PENDING, DELIVERED, GIVEN_UP = "pending", "delivered", "failed"
#: Number of calls for an event: the first and one retry.
TRIES = 2


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


ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"


def signed_headers(secrets: Sequence[str], event_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """Build the headers of a call. `body` is UTF-8, and `at` is the time of the call, with a time zone.

    There is one signature for each secret, so that receivers that still have the old secret can check the call too.
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
