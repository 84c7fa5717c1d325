"""Stores an uploaded file: checks the limits, stores the bytes, then writes the database rows.

If the daemon crashes before the rows are committed, its next start moves the file aside.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from svc_daemon.core import ids, lanes, readiness
from svc_daemon.core.access import api_keys
from svc_daemon.core.idempotency import fingerprint
from svc_daemon.core.shortages import ShortageKind
from svc_daemon.core.uploads.source_fields import Description
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import CommitUnknown, ServiceError, StorageError
from svc_daemon.extract.documents import may_share_a_child
from svc_daemon.operations.remove.source_deletions import remove_replaced
from svc_daemon.operations.shared.authorization import require
from svc_daemon.operations.shared.destination_buckets import Destination, settle_buckets
from svc_daemon.operations.shared.events import record_events, source_event
from svc_daemon.operations.shared.idempotency import Creation, replaying, store_answer
from svc_daemon.operations.shared.reachable_rows import get_reachable_source
from svc_daemon.operations.shared.response_objects import view_source
from svc_daemon.process.contexts import Context
from svc_daemon.store.files.contract import StagedBytes
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sources.memberships import SyncClaim, create_memberships
from svc_daemon.store.rows.sources.sources import SourceRow, create_sources, list_replacing, update_state
from svc_daemon.store.rows.tasks import TaskRow, create_tasks
from svc_daemon.wire.events import EventType
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.tasks import INDEXING

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileUpload(Description):
    """The fields of an uploaded file's source, already checked."""

    filename: str
    content_type: str
    #: The content type that the sender declared.
    declared_type: str | None = None
    #: The SHA-256 that the sender declared, in hex.
    sha256: str | None = None


async def create_file(
    context: Context, request: Creation, destination: Destination, upload: FileUpload, staged: StagedBytes
) -> Creation:
    """Store the file in the destination's buckets and queue its indexing. Raises ServiceError if the upload is refused.

    A repeated request gets the response of the first request. If the staged file is kept, it is the source's blob.
    """
    check_bytes(upload, staged)
    async with replaying(context, request) as earlier:
        if earlier is not None:
            return earlier
        if upload.replaces is not None:
            context.read(lambda connection: check_replaces(connection, request.key, destination.ids, upload.replaces))
        await admit(context, request.key.team_id, staged.size_bytes)
        source = new_source(context, request.key.team_id, upload, size_bytes=staged.size_bytes, sha256=staged.sha256)
        return await keep_source(
            context,
            staged,
            source,
            lambda connection: commit_source(connection, context, request, destination, source),
        )


def check_bytes(upload: FileUpload, staged: StagedBytes) -> None:
    """Raise `empty_file` or `checksum_mismatch` if the bytes are wrong."""
    if staged.size_bytes == 0:
        raise ServiceError(ErrorCode.EMPTY_FILE, f"{upload.filename} has no bytes.")
    if upload.sha256 is not None and upload.sha256 != staged.sha256:
        raise ServiceError(ErrorCode.CHECKSUM_MISMATCH, expected=upload.sha256, actual=staged.sha256)


def check_replaces(connection: Connection, key: KeyRow, bucket_ids: Collection[str], replaces: str | None) -> None:
    """Raise an error unless the key may delete the source to be replaced, and one of the buckets has that source."""
    if replaces is None:
        return
    require(key, api_keys.SOURCE_DELETE)
    if not set(bucket_ids) & set(get_reachable_source(connection, key, replaces).places):
        raise ServiceError(ErrorCode.SOURCE_NOT_FOUND, f"The source {replaces!r} is not a member of the bucket.")


async def admit(context: Context, team_id: str, size_bytes: int) -> None:
    """Check disk space, rate limits and quota; raises `storage_full`, `upload_rate_limited`, `quota_exceeded`."""
    check_room(context)
    await context.rate_limits.charge_create(team_id, size_bytes)


def check_room(context: Context) -> None:
    """Raise `storage_full` if too little disk space is free. Without a reserve, even deletes could fail."""
    if not context.blobs.has_room(context.limits.free_disk_bytes):
        # Record it even if no task waits, so that monitoring shows it.
        context.shortages.note(ShortageKind.RESERVE)
        raise StorageError("The disk is nearly full: uploads are refused, so that deletes still work.")


async def commit_blobs(context: Context, names: Sequence[str], commit: Callable[[Connection], T]) -> T:
    """Commit the rows of files that are already durable. If the commit fails, remove the files."""
    try:
        return await context.write(commit)
    except (asyncio.CancelledError, CommitUnknown):
        # The commit may have succeeded, so keep the files. The next start moves unused files aside.
        raise
    except BaseException:
        await context.blobs.drop(names)
        raise


async def keep_source(context: Context, staged: StagedBytes, source: SourceRow, commit: Callable[[Connection], T]) -> T:
    """Make the staged bytes durable, then commit their rows. If the commit fails, remove the bytes."""
    with context.upload_priority.uploading():
        await staged.keep(source.blob_name)
        outcome = await commit_blobs(context, [source.blob_name], commit)
    context.wakes.indexing.set()
    if source.replaces is not None:
        context.wakes.sweeping.set()
    return outcome


def commit_source(
    connection: Connection, context: Context, request: Creation, destination: Destination, source: SourceRow
) -> Creation:
    """Store the source, its buckets, its task and the response for repeated requests."""
    bucket_ids = settle_buckets(connection, context, request.key, destination)
    check_replaces(connection, request.key, bucket_ids, source.replaces)
    placed = replace(source, places=queued_in(bucket_ids))
    add_sources(connection, context, [placed])
    queued = source_event(EventType.SOURCE_QUEUED, placed, key_id=request.key.id)
    record_events(connection, context.ids, placed.team_id, [queued])
    body = view_source(placed, request.key)
    return store_answer(connection, context, request, body)


def add_sources(connection: Connection, context: Context, sources: Sequence[SourceRow]) -> None:
    """Insert new sources, with their buckets and indexing tasks. Their files must already be durable.

    The caller records the sources' events.
    """
    _insert(connection, context, [source for source in sources if source.replaces is None], len(sources))
    for source in sources:
        if source.replaces is None:
            continue
        _insert(connection, context, [source], len(sources))
        # Other unfinished sources may be replacing the same source. The new source replaces them too.
        for other in list_replacing(connection, source.team_id, source.replaces):
            if other.id != source.id and set(other.places) & set(source.places):
                # `other` leaves the new source's buckets. In its remaining buckets, it no longer replaces anything.
                update_state(connection, replace(other, replaces=None))
                remove_replaced(connection, context, other, source.places, source.id)


def _insert(connection: Connection, context: Context, sources: Sequence[SourceRow], together: int) -> None:
    if not sources:
        return
    create_tasks(connection, [new_indexing_task(context, source, together) for source in sources])
    create_sources(connection, sources)
    claims = [
        SyncClaim(source_id=source.id, bucket_id=bucket_id, team_id=source.team_id)
        for source in sources
        for bucket_id in source.places
    ]
    create_memberships(connection, claims, sources[0].created_at)


def queued_in(bucket_ids: Collection[str]) -> dict[str, str]:
    """Map each bucket's id to the status `queued`, oldest bucket first, as in `SourceRow.places`."""
    return dict.fromkeys(sorted(bucket_ids), readiness.QUEUED)


def new_indexing_task(context: Context, source: SourceRow, together: int = 1) -> TaskRow:
    """Build the task that indexes the source; `together` is how many sources are created at once."""
    if source.task_id is None:
        raise ValueError(f"{source.id} names no task")
    is_small = may_share_a_child(source.filename, source.content_type, source.size_bytes)
    return TaskRow(
        id=source.task_id,
        team_id=source.team_id,
        type=INDEXING,
        source_id=source.id,
        max_attempts=context.limits.task_attempts,
        created_at=source.updated_at,
        lane=lanes.choose(is_small=is_small, together=together),
        trace=context.traces.current(),
    )


def new_source(
    context: Context,
    team_id: str,
    upload: FileUpload,
    *,
    size_bytes: int,
    sha256: str,
    new_ids: tuple[str, str] | None = None,
    bucket_ids: Collection[str] = (),
    batch_id: str | None = None,
) -> SourceRow:
    """Build the row of a new source. `new_ids` are the source's id and its task's id, if already chosen."""
    now = context.clock.timestamp()
    source_id, task_id = new_ids or (context.ids.make(ids.SOURCE), context.ids.make(ids.TASK))
    return SourceRow(
        id=source_id,
        team_id=team_id,
        type=readiness.FILE,
        filename=upload.filename,
        content_type=upload.content_type,
        size_bytes=size_bytes,
        sha256=sha256,
        **upload.description(),
        batch_id=batch_id,
        places=queued_in(bucket_ids),
        task_id=task_id,
        task_type=INDEXING,
        task_status="queued",
        created_at=now,
        updated_at=now,
    )


def file_fingerprint(destination: Destination, upload: FileUpload, staged: StagedBytes) -> str:
    """Return the fingerprint by which a repeated request to create this file is recognized."""
    named = (destination.identity, staged.sha256, upload.filename)
    return fingerprint("declared", *named, upload.declared_type, upload.title, *upload.meaning())
