"""Webhook secrets and the signature of a call (Standard Webhooks, v1: HMAC-SHA256)."""

import base64
from collections.abc import Sequence
from datetime import UTC, datetime

from standardwebhooks import Webhook

#: Random bytes in a secret: the standard takes 24 to 64.
SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105  (the prefix, not a secret)

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"


def secret_text(random: bytes) -> str:
    """The secret made of these random bytes, as receivers are given it."""
    if len(random) != SECRET_BYTES:
        raise ValueError(f"a webhook secret is made of {SECRET_BYTES} bytes, not {len(random)}")
    return SECRET_PREFIX + base64.b64encode(random).decode("ascii")


def signed_headers(secrets: Sequence[str], event_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The headers that vouch for `body`, which is UTF-8, sent at this aware moment.

    One signature for each secret, newest first: during a rotation a receiver may still hold the older one. Every
    attempt at one event has the same id and a time of its own.
    """
    if not secrets:
        raise ValueError("a webhook is signed with one secret at least")
    if at.tzinfo is None:
        raise ValueError("a moment needs a time zone")
    # The library takes the wall clock's figures for UTC, whatever zone they come with.
    moment, text = at.astimezone(UTC), body.decode("utf-8")
    signatures = [Webhook(secret).sign(event_id, moment, text) for secret in secrets]
    return {ID: event_id, TIMESTAMP: str(int(moment.timestamp())), SIGNATURE: " ".join(signatures)}
