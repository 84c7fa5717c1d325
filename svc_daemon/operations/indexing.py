"""Indexing steps that change the state: claim, complete, fail, park, and release tasks whose worker is gone.

Each is one transaction. The claim has a fencing token: if the claim is stale (the source was deleted, or the lease
expired), a step changes nothing. Progress within a task is kept in memory, and is lost with the process.

Completing makes the source `active`. If the index has the document with exactly the buckets and the title that the
source has by then, its memberships become active in the same transaction, and the source is ready. Otherwise the sync
worker updates the index first. That is so if a bucket was joined or left, or the title changed, since the claim; if an
earlier attempt put the document, whose buckets a second put leaves as they are; if a detachment is pending, whose
update may be on its way to the index with older values; and in maintenance, when every sync waits for the end.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from sqlite3 import Connection
from typing import Any

from svc_daemon.core import readiness, retries
from svc_daemon.core.text.chunking import ChunkingOptions, Extraction
from svc_daemon.errors import stored_error
from svc_daemon.operations.syncing import take_place
from svc_daemon.operations.tasks import claim_next, lease_end_s
from svc_daemon.operations.webhooks import record_event
from svc_daemon.process.contexts import Context, IndexingProgress
from svc_daemon.store.buckets import chunking_of, find_bucket, touch_buckets, touch_buckets_of
from svc_daemon.store.memberships import activate_memberships, schedule_syncs
from svc_daemon.store.sources import SourceRow, find_source, get_source, update_state
from svc_daemon.store.tasks import (
    TaskRow,
    claim_task,
    finish_task,
    is_held,
    list_expired,
    park_task,
    retry_task,
    succeed_task,
)
from svc_daemon.store.tombstones import create_detachment, has_detachment
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
class IndexEntry:
    """What the index has of a document, after it was put there."""

    title: str
    #: None if the index has another generation of the document.
    bucket_ids: Sequence[str] | None

    def is_current(self, source: SourceRow) -> bool:
        """Whether the index has exactly the source's title and buckets."""
        has_its_buckets = self.bucket_ids is not None and set(self.bucket_ids) == set(source.searched_places)
        return has_its_buckets and self.title == source.title


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A claimed document that was put into the index."""

    claim: IndexingClaim
    extraction: Extraction
    entry: IndexEntry


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


def note_progress(context: Context, claim: IndexingClaim, stage: str, chunks: int) -> None:
    """Show the progress while the task runs; `forget_progress` must follow."""
    context.progress[claim.task.id, claim.task.token] = IndexingProgress(stage, chunks)


def forget_progress(context: Context, claim: IndexingClaim) -> None:
    context.progress.pop((claim.task.id, claim.task.token), None)


async def complete_indexing(context: Context, documents: Sequence[IndexedDocument]) -> list[IndexedDocument]:
    """Once the index has the documents, make their sources `active`. Returns those whose claim is stale."""

    def work(connection: Connection) -> tuple[list[IndexedDocument], set[asyncio.Event]]:
        stale, touched, wakes = [], set[str](), set[asyncio.Event]()
        for document in documents:
            source = _complete(connection, context, document, wakes)
            if source is None:
                stale.append(document)
            else:
                touched.update(source.places)
        touch_buckets(connection, touched)
        return stale, wakes

    stale, wakes = await context.write(work)
    for wake in wakes:
        wake.set()
    for team_id in {document.claim.source.team_id for document in documents}:
        context.wakes.note_unembedded(team_id)
    return stale


def _complete(
    connection: Connection, context: Context, document: IndexedDocument, wakes: set[asyncio.Event]
) -> SourceRow | None:
    """Complete one document, and add what to wake. Returns the source as it was, or None if the claim is stale."""
    claim, now = document.claim, context.clock.timestamp()
    source = find_source(connection, claim.source.team_id, claim.source.id)
    chunks = len(document.extraction.chunks)
    if source is None or not succeed_task(connection, claim.task, "bucket_sync", chunks, now):
        return None
    recut = replace(source, rechunk=not is_cut_right(connection, source, claim.reading))
    update_state(connection, indexed(recut, document.extraction, now))
    if recut.rechunk:
        wakes.add(context.wakes.rechunking)
    is_current = document.entry.is_current(source)
    if not is_current or source.in_maintenance or has_detachment(connection, source.id):
        schedule_syncs(connection, source.id, now)
        if not is_current:
            # The index may list a bucket that the source has left, or its old title.
            create_detachment(connection, source.team_id, source.id)
        wakes.add(context.wakes.syncing)
        return source
    activate_memberships(connection, source.id)
    if source.replaces is not None:
        for bucket_id in source.places:
            take_place(connection, context, source.team_id, source.id, bucket_id)
        wakes.add(context.wakes.sweeping)
    if source.webhook is not None:
        record_event(connection, context, get_source(connection, source.team_id, source.id))
        wakes.add(context.wakes.delivering)
    return source


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
