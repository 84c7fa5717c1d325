"""Authenticates requests by API key, and checks what a key may do and reach."""

from collections.abc import Collection, Sequence

from svc_daemon.core import readiness
from svc_daemon.core.access import api_keys
from svc_daemon.core.access.model_ids import is_allowed
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows.buckets import BucketRow, find_cascade, get_bucket
from svc_daemon.store.rows.keys import KeyRow, find_key
from svc_daemon.store.rows.sources.sources import SourceRow, find_source, find_sources
from svc_daemon.store.rows.tasks import TaskRow, get_task
from svc_daemon.store.rows.tombstones import find_successors
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.tasks import REBUILD


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


def get_reachable_bucket(connection: Connection, key: KeyRow, bucket: str) -> BucketRow:
    """Find a bucket by id or slug, whatever its status. Raises NotFound, also if the key can't reach it."""
    found = get_bucket(connection, key.team_id, bucket)
    if not key.reaches([found.id]):
        raise NotFound(ErrorCode.BUCKET_NOT_FOUND, f"There is no bucket {bucket!r}.", bucket=bucket)
    return found


def get_usable_bucket(connection: Connection, key: KeyRow, bucket: str) -> BucketRow:
    """Return an active bucket that the key can reach; raises NotFound."""
    found = get_reachable_bucket(connection, key, bucket)
    if found.status != readiness.ACTIVE:
        raise _not_usable(found, bucket)
    return found


def get_lasting_bucket(connection: Connection, key: KeyRow, bucket: str) -> BucketRow:
    """Return an active or archived bucket that the key can reach; raises NotFound."""
    found = get_reachable_bucket(connection, key, bucket)
    if found.status == readiness.DELETING:
        raise _not_usable(found, bucket)
    return found


def get_reachable_source(connection: Connection, key: KeyRow, source_id: str) -> SourceRow:
    """Return a source in a bucket that the key can reach.

    Raises NotFound, with the id of the source that has replaced this one if the key can reach that source.
    """
    source = find_source(connection, key.team_id, source_id)
    if source is not None and key.reaches(source.places):
        return source
    successors = find_reachable_successors(connection, key, [source_id]) if source is None else {}
    details = {"replaced_by": successors[source_id]} if source_id in successors else {}
    raise NotFound(ErrorCode.SOURCE_NOT_FOUND, f"There is no source {source_id!r}.", **details)


def find_reachable_successors(connection: Connection, key: KeyRow, source_ids: Sequence[str]) -> dict[str, str]:
    """Map the id of each replaced source to the id of its latest replacement, if the key can reach that."""
    found = find_successors(connection, key.team_id, source_ids)
    if not key.is_limited:
        return found
    rows = find_sources(connection, key.team_id, list(found.values()))
    return {old: new for old, new in found.items() if new in rows and key.reaches(rows[new].places)}


def get_changeable_source(connection: Connection, key: KeyRow, source_id: str) -> SourceRow:
    """Return a source that the key may change, because the key can reach all of the source's buckets.

    Raises NotFound if the key can reach none of the buckets, and `forbidden_project_key` if it can reach only some.
    """
    source = get_reachable_source(connection, key, source_id)
    refuse_out_of_reach(key, source.places, "source", api_keys.FILE_CREATE)
    return source


def get_reachable_task(connection: Connection, key: KeyRow, task_id: str) -> TaskRow:
    """Return a task; raises NotFound.

    A key limited to some buckets sees only rebuilds and the tasks of these buckets and their sources.
    """
    task = get_task(connection, key.team_id, task_id)
    if not key.is_limited or task.type == REBUILD:
        return task
    cascade = find_cascade(connection, task.id)
    if cascade is not None and key.reaches([cascade.bucket_id]):
        return task
    source = find_source(connection, key.team_id, task.source_id or "")
    if source is None or not key.reaches(source.places):
        raise NotFound(ErrorCode.TASK_NOT_FOUND, f"There is no task {task_id!r}.")
    return task


def refuse_out_of_reach(key: KeyRow, bucket_ids: Collection[str], noun: str, capability: str) -> None:
    """Raise `forbidden_project_key` unless the key can reach all of these buckets."""
    if not key.reaches_all(bucket_ids):
        raise ServiceError(
            ErrorCode.FORBIDDEN_PROJECT_KEY,
            f"The {noun} is also in buckets that this key can't reach; this needs a key that reaches all of them.",
            required_capability=capability,
        )


def _not_usable(found: BucketRow, bucket: str) -> NotFound:
    return NotFound(
        ErrorCode.BUCKET_NOT_FOUND, f"The bucket {bucket!r} is {found.status}.", bucket=bucket, status=found.status
    )
