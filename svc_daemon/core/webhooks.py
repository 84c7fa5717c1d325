"""Webhooks: their payload, when a call is retried, and how it is signed (Standard Webhooks, v1: HMAC-SHA256).

    pending    a call is due: the first one, the retry after a pause, or a resend that was requested
    delivered  the receiver has answered with a 2xx status
    failed     no call was answered with a 2xx status, and no attempt is left

A team's secret is derived from the installation's secret and the team's generation number, so no webhook secret is
stored. Each rotation increments the generation; for a time, the secret of the previous generation signs as well.
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from standardwebhooks import Webhook

#: Number of random bytes in a secret; the standard allows 24 to 64.
SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105  (the prefix, not a secret)

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"


def secret_text(random: bytes) -> str:
    """Encode a secret as `whsec_…`, the form that receivers use."""
    if len(random) != SECRET_BYTES:
        raise ValueError(f"a webhook secret has {SECRET_BYTES} bytes, not {len(random)}")
    return SECRET_PREFIX + base64.b64encode(random).decode("ascii")


def signed_headers(secrets: Sequence[str], event_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """Build the signature headers for a UTF-8 `body` that is sent at `at`, an aware datetime.

    There is one signature per secret, newest first: during a rotation, a receiver may still have the older secret. All
    attempts for an event have the same id, but their own timestamp.
    """
    if not secrets:
        raise ValueError("a webhook is signed with one secret at least")
    if at.tzinfo is None:
        raise ValueError("a moment needs a time zone")
    # `standardwebhooks` ignores the time zone and treats the time as UTC, so convert it first.
    moment, text = at.astimezone(UTC), body.decode("utf-8")
    signatures = [Webhook(secret).sign(event_id, moment, text) for secret in secrets]
    return {ID: event_id, TIMESTAMP: str(int(moment.timestamp())), SIGNATURE: " ".join(signatures)}


READY, FAILED = "source.ready", "source.failed"
PENDING, DELIVERED, GIVEN_UP = "pending", "delivered", "failed"
#: Number of calls for an event: the first call and one retry (specification, Events).
TRIES = 2


@dataclass(frozen=True, slots=True)
class Standing:
    """The status of a delivery after a call, and the number of calls that are left."""

    status: str
    tries_left: int


def judge_call(http_status: int | None, tries_left: int) -> Standing:
    """Compute the delivery's status after a call; an `http_status` of None means that there was no response."""
    if http_status is not None and 200 <= http_status <= 299:
        return Standing(DELIVERED, 0)
    # The number must not become negative if `tries_left` is already 0.
    left = max(tries_left - 1, 0)
    return Standing(PENDING if left else GIVEN_UP, left)


def event_body(
    event: str, event_id: str, timestamp: str, metadata: dict[str, Any], data: dict[str, Any]
) -> dict[str, Any]:
    """Build the payload: Standard Webhooks' `type`, `timestamp` and `data`, and the specification's own fields."""
    error = data.get("error")
    return {
        "id": event_id,
        "type": event,
        "event": event,
        "timestamp": timestamp,
        "source_id": data["id"],
        **({"reason": error["code"]} if error else {}),
        "metadata": metadata,
        "data": data,
    }


def team_secret(installation_secret: bytes, team_id: str, generation: int) -> str:
    """Derive the secret `whsec_…` of one generation, in the form that the team's receivers use."""
    message = f"webhook:{team_id}:{generation}".encode()
    return secret_text(hmac.new(installation_secret, message, hashlib.sha256).digest())
