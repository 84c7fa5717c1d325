"""Webhooks: what a call says, when it is tried again, and the secrets that sign it.

    pending    a call is due: the first, the one retry after a pause, or one that was asked for again
    delivered  the receiver answered 2xx
    failed     it did not, and no try is left

Secrets are derived from the installation's own, so that nothing usable is stored: the team's generation counts up at
each rotation, and for a time the generation before signs too.
"""

import hashlib
import hmac
from dataclasses import dataclass
from typing import Any

from svc_daemon.core.webhook_signatures import secret_text

READY, FAILED = "source.ready", "source.failed"
PENDING, DELIVERED, GIVEN_UP = "pending", "delivered", "failed"
#: The first call and one retry (specification, Events).
TRIES = 2


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a delivery stands after a call."""

    status: str
    tries_left: int


def judge_call(http_status: int | None, tries_left: int) -> Standing:
    """What follows from the answer to a call, which was one of the tries left; None is no answer at all."""
    if http_status is not None and 200 <= http_status <= 299:
        return Standing(DELIVERED, 0)
    # One that was asked for by hand comes on top of what is left.
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
    """The secret `whsec_…` of one generation, as the team's receivers are given it."""
    message = f"webhook:{team_id}:{generation}".encode()
    return secret_text(hmac.new(installation_secret, message, hashlib.sha256).digest())
