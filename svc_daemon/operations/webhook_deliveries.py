"""Webhooks: sends the calls that wait, lists the calls, and rotates the signing secret.

If the daemon crashes before it has recorded a call's result, it repeats the call with the same id.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from svc_daemon.core.access.api_keys import WEBHOOK_MANAGE, team_secret
from svc_daemon.core.shortages import ShortageKind
from svc_daemon.core.times import from_text, to_text
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.process.contexts import Context
from svc_daemon.process.resource_shortages import Short
from svc_daemon.store.rows import webhook_deliveries as store
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sources.sources import find_source
from svc_daemon.store.rows.webhook_deliveries import (
    Attempt,
    DeliveryFilter,
    DeliveryRow,
    SecretGeneration,
    find_generation,
    rotate_secret,
)
from svc_daemon.wire.light import webhook_calls
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.webhook_calls import signed_headers
from svc_daemon.wire.webhooks import CallError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secrets that sign a team's webhook calls."""

    current: str
    #: The previous secret while it is valid; otherwise None.
    previous: str | None
    #: Until this time, calls are signed with both secrets.
    previous_expires_at: str | None
    #: When the secret was last changed; None if never.
    rotated_at: str | None

    @property
    def valid(self) -> list[str]:
        """Return the secrets that sign calls now, newest first."""
        return [self.current, *([self.previous] if self.previous else [])]


@dataclass(frozen=True, slots=True)
class Logged:
    """A webhook event, and all calls that were made to report the event."""

    delivery: DeliveryRow
    attempts: Sequence[Attempt]


async def deliver(context: Context, delivery_id: str) -> None:
    """Make one webhook call and record the result. Does nothing if the delivery is no longer due."""
    now = context.clock.timestamp()
    delivery = context.look(lambda connection: store.find_due(connection, delivery_id, now))
    if delivery is None:
        return
    secrets = context.look(lambda connection: _secrets(context, connection, delivery.team_id))
    started_s, started_at = context.clock.monotonic(), context.clock.now()
    body = delivery.body.encode()
    headers = signed_headers(secrets.valid, delivery.id, started_at, body)
    status, failure = None, None
    try:
        status = await context.fetcher.post(delivery.url, body, headers)
    except ServiceError as error:
        if await context.shortages.is_cause_of(
            error, delivery.id, kinds=(ShortageKind.DESCRIPTORS, ShortageKind.MEMORY)
        ):
            raise Short from error
        failure = CallError(code=str(error.code), message=error.message, reason=error.details.get("reason"))
    attempt = Attempt(
        delivery_id=delivery.id,
        started_at=to_text(started_at),
        duration_ms=round((context.clock.monotonic() - started_s) * 1000),
        http_status=status,
        error=failure,
    )
    await context.shortages.get_through(partial(_finish, context, delivery, attempt))


async def give_up(context: Context, delivery_id: str) -> None:
    """Mark the delivery as failed, because its row can't be read. A resend tries again."""
    await context.write(lambda connection: store.abandon_delivery(connection, delivery_id))


async def resend(context: Context, key: KeyRow, delivery_id: str) -> Logged:
    """Queue another call for this event, even if an earlier call succeeded; raises NotFound."""
    now = context.clock.timestamp()

    def work(connection: Connection) -> Logged:
        delivery = store.get_delivery(connection, key.team_id, delivery_id)
        source = find_source(connection, key.team_id, delivery.source_id)
        # A key limited to some buckets sees only calls about sources in these buckets.
        if key.is_limited and (source is None or not key.reaches(source.places)):
            raise NotFound(ErrorCode.NOT_FOUND, f"There is no delivery {delivery_id!r}.")
        store.resend_delivery(connection, delivery.id, now)
        due = replace(delivery, status=webhook_calls.PENDING, tries_left=1, due_at=now)
        return Logged(due, store.list_attempts(connection, [delivery_id]).get(delivery_id, []))

    logged = await context.write(work)
    context.wakes.delivering.set()
    return logged


async def list_deliveries(context: Context, key: KeyRow, chosen: DeliveryFilter) -> list[Logged]:
    """List the webhook events that the key may see and that pass the filter, with their calls."""

    def work(connection: Connection) -> list[Logged]:
        listed = store.list_deliveries(connection, key.team_id, replace(chosen, bucket_ids=key.buckets))
        attempts = store.list_attempts(connection, [delivery.id for delivery in listed])
        return [Logged(delivery, attempts.get(delivery.id, [])) for delivery in listed]

    return await context.read_in_thread(work)


def show_secrets(context: Context, key: KeyRow) -> Secrets:
    """Return the team's secrets. Raises `forbidden_project_key` if the key is limited to some buckets."""
    _require_every_bucket(key)
    return context.look(lambda connection: _secrets(context, connection, key.team_id))


async def rotate(context: Context, key: KeyRow) -> Secrets:
    """Create a new secret. The previous secret stays valid for a limited time. Older secrets become invalid.

    Raises `forbidden_project_key` if the key is limited to some buckets.
    """
    _require_every_bucket(key)
    now = context.clock.timestamp()
    found = await context.write(lambda connection: rotate_secret(connection, key.team_id, now))
    return _derive(context, key.team_id, found)


def _require_every_bucket(key: KeyRow) -> None:
    """Raise `forbidden_project_key` if the key is limited to some buckets: the secret signs calls about all of them."""
    if key.is_limited:
        raise ServiceError(
            ErrorCode.FORBIDDEN_PROJECT_KEY,
            "The webhook secret belongs to the whole team; this needs a key that is not limited to some buckets.",
            required_capability=WEBHOOK_MANAGE,
        )


async def _finish(context: Context, delivery: DeliveryRow, attempt: Attempt) -> None:
    standing = webhook_calls.judge_call(attempt.http_status, delivery.tries_left)
    pause_s = context.limits.webhook_retry_seconds
    due_at = context.clock.timestamp(pause_s) if standing.status == webhook_calls.PENDING else None

    def work(connection: Connection) -> None:
        store.create_attempt(connection, attempt)
        store.move_delivery(connection, delivery, standing, due_at)

    await context.write(work)
    log.info("webhook %s for %s: %s", delivery.id, delivery.source_id, standing.status)


def _secrets(context: Context, connection: Connection, team_id: str) -> Secrets:
    return _derive(context, team_id, find_generation(connection, team_id))


def _derive(context: Context, team_id: str, found: SecretGeneration) -> Secrets:
    current = team_secret(context.secret, team_id, found.generation)
    if found.rotated_at is None:
        return Secrets(current, None, None, None)
    try:
        expires_at = to_text(from_text(found.rotated_at) + timedelta(hours=context.limits.webhook_rotation_hours))
    except (ValueError, OverflowError):
        # The row is damaged. The current secret doesn't depend on its time.
        expires_at = ""
    if expires_at <= context.clock.timestamp():
        return Secrets(current, None, None, found.rotated_at)
    previous = team_secret(context.secret, team_id, found.generation - 1)
    return Secrets(current, previous, expires_at, found.rotated_at)
