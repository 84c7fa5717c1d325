"""Deletes a bucket: hides it at once, then a background task (a cascade) detaches its sources.

A source that is also in another bucket is not deleted. If some sources can't be deleted, the bucket becomes active
again, and its `lastDeleteError` has the reason.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from svc_daemon.core import ids, readiness, task_retries
from svc_daemon.core.uploads.sessions import FAILED
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.operations.ingest.sessions import get_session
from svc_daemon.operations.remove.source_deletions import delete_source, detach_from
from svc_daemon.operations.shared.batch_items import end_batches
from svc_daemon.operations.shared.events import bucket_event, record_events
from svc_daemon.operations.shared.leases import claim_next, lease_end_s
from svc_daemon.operations.shared.reachable_rows import get_reachable_bucket
from svc_daemon.process.contexts import Context
from svc_daemon.process.locks import session_lock
from svc_daemon.store.rows import buckets, sessions
from svc_daemon.store.rows.buckets import (
    BucketRow,
    Cascade,
    create_cascade,
    find_cascade,
    find_running_cascade,
    get_bucket,
    update_cascade,
)
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sessions import SessionRow
from svc_daemon.store.rows.sources import memberships
from svc_daemon.store.rows.sources.sources import find_source
from svc_daemon.store.rows.tasks import (
    TaskRow,
    create_tasks,
    extend_lease,
    finish_task,
    is_held,
    retry_task,
    update_progress,
)
from svc_daemon.store.rows.vectors import delete_offers_of_bucket
from svc_daemon.wire.events import EventType
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.sources import SourceError
from svc_daemon.wire.tasks import CASCADE

#: Maximum number of sources detached in one step, so that other writes can run between steps.
STEP_LIMIT = 200
#: The name of the task's only stage, shown in its progress.
STAGE = "delete"


async def delete_bucket(context: Context, key: KeyRow, bucket: str, *, force: bool) -> tuple[BucketRow, Cascade]:
    """Mark the bucket as `deleting`, and queue the task that detaches its sources.

    Raises `bucket_not_found`, `force_required` and `delete_in_progress`.
    """

    def work(connection: Connection) -> tuple[BucketRow, Cascade]:
        found = get_reachable_bucket(connection, key, bucket)
        if not force:
            raise ServiceError(
                ErrorCode.FORCE_REQUIRED,
                f"Deleting {found.slug!r} deletes the sources that have no other bucket; confirm with force=true.",
                member_count=memberships.count_members(connection, found.id),
            )
        running = find_running_cascade(connection, found.id)
        if running is not None:
            raise ServiceError(
                ErrorCode.DELETE_IN_PROGRESS,
                f"The bucket {found.slug!r} is being deleted.",
                task_id=running.task_id,
                retry_after_seconds=1,
            )
        buckets.mark_deleting(connection, found, context.clock.timestamp())
        hidden = bucket_event(EventType.BUCKET_UPDATED, replace(found, status=readiness.DELETING), key.id)
        record_events(connection, context.ids, found.team_id, [hidden])
        return found, queue_cascade(connection, context, found)

    deletion = await context.write(work)
    context.wakes.cascading.set()
    return deletion


def queue_cascade(connection: Connection, context: Context, bucket: BucketRow) -> Cascade:
    """Queue the task that detaches the sources of this bucket, whose status must be `deleting`."""
    task = TaskRow(
        id=context.ids.make(ids.TASK),
        team_id=bucket.team_id,
        type=CASCADE,
        source_id=None,
        max_attempts=context.limits.task_attempts,
        created_at=context.clock.timestamp(),
    )
    total = memberships.count_members(connection, bucket.id)
    cascade = Cascade(task_id=task.id, team_id=bucket.team_id, bucket_id=bucket.id, total=total)
    create_tasks(connection, [task])
    create_cascade(connection, cascade)
    return cascade


async def claim_cascade(context: Context) -> TaskRow | None:
    """Claim a bucket deletion that is due. Returns None if no deletion is due."""
    return await claim_next(context, CASCADE, STAGE)


def next_members(context: Context, task: TaskRow) -> list[str]:
    """Return the ids of the sources to detach next.

    The list is empty if no source is left, or if the claim has expired.
    """

    def work(connection: Connection) -> list[str]:
        now = _held(connection, task)
        return memberships.list_member_ids(connection, now.bucket_id, now.after_id, STEP_LIMIT) if now else []

    return context.read(work)


async def detach_members(context: Context, task: TaskRow, source_ids: Sequence[str]) -> None:
    """Detach these sources from the bucket, and delete those that have no other bucket.

    Does nothing if the claim has expired.
    """

    def work(connection: Connection) -> None:
        now = _held(connection, task)
        if now is None:
            return
        gone = [_detach(connection, context, now, source_id) for source_id in source_ids]
        counted = replace(now, deleted=now.deleted + sum(gone), detached=now.detached + len(gone) - sum(gone))
        _note(connection, context, task, replace(counted, after_id=source_ids[-1]))

    await context.write(work)
    context.wakes.sweeping.set()
    context.wakes.syncing.set()


async def skip_member(context: Context, task: TaskRow, source_id: str, reason: str) -> None:
    """Record that a source can't be deleted and stays in the bucket."""

    def work(connection: Connection) -> None:
        now = _held(connection, task)
        if now is not None:
            skipped = replace(now, failed=now.failed + 1, after_id=source_id, reason=reason)
            _note(connection, context, task, skipped)

    await context.write(work)


async def end_sessions(context: Context, task: TaskRow) -> None:
    """Cancel the upload sessions that have only this bucket, and remove the bucket from other sessions."""
    cascade, after_id = context.read(partial(find_cascade, task_id=task.id)), ""
    if cascade is None:
        return
    bucket_id = cascade.bucket_id
    refusal = NotFound(ErrorCode.BUCKET_NOT_FOUND, "The bucket was deleted.").as_error()
    while found := context.read(lambda c: sessions.list_open_of_bucket(c, bucket_id, after_id, STEP_LIMIT)):  # noqa: B023
        for session in found:
            others = [other for other in session.bucket_ids if other != bucket_id]
            if others:
                await context.write(partial(sessions.update_buckets, session_id=session.id, bucket_ids=others))
            else:
                await end_session(context, session, refusal)
        after_id = found[-1].id


async def finish_cascade(context: Context, task: TaskRow) -> None:
    """End the task: delete the bucket or, if sources are left, make the bucket active again."""

    def work(connection: Connection) -> None:
        now = _held(connection, task)
        if now is not None:
            _end(connection, context, task, now)

    await context.write(work)
    context.wakes.syncing.set()


async def give_back_cascade(context: Context, task: TaskRow, reason: str, jitter: float) -> None:
    """Schedule another attempt to delete the bucket. If no attempt is left, make the bucket active again."""

    def work(connection: Connection) -> None:
        now = _held(connection, task)
        if now is None:
            return
        if not task_retries.is_last(task.attempt, task.max_attempts, retryable=True):
            pause_s = task_retries.pause_s(task.attempt, jitter)
            retry_task(connection, task, context.clock.timestamp(pause_s), _failed(reason))
            return
        _end(connection, context, task, replace(now, reason=reason))

    await context.write(work)
    context.wakes.cascading.set()
    context.wakes.syncing.set()


def _held(connection: Connection, task: TaskRow) -> Cascade | None:
    """Return the task's current row, or None if the claim has expired."""
    return find_cascade(connection, task.id) if is_held(connection, task) else None


def _detach(connection: Connection, context: Context, cascade: Cascade, source_id: str) -> bool:
    """Detach the source from the bucket. Returns whether this deleted the source."""
    source = find_source(connection, cascade.team_id, source_id)
    if source is None:
        return True
    if source.places:
        detach_from(connection, context, source, cascade.bucket_id)
        return False
    # Name the bucket in the deletion's event; `places` leaves out buckets being deleted.
    delete_source(connection, context, replace(source, places={cascade.bucket_id: readiness.QUEUED}))
    return True


def _note(connection: Connection, context: Context, task: TaskRow, cascade: Cascade) -> None:
    update_cascade(connection, task, cascade)
    done = cascade.deleted + cascade.detached + cascade.failed
    update_progress(connection, task, STAGE, done, cascade.total)
    extend_lease(connection, task, lease_end_s(context))


def _end(connection: Connection, context: Context, task: TaskRow, cascade: Cascade) -> None:
    left = memberships.count_members(connection, cascade.bucket_id)
    # Sources that other requests deleted meanwhile count as deleted too.
    ended = replace(cascade, failed=left, deleted=cascade.total - cascade.detached - left)
    _note(connection, context, task, ended)
    if left:
        now = context.clock.timestamp()
        message = f"{left} of {ended.total} sources could not be deleted: {ended.reason or 'unknown'}"
        buckets.restore_bucket(connection, ended.bucket_id, message, now)
        memberships.renew_syncs(connection, ended.bucket_id, now)
        finish_task(connection, task, "failed", now, _failed(message))
        restored = bucket_event(EventType.BUCKET_UPDATED, get_bucket(connection, cascade.team_id, cascade.bucket_id))
        record_events(connection, context.ids, cascade.team_id, [restored])
        return
    gone = bucket_event(EventType.BUCKET_DELETED, get_bucket(connection, cascade.team_id, cascade.bucket_id))
    record_events(connection, context.ids, cascade.team_id, [gone])
    delete_offers_of_bucket(connection, cascade.bucket_id)
    buckets.delete_bucket(connection, cascade.bucket_id)
    finish_task(connection, task, "succeeded", context.clock.timestamp())


def _failed(message: str) -> SourceError:
    return ServiceError(ErrorCode.INTERNAL_ERROR, message).as_error()


async def end_session(context: Context, session: SessionRow, refusal: SourceError) -> None:
    """End the upload session with this error, and delete its bytes."""

    def work(connection: Connection) -> bool:
        now = get_session(connection, session.id)
        is_ended = sessions.finish_session(connection, now, FAILED, error=refusal)
        end_batches(connection, context, session.team_id, [session.batch_id])
        return is_ended

    try:
        async with context.locks.take_over(session_lock(session.id)):
            if await context.write(work):
                await context.parts.delete(session.id)
    except ServiceError as error:
        if error.code is not ErrorCode.REQUEST_IN_PROGRESS:
            raise
        # Another request is finalizing the session. That request will find the bucket deleted, and end the session.
