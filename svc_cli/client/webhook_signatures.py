"""Verifies a received webhook call (Standard Webhooks), without the service."""

import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from standardwebhooks import Webhook
from standardwebhooks.webhooks import EmptyWebhookSecretError, WebhookVerificationError

Verdict = Literal["valid", "expired", "invalid"]


class Checked(NamedTuple):
    """The result of checking a webhook call.

    `expired` means that the call was signed correctly, but too long ago or in the future.
    """

    verdict: Verdict
    #: Why the call is not valid.
    reason: str | None = None


def verify_webhook(secret: str, headers: Mapping[str, str], body: bytes) -> Checked:
    """Check a received call; header names are case-insensitive. Raises ValueError for an invalid secret."""
    try:
        hook = Webhook(secret)
    except EmptyWebhookSecretError as error:
        raise ValueError("the secret is empty") from error
    given = {name.lower(): value for name, value in headers.items()}
    try:
        hook.verify(body, given, json_parse=False)
    except WebhookVerificationError as error:
        if "timestamp" not in str(error):
            return Checked("invalid", str(error).lower())
        # The library checks the time first. A wrong signature is the worse problem, so check for it here.
        is_signed = _is_signed(hook, given, body)
        return (
            Checked("expired", str(error).lower()) if is_signed else Checked("invalid", "no matching signature found")
        )
    except ValueError:
        return Checked("invalid", "the signature header or the body is malformed")
    return Checked("valid")


def _is_signed(hook: Webhook, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether the signature is correct, whatever the time."""
    try:
        moment = datetime.fromtimestamp(float(headers["webhook-timestamp"]), tz=UTC)
        signed = hook.sign(headers["webhook-id"], moment, body.decode())
        given = headers["webhook-signature"].split(" ")
    except (KeyError, ValueError, OverflowError, OSError):
        return False
    return any(hmac.compare_digest(signed.encode(), each.encode()) for each in given)
