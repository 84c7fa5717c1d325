"""Webhook calls: their payload and signatures (Standard Webhooks, v1: HMAC-SHA256)."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from standardwebhooks import Webhook

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"

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
