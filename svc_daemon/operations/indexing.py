"""Indexing steps that change the state: claim, complete, fail, park, and release tasks whose worker is gone.

Each is one transaction. The attempt number of the claim is the fencing token: if the claim is stale (the source was
deleted, or the lease expired), a step changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from sqlite3 import Connection
from typing import Any

from svc_daemon.core import readiness, retries
from svc_daemon.core.text.chunking import ChunkingOptions, Extraction
from svc_daemon.errors import stored_error
from svc_daemon.operations.tasks import claim_next, lease_end_s
from svc_daemon.operations.webhooks import record_event
from svc_daemon.process.contexts import Context
from svc_daemon.store.buckets import chunking_of, find_bucket, touch_buckets_of
from svc_daemon.store.memberships import schedule_syncs
from svc_daemon.store.sources import SourceRow, find_source, update_state
from svc_daemon.store.tasks import (
    TaskRow,
    claim_task,
    finish_task,
    is_held,
    list_expired,
    park_task,
    retry_task,
    update_progress,
)
from svc_daemon.store.tombstones import create_detachment
from svc_daemon.wire.codes import SourceErrorCode
from svc_daemon.wire.tasks import CASCADE, INDEXING, REBUILD


@dataclass(frozen=True, slots=True)
class SourceReading:
    """A source, and the settings for reading it."""

    source: SourceRow
    #: The chunk sizes of its oldest bucket.
    chunking: ChunkingOptions


@dataclass(frozen=True, slots=True)
class IndexingClaim:
    """A task that this worker has claimed, and the source at the time of the claim."""

    task: TaskRow
    reading: SourceReading

    @property
    def source(self) -> SourceRow:
        return self.reading.source


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed."""

    code: SourceErrorCode
    message: str
    retryable: bool

    def as_error(self) -> dict[str, Any]:
        return stored_error(self.code, self.message, retryable=self.retryable)


async def claim_indexing(context: Context, team_ids: Sequence[str]) -> IndexingClaim | None:
    """Claim the oldest waiting task of the first team in `team_ids` that has one."""

    def take(connection: Connection, task_id: str) -> IndexingClaim | None:
        task = claim_task(connection, task_id, context.clock.timestamp(), lease_end_s(context))
        if task is None:
            return None
        source = find_source(connection, task.team_id, task.source_id or "")
        if source is None:
            finish_task(connection, task, "canceled", context.clock.timestamp())
            return None
        _move(connection, context, source, readiness.INDEXING)
        reading = SourceReading(replace(source, status=readiness.INDEXING), _chunking(connection, source))
        return IndexingClaim(task, reading)

    return await claim_next(context, INDEXING, take, team_ids)


async def note_progress(context: Context, claim: IndexingClaim, stage: str, chunks: int) -> None:
    await context.write(lambda connection: update_progress(connection, claim.task, stage, 0, chunks))


async def complete_indexing(context: Context, claim: IndexingClaim, extraction: Extraction) -> bool:
    """Once the index has the document, make the source `active` and schedule its syncs. False if the claim is stale."""
    now = context.clock.timestamp()

    def work(connection: Connection) -> bool:
        source = _held_source(connection, claim)
        if source is None:
            return False
        chunks = len(extraction.chunks)
        recut = replace(source, rechunk=not is_cut_right(connection, source, claim.reading))
        update_state(connection, indexed(recut, extraction, now))
        update_progress(connection, claim.task, "bucket_sync", chunks, chunks)
        finish_task(connection, claim.task, "succeeded", now)
        schedule_syncs(connection, source.id, now)
        if set(source.places) != set(claim.source.places):
            # The source has left a bucket since the claim, but the index still lists that bucket.
            create_detachment(connection, source.team_id, source.id)
        touch_buckets_of(connection, source.id)
        return True

    held = await context.write(work)
    context.wakes.syncing.set()
    context.wakes.rechunking.set()
    context.wakes.note_unembedded(claim.source.team_id)
    return held


async def fail_indexing(context: Context, claim: IndexingClaim, failure: Failure, jitter: float) -> None:
    """Retry after a pause, or end as `failed` if no attempt is left or the failure is permanent."""

    def work(connection: Connection) -> None:
        source = _held_source(connection, claim)
        if source is not None:
            _give_back(connection, context, claim.task, source, failure, jitter)

    await context.write(work)
    context.wakes.indexing.set()
    context.wakes.delivering.set()


async def park_indexing(context: Context, claim: IndexingClaim, pause_s: float | None = None) -> None:
    """Queue the task again, without counting an attempt, because the process is stopping or short of a resource."""
    due_at = None if pause_s is None else context.clock.timestamp(pause_s)

    def work(connection: Connection) -> None:
        source = _held_source(connection, claim)
        if source is not None:
            park_task(connection, claim.task, due_at)
            _move(connection, context, source, readiness.QUEUED)

    await context.write(work)


async def park_claimed(context: Context) -> None:
    """Queue again all tasks that are still claimed when the worker has stopped, without counting attempts."""

    def work(connection: Connection) -> None:
        for task in list_expired(connection, inf):
            put_back(connection, context, task)

    await context.write(work)


def put_back(connection: Connection, context: Context, task: TaskRow) -> None:
    """Queue the task again, without counting an attempt; its current claim becomes stale."""
    park_task(connection, task)
    source = find_source(connection, task.team_id, task.source_id or "")
    if source is not None:
        _move(connection, context, source, readiness.QUEUED)


async def release_expired(context: Context, now_s: float) -> int:
    """Release tasks whose lease has expired at `now_s` (infinity at boot, to release all). Returns the number."""

    def work(connection: Connection) -> int:
        tasks = list_expired(connection, now_s)
        for task in tasks:
            if task.type in (CASCADE, REBUILD):
                # A bad document can't crash such a task, so it is continued however often it is interrupted.
                park_task(connection, task)
                continue
            source = find_source(connection, task.team_id, task.source_id or "")
            if source is None:
                finish_task(connection, task, "canceled", context.clock.timestamp())
                continue
            # The worker is gone; all that is known is that the attempt did not finish.
            crash = "The service stopped in the middle of this document."
            failure = Failure(SourceErrorCode.EXTRACTION_CRASHED, crash, retryable=True)
            _give_back(connection, context, task, source, failure, jitter=0.0)
        return len(tasks)

    if not context.read(lambda connection: list_expired(connection, now_s)):
        return 0
    released = await context.write(work)
    context.wakes.indexing.set()
    context.wakes.cascading.set()
    context.wakes.rebuilding.set()
    context.wakes.delivering.set()
    return released


def find_reading(connection: Connection, team_id: str, source_id: str) -> SourceReading | None:
    """Find the source and the settings for reading it; None if there is no such source."""
    source = find_source(connection, team_id, source_id)
    return SourceReading(source, _chunking(connection, source)) if source else None


def is_cut_right(connection: Connection, source: SourceRow, reading: SourceReading) -> bool:
    """Whether the source's chunk sizes are still those of this reading."""
    return _chunking(connection, source) == reading.chunking


def _chunking(connection: Connection, source: SourceRow) -> ChunkingOptions:
    oldest = next(iter(source.places), None)
    bucket = find_bucket(connection, source.team_id, oldest) if oldest else None
    return chunking_of(bucket) if bucket else ChunkingOptions()


def _held_source(connection: Connection, claim: IndexingClaim) -> SourceRow | None:
    """Return the source as it is now, or None if the claim is stale or the source is gone."""
    if not is_held(connection, claim.task):
        return None
    return find_source(connection, claim.source.team_id, claim.source.id)


def indexed(source: SourceRow, extraction: Extraction, now: str) -> SourceRow:
    """Return the source's new row, for after the index has the extracted document."""
    return replace(
        source,
        status=readiness.ACTIVE,
        content_type=extraction.content_type,
        error=None,
        warnings=extraction.warnings,
        extraction={
            "characters": len(extraction.text),
            "pages": extraction.pages,
            "pages_without_text": list(extraction.pages_without_text),
            "chunks": len(extraction.chunks),
            "language": extraction.language,
        },
        updated_at=now,
    )


def _give_back(
    connection: Connection, context: Context, task: TaskRow, source: SourceRow, failure: Failure, jitter: float
) -> None:
    if retries.is_last(task.attempt, task.max_attempts, retryable=failure.retryable):
        final = failure
        if failure.retryable:
            message = f"{failure.message} ({task.attempt} attempts)"
            final = Failure(SourceErrorCode.MAX_ATTEMPTS_EXHAUSTED, message, retryable=True)
        finish_task(connection, task, "failed", context.clock.timestamp(), final.as_error())
        _move(connection, context, source, readiness.FAILED, final.as_error())
        record_event(connection, context, replace(source, status=readiness.FAILED, error=final.as_error()))
        return
    pause_s = retries.pause_s(task.attempt, jitter)
    retry_task(connection, task, context.clock.timestamp(pause_s), failure.as_error())
    _move(connection, context, source, readiness.QUEUED)


def _move(
    connection: Connection, context: Context, source: SourceRow, status: str, error: dict[str, Any] | None = None
) -> None:
    update_state(connection, replace(source, status=status, error=error, updated_at=context.clock.timestamp()))
    touch_buckets_of(connection, source.id)
