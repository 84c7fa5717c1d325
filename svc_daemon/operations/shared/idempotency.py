"""Stores responses by idempotency key, so that a repeated create request gets the response of the first request."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from svc_daemon.core import idempotency
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ServiceError
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows.idempotency import StoredAnswer, create_answer, find_answer
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.wire import JsonMapping
from svc_daemon.wire.light.error_codes import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """A create request with an optional idempotency key and, as soon as there is one, its response."""

    #: The caller's API key.
    key: KeyRow
    idempotency_key: str | None
    #: Method and path template. Using an idempotency key on two routes is a conflict.
    route: str
    #: The fingerprint that a repeated request has, too; None if the idempotency key alone identifies the request.
    fingerprint: str | None = None
    #: The response, without `request_id`.
    body: JsonMapping = field(default_factory=dict)
    #: Whether an earlier request has stored this response.
    replayed: bool = False
    #: Whether the request has created something. If not, it has only changed what was there.
    is_new: bool = True


def check_key(context: Context, idempotency_key: str | None) -> str | None:
    """Return the idempotency key; raises `invalid_idempotency_key` if its format is wrong."""
    limit = context.limits.idempotency_key_characters
    if idempotency_key is not None and not idempotency.is_key(idempotency_key, limit):
        raise ServiceError(
            ErrorCode.INVALID_IDEMPOTENCY_KEY,
            f"The idempotency key must be 1 to {limit} visible ASCII characters.",
            max_characters=limit,
        )
    return idempotency_key


@asynccontextmanager
async def replaying(context: Context, request: Creation) -> AsyncIterator[Creation | None]:
    """Lock the idempotency key, and yield the request with the response stored under the key; None if there is none.

    Raises `request_in_progress` if the key is locked, and `idempotency_key_conflict` if another request has used the
    key.
    """
    if request.idempotency_key is None:
        yield None
        return
    async with context.locks.hold_free(key_lock(request.key.id, request.idempotency_key)) as free:
        if not free:
            raise ServiceError(ErrorCode.REQUEST_IN_PROGRESS, retry_after_seconds=1)
        yield find_earlier(context, request)


def key_lock(key_id: str, idempotency_key: str) -> str:
    """Return the name of the lock for an idempotency key."""
    return f"key {key_id} {idempotency_key}"


def store_answer(connection: Connection, context: Context, request: Creation, body: JsonMapping) -> Creation:
    """Return the request with its response, and store both in the request's transaction if it has an idempotency key.

    Raises `request_in_progress` if another request has stored a response meanwhile. The transaction is then rolled
    back.
    """
    if request.idempotency_key is not None:
        answer = StoredAnswer(route=request.route, fingerprint=request.fingerprint, body=body)
        now, oldest = context.clock.timestamp(), _oldest(context)
        if not create_answer(
            connection, request.key.id, request.idempotency_key, answer, created_at=now, oldest=oldest
        ):
            raise ServiceError(ErrorCode.REQUEST_IN_PROGRESS, retry_after_seconds=1)
    return replace(request, body=body)


def find_earlier(context: Context, request: Creation) -> Creation | None:
    """Return the request with the response stored under its idempotency key, or None.

    Raises `idempotency_key_conflict` if another request has used the key.
    """
    key = request.idempotency_key
    if key is None:
        return None
    oldest = _oldest(context)
    stored = context.look(lambda connection: find_answer(connection, request.key.id, key, oldest))
    if stored is None:
        return None
    if not idempotency.is_repeat((request.route, request.fingerprint), (stored.route, stored.fingerprint)):
        raise ServiceError(ErrorCode.IDEMPOTENCY_KEY_CONFLICT)
    return replace(request, body=stored.body, replayed=True)


def _oldest(context: Context) -> str:
    """Return the time before which stored responses are no longer used."""
    return context.clock.timestamp(-86400 * context.limits.idempotency_days)
