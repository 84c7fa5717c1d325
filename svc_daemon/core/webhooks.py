"""Webhooks: what a call contains, when it is retried, and how it is signed (Standard Webhooks, v1: HMAC-SHA256).

    pending    a call is due: the first, the one retry after a pause, or one that was asked for again
    delivered  the receiver answered 2xx
    failed     it did not, and no try is left

Secrets are derived from the installation's own, so that nothing usable is stored: the team's generation counts up at
each rotation, and for a time the generation before signs too.
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from standardwebhooks import Webhook

#: Random bytes in a secret: the standard takes 24 to 64.
SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105  (the prefix, not a secret)

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"


def secret_text(random: bytes) -> str:
    """The secret made from these random bytes, as receivers get it."""
    if len(random) != SECRET_BYTES:
        raise ValueError(f"a webhook secret has {SECRET_BYTES} bytes, not {len(random)}")
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


READY, FAILED = "source.ready", "source.failed"
PENDING, DELIVERED, GIVEN_UP = "pending", "delivered", "failed"
#: The first call and one retry (specification, Events).
TRIES = 2


@dataclass(frozen=True, slots=True)
class Standing:
    """The status of a delivery after a call."""

    status: str
    tries_left: int


def judge_call(http_status: int | None, tries_left: int) -> Standing:
    """What follows from the answer to a call, which was one of the tries left; None means no answer."""
    if http_status is not None and 200 <= http_status <= 299:
        return Standing(DELIVERED, 0)
    # A call that was requested by hand does not use up an attempt.
    left = max(tries_left - 1, 0)
    return Standing(PENDING if left else GIVEN_UP, left)


def event_body(
    event: str, event_id: str, timestamp: str, metadata: dict[str, Any], data: dict[str, Any]
) -> dict[str, Any]:
    """The call's JSON: Standard Webhooks' `type`, `timestamp` and `data`, and the specification's own names beside."""
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
    """The secret `whsec_…` of one generation, as the team's receivers get it."""
    message = f"webhook:{team_id}:{generation}".encode()
    return secret_text(hmac.new(installation_secret, message, hashlib.sha256).digest())
