"""Signs webhook calls (Standard Webhooks, v1: HMAC-SHA256)."""

from collections.abc import Sequence
from datetime import UTC, datetime

from standardwebhooks import Webhook

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
