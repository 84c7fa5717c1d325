"""Authenticates requests by API key, and checks what a key may do."""

from collections.abc import Collection

from svc_daemon.core.access import api_keys
from svc_daemon.core.access.model_ids import is_allowed
from svc_daemon.errors import ServiceError
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows.keys import KeyRow, find_key
from svc_daemon.wire.light.error_codes import ErrorCode


def authenticate(context: Context, authorization: str | None) -> KeyRow:
    """Return the valid API key in the `Authorization` header; raises `invalid_project_key`."""
    scheme, _, token = (authorization or "").partition(" ")
    if not token:
        raise ServiceError(ErrorCode.INVALID_PROJECT_KEY, "Send the header Authorization: Bearer <API_KEY>.")
    parts = api_keys.parse(token.strip()) if scheme.lower() == "bearer" else None
    if parts is None:
        raise ServiceError(ErrorCode.INVALID_PROJECT_KEY, "This is not an API key of this service.")
    key = context.look(lambda connection: find_key(connection, parts.key_id))
    if key is None or not api_keys.matches(key.secret_hash, parts):
        raise ServiceError(ErrorCode.INVALID_PROJECT_KEY, "There is no such API key.")
    if not key.is_live(context.clock.timestamp()):
        raise ServiceError(ErrorCode.INVALID_PROJECT_KEY, "This API key has expired or was revoked.")
    return key


def is_live(context: Context, key: KeyRow) -> bool:
    """Return whether the key is still valid. Long requests, such as streams, check this repeatedly."""
    found = context.look(lambda connection: find_key(connection, key.id))
    return found is not None and found.is_live(context.clock.timestamp())


def require(key: KeyRow, capability: str, *others: str) -> None:
    """Raise `forbidden_project_key` unless the key has one of these capabilities. The error names the first one."""
    if {capability, *others}.isdisjoint(key.capabilities):
        raise ServiceError(
            ErrorCode.FORBIDDEN_PROJECT_KEY,
            f"This needs a key with the capability {capability}.",
            required_capability=capability,
        )


def require_model(key: KeyRow, agent_id: str) -> None:
    """Raise `model_not_allowed` unless the key may use this agent."""
    if not is_allowed(key.models, agent_id):
        raise ServiceError(ErrorCode.MODEL_NOT_ALLOWED, f"This key may not use the agent {agent_id!r}.")


def refuse_out_of_reach(key: KeyRow, bucket_ids: Collection[str], noun: str, capability: str) -> None:
    """Raise `forbidden_project_key` unless the key can reach all of these buckets."""
    if not key.reaches_all(bucket_ids):
        raise ServiceError(
            ErrorCode.FORBIDDEN_PROJECT_KEY,
            f"The {noun} is also in buckets that this key can't reach; this needs a key that reaches all of them.",
            required_capability=capability,
        )
