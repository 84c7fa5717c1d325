"""Who asks: finding the key behind a bearer token and what it may reach."""

from collections.abc import Collection
from sqlite3 import Connection

from svc_daemon.core import api_keys, readiness
from svc_daemon.core.model_ids import is_allowed
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.operations.contexts import Context
from svc_daemon.store.buckets import Bucket, get_bucket
from svc_daemon.store.cascades import find_cascade
from svc_daemon.store.keys import Key, find_key
from svc_daemon.store.sources import Source, find_source, get_source
from svc_daemon.store.tasks import Task, get_task
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.tasks import REBUILD


def authenticate(context: Context, authorization: str | None) -> Key:
    """The live key of an `Authorization` header; raises `invalid_project_key`."""
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


def require(key: Key, capability: str) -> None:
    """Raises `forbidden_project_key` unless the key has the capability."""
    if capability not in key.capabilities:
        raise ServiceError(
            ErrorCode.FORBIDDEN_PROJECT_KEY,
            f"This needs a key with the capability {capability}.",
            required_capability=capability,
        )


def require_model(key: Key, agent_id: str) -> None:
    """Raises `model_not_allowed` unless the key may use the agent."""
    if not is_allowed(key.models, agent_id):
        raise ServiceError(ErrorCode.MODEL_NOT_ALLOWED, f"This key may not use the agent {agent_id!r}.")


def get_reachable_bucket(connection: Connection, key: Key, bucket: str) -> Bucket:
    """By id or slug, whatever its status; raises NotFound also where the key is kept from it."""
    found = get_bucket(connection, key.team_id, bucket)
    if key.buckets is not None and found.id not in key.buckets:
        raise _no_bucket(bucket)
    return found


def get_usable_bucket(connection: Connection, key: Key, bucket: str) -> Bucket:
    """An active bucket; an archived or deleting one counts as missing."""
    found = get_reachable_bucket(connection, key, bucket)
    if found.status != readiness.ACTIVE:
        raise _not_usable(found, bucket)
    return found


def get_lasting_bucket(connection: Connection, key: Key, bucket: str) -> Bucket:
    """An active or archived bucket; one that is being deleted counts as missing."""
    found = get_reachable_bucket(connection, key, bucket)
    if found.status == readiness.DELETING:
        raise _not_usable(found, bucket)
    return found


def get_reachable_source(connection: Connection, key: Key, source_id: str) -> Source:
    """Raises NotFound; a key that is kept to some buckets sees the sources of those."""
    source = get_source(connection, key.team_id, source_id)
    if key.buckets is not None and not set(key.buckets) & set(source.places):
        raise NotFound(ErrorCode.SOURCE_NOT_FOUND, f"There is no source {source_id!r}.")
    return source


def get_changeable_source(connection: Connection, key: Key, source_id: str) -> Source:
    """One that a change may be made to, which all of its buckets see; raises also as `refuse_out_of_reach`."""
    source = get_reachable_source(connection, key, source_id)
    refuse_out_of_reach(key, source.places, "source", api_keys.FILE_CREATE)
    return source


def get_reachable_task(connection: Connection, key: Key, task_id: str) -> Task:
    """Raises NotFound; a key that is kept to some buckets sees tasks of these, of sources there, and rebuilds."""
    task = get_task(connection, key.team_id, task_id)
    if key.buckets is None or task.type == REBUILD:
        return task
    cascade = find_cascade(connection, task.id)
    if cascade is not None and cascade.bucket_id in key.buckets:
        return task
    source = find_source(connection, key.team_id, task.source_id or "")
    if source is None or not set(key.buckets) & set(source.places):
        raise NotFound(ErrorCode.TASK_NOT_FOUND, f"There is no task {task_id!r}.")
    return task


def refuse_out_of_reach(key: Key, bucket_ids: Collection[str], noun: str, capability: str) -> None:
    """Raises `forbidden_project_key` where what is to be changed is also in buckets that the key is kept from."""
    if key.buckets is not None and not set(bucket_ids) <= set(key.buckets):
        raise ServiceError(
            ErrorCode.FORBIDDEN_PROJECT_KEY,
            f"The {noun} is also in buckets that this key can't reach; it takes a key that reaches all of them.",
            required_capability=capability,
        )


def _not_usable(found: Bucket, bucket: str) -> NotFound:
    return NotFound(
        ErrorCode.BUCKET_NOT_FOUND, f"The bucket {bucket!r} is {found.status}.", bucket=bucket, status=found.status
    )


def _no_bucket(bucket: str) -> NotFound:
    return NotFound(ErrorCode.BUCKET_NOT_FOUND, f"There is no bucket {bucket!r}.", bucket=bucket)
