"""Finds the buckets, sources and tasks that a key can reach and use; all others are reported as missing."""

from collections.abc import Sequence

from svc_daemon.core import readiness
from svc_daemon.core.access import api_keys
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound
from svc_daemon.operations.shared.authorization import refuse_out_of_reach
from svc_daemon.store.rows.buckets import BucketRow, find_cascade, get_bucket
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sources.sources import SourceRow, find_source, find_sources
from svc_daemon.store.rows.tasks import TaskRow, get_task
from svc_daemon.store.rows.tombstones import find_successors
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.tasks import REBUILD


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


def _not_usable(found: BucketRow, bucket: str) -> NotFound:
    return NotFound(
        ErrorCode.BUCKET_NOT_FOUND, f"The bucket {bucket!r} is {found.status}.", bucket=bucket, status=found.status
    )
