"""The steps of an indexing task: a worker claims the task, then completes it, fails it or queues it again.

Each step is one transaction. If the source was deleted or the worker's lease has expired, a step changes nothing.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from svc_daemon.core import lanes, readiness, task_retries
from svc_daemon.core.text.chunking import READER_VERSION, Extraction
from svc_daemon.core.times import from_text
from svc_daemon.databases.contract import Connection, Exclusive
from svc_daemon.errors import stored_error
from svc_daemon.extract.documents import WAVE_DOCUMENTS
from svc_daemon.operations.index.documents import IndexEntry
from svc_daemon.operations.index.extraction import SourceReading, list_chunkings
from svc_daemon.operations.index.syncing import take_place
from svc_daemon.operations.shared.events import record_events, source_event
from svc_daemon.operations.shared.leases import UNREADABLE, abandon, latest_lease_s, lease_end_s
from svc_daemon.operations.shared.outcomes import record_outcomes
from svc_daemon.process.contexts import Context
from svc_daemon.process.indexing_scheduler import IndexingScheduler
from svc_daemon.store.rows.buckets import touch_buckets, touch_buckets_of
from svc_daemon.store.rows.events import NewEvent
from svc_daemon.store.rows.sources.detachments import create_detachment, list_detached
from svc_daemon.store.rows.sources.memberships import activate_memberships, schedule_syncs
from svc_daemon.store.rows.sources.recognized_pages import has_progress
from svc_daemon.store.rows.sources.sources import (
    SourceRow,
    find_again,
    find_source,
    find_sources,
    update_state,
    update_statuses,
)
from svc_daemon.store.rows.tasks import (
    TaskQueue,
    TaskRow,
    claim_tasks,
    finish_task,
    is_held,
    list_expired,
    list_waiting,
    list_waiting_teams,
    park_task,
    retry_task,
    succeed_task,
)
from svc_daemon.wire.events import EventType
from svc_daemon.wire.light.error_codes import SourceErrorCode
from svc_daemon.wire.sources import SourceError
from svc_daemon.wire.tasks import CASCADE, INDEXING, REBUILD, TEAM_REMOVAL

#: Maximum size in bytes of a wave: the documents that one child process reads together.
WAVE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class IndexingClaim:
    """An indexing task and its source, as they were when this worker claimed the task."""

    task: TaskRow
    reading: SourceReading

    @property
    def source(self) -> SourceRow:
        return self.reading.source


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A claimed document that is now in the index."""

    claim: IndexingClaim
    extraction: Extraction
    entry: IndexEntry


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt to index a document failed."""

    code: SourceErrorCode
    message: str
    retryable: bool

    def as_error(self) -> SourceError:
        return stored_error(self.code, self.message, retryable=self.retryable)


async def claim_indexing(
    context: Context, scheduler: IndexingScheduler, most: int = WAVE_DOCUMENTS
) -> list[IndexingClaim] | None:
    """Claim indexing tasks of one team for one child process: up to `most` small documents, or a large one.

    `scheduler` decides which queue and team come next. Returns None if no document is waiting. The list is empty
    if the tasks were canceled meanwhile.
    """
    now = context.clock.timestamp()

    def find(connection: Connection) -> list[str]:
        for lane, team_ids in list_waiting_teams(connection, INDEXING, scheduler.lanes()).items():
            for team_id in scheduler.teams(lane, team_ids):
                queue = TaskQueue(type=INDEXING, lane=lane, team_id=team_id)
                waiting = list_waiting(connection, queue, now, most if lane in lanes.WAVES else 1)
                if waiting:
                    count = lanes.fill([size_bytes for _, size_bytes in waiting], WAVE_BYTES)
                    return [task_id for task_id, _ in waiting[:count]]
        return []

    # Find the tasks in a read first, because only claiming them needs a commit.
    found = context.read(find)
    if not found:
        return None
    submitted = context.database.submit(Exclusive(lambda connection: _claim(connection, context, found)))
    claiming = asyncio.wrap_future(submitted)
    try:
        claims = await asyncio.shield(claiming)
    except UNREADABLE:
        if len(found) > 1:
            return await claim_indexing(context, scheduler, 1)
        await abandon(context, found[0])
        return []
    except asyncio.CancelledError:
        # The claim may still be committed, so put its tasks back into the queue.
        await park_indexing(context, await claiming)
        raise
    context.followers.wake()
    return claims


def _claim(connection: Connection, context: Context, task_ids: Sequence[str]) -> list[IndexingClaim]:
    """Claim the given tasks, all of one team, if they are still queued."""
    now = context.clock.timestamp()
    tasks = claim_tasks(connection, task_ids, now, lease_end_s(context))
    if not tasks:
        return []
    team_id, source_ids = tasks[0].team_id, [task.source_id or "" for task in tasks]
    update_statuses(connection, team_id, source_ids, readiness.INDEXING, now)
    sources = find_sources(connection, team_id, source_ids)
    for source_id in sources.keys() & {task.source_id for task in tasks if task.token > 1}:
        # An earlier attempt may have stored its text in the index. Only a higher generation replaces that text.
        retried = sources[source_id]
        sources[source_id] = replace(retried, generation=retried.generation + 1)
        update_state(connection, sources[source_id])
    touch_buckets(connection, (bucket_id for source in sources.values() for bucket_id in source.places))
    chunkings, claims = list_chunkings(connection, list(sources.values())), []
    for task in tasks:
        source = sources.get(task.source_id or "")
        if source is None:
            finish_task(connection, task, "canceled", now)
        else:
            claims.append(IndexingClaim(task, SourceReading(source, chunkings[source.id])))
    begun = [source_event(EventType.SOURCE_INDEXING, claim.source) for claim in claims]
    record_events(connection, context.ids, team_id, begun)
    return claims


def note_progress(context: Context, claim: IndexingClaim, chunks: int) -> None:
    """Record how many chunks of the document are being indexed. The worker forgets it when the task ends."""
    context.progress[claim.task.id, claim.task.token] = chunks


async def complete_indexing(context: Context, documents: Sequence[IndexedDocument]) -> list[IndexedDocument]:
    """Complete the tasks of these documents, which are now in the index. All documents must be of one team.

    Returns the documents whose tasks this worker no longer holds. These tasks are not changed.
    """
    team_id = documents[0].claim.source.team_id
    stale, ready, wakes = await context.write(
        Exclusive(lambda connection: _complete(connection, context, team_id, documents))
    )
    now = context.clock.now()
    for task in (document.claim.task for document in documents if document.claim.source.id in ready):
        context.metrics.ready_s.add((now - from_text(task.created_at)).total_seconds())
        context.traces.record_task(task, now)
    for wake in wakes:
        wake.set()
    context.wakes.note_unembedded(team_id)
    return stale


def _complete(
    connection: Connection, context: Context, team_id: str, documents: Sequence[IndexedDocument]
) -> tuple[list[IndexedDocument], set[str], set[asyncio.Event]]:
    """Complete the tasks. Returns documents whose claim was lost, ids of sources now ready, and events to set."""
    now, wakes = context.clock.timestamp(), set[asyncio.Event]()
    source_ids = [document.claim.source.id for document in documents]
    sources = find_again(connection, team_id, [document.claim.source for document in documents])
    detached = list_detached(connection, source_ids)
    chunkings = list_chunkings(connection, list(sources.values()))
    stale, synced, unsynced = [], list[SourceRow](), list[SourceRow]()
    active: dict[str, SourceRow] = {}
    for document in documents:
        claim, source = document.claim, sources.get(document.claim.source.id)
        chunks = len(document.extraction.chunks)
        if source is None or not succeed_task(connection, claim.task, "bucket_sync", chunks, now):
            stale.append(document)
            continue
        rechunk = chunkings[source.id] != claim.reading.chunking
        active[source.id] = indexed(source, document.extraction, now, rechunk=rechunk)
        update_state(connection, active[source.id])
        is_current = document.entry.is_current(source)
        if not is_current:
            # The title or the buckets in the index are outdated, so schedule an update.
            create_detachment(connection, team_id, source.id)
        is_synced = is_current and source.id not in detached and not source.in_maintenance
        (synced if is_synced else unsynced).append(source)
        wakes |= {context.wakes.rechunking} if rechunk else set()
    events = [source_event(EventType.SOURCE_ACTIVE, source) for source in active.values()]
    # Record these events now, unless `_make_ready` can record them together with its own events.
    if not synced or any(source.replaces for source in synced):
        record_events(connection, context.ids, team_id, events)
        events = []
    activate_memberships(connection, [source.id for source in synced])
    wakes |= _make_ready(connection, context, [active[source.id] for source in synced], events)
    for source in unsynced:
        schedule_syncs(connection, source.id, now)
        wakes.add(context.wakes.syncing)
    touch_buckets(connection, (bucket_id for source in (*synced, *unsynced) for bucket_id in source.places))
    return stale, {source.id for source in synced}, wakes


def _make_ready(
    connection: Connection, context: Context, sources: Sequence[SourceRow], earlier: Sequence[NewEvent]
) -> set[asyncio.Event]:
    """Record the `earlier` events, and then that these sources are ready. Remove the sources that they replace.

    Returns the events that wake workers after the commit; schedules begin when their sources are ready.
    """
    wakes = set[asyncio.Event]()
    for source in sources:
        if source.replaces is not None:
            for bucket_id in source.places:
                take_place(connection, context, source.team_id, source.id, bucket_id)
            wakes.add(context.wakes.sweeping)
        if source.webhook is not None:
            wakes.add(context.wakes.delivering)
    if wakes:
        # Leave out sources that another of these sources has just replaced.
        found = find_sources(connection, sources[0].team_id, [source.id for source in sources])
        sources = [found[source.id] for source in sources if source.id in found]
    record_outcomes(connection, context, sources, earlier)
    return wakes | {context.wakes.refreshing for source in sources if source.refresh is not None}


async def queue_kept(context: Context, documents: Sequence[IndexedDocument]) -> None:
    """Queue documents again that the index did not store, because it already has a later generation of them.

    This happens after an older state database was restored.
    """

    def work(connection: Connection) -> None:
        for document in documents:
            if (source := _held_source(connection, document.claim)) is not None:
                # The next claim increments the generation, so that the index accepts the document.
                kept = max(document.entry.kept_generation or 0, source.generation)
                update_state(connection, replace(source, generation=kept))
                put_back(connection, context, document.claim.task)

    await context.write(work)
    context.wakes.indexing.set()


async def fail_indexing(context: Context, failures: Sequence[tuple[IndexingClaim, Failure]], jitter: float) -> None:
    """Schedule another attempt for each task. If no attempt is left, or a retry can't help, the task's source fails."""

    def work(connection: Connection) -> list[tuple[TaskRow, Failure]]:
        held = [(each, source) for each in failures if (source := _held_source(connection, each[0])) is not None]
        ends = [_end_attempt(connection, context, each[0].task, source, each[1], jitter) for each, source in held]
        return [(each[0].task, end) for (each, _), end in zip(held, ends, strict=True) if end is not None]

    for task, final in await context.write(Exclusive(work)):
        context.metrics.failures[final.code] += 1
        context.traces.record_task(task, context.clock.now(), final.code)
    context.wakes.indexing.set()
    context.wakes.delivering.set()


async def park_indexing(
    context: Context, claims: Sequence[IndexingClaim], pause_s: float | None = None, lane: str | None = None
) -> None:
    """Queue the tasks again without counting an attempt, in the queue `lane` and after `pause_s` seconds, if given."""
    due_at = None if pause_s is None else context.clock.timestamp(pause_s)

    def work(connection: Connection) -> None:
        held = [(claim.task, source) for claim in claims if (source := _held_source(connection, claim)) is not None]
        for task, _ in held:
            park_task(connection, task, due_at, lane)
        _mark_queued(connection, context, [source for _, source in held])

    await context.write(Exclusive(work))
    context.wakes.indexing.set()


def put_back(connection: Connection, context: Context, task: TaskRow, lane: str | None = None, deaths: int = 0) -> None:
    """Queue the task again without counting an attempt. The worker's current claim becomes invalid."""
    park_task(connection, task, lane=lane, deaths=deaths)
    if (source := find_source(connection, task.team_id, task.source_id or "")) is not None:
        _mark_queued(connection, context, [source])


async def release_expired(context: Context, now_s: float) -> int:
    """Requeue the tasks whose lease has ended by `now_s`; infinity requeues all. Returns how many."""
    latest_s = latest_lease_s(context, now_s)

    def work(connection: Connection) -> int:
        tasks = list_expired(connection, now_s, latest_s)
        for task in tasks:
            if task.type in (CASCADE, REBUILD, TEAM_REMOVAL):
                # No document can have caused the crash, so don't count an attempt.
                park_task(connection, task)
                continue
            source = find_source(connection, task.team_id, task.source_id or "")
            if source is None:
                finish_task(connection, task, "canceled", context.clock.timestamp())
            elif has_progress(connection, task):
                put_back(connection, context, task, lanes.SCAN)
            elif task.deaths + 1 >= task_retries.MOST_DEATHS:
                message = f"The service stopped {task_retries.MOST_DEATHS} times in the middle of this document."
                final = Failure(SourceErrorCode.MAX_ATTEMPTS_EXHAUSTED, message, retryable=True)
                _fail(connection, context, task, source, final)
            else:
                # Any of several documents may have caused the crash, so read each in its own child process next time.
                put_back(connection, context, task, lanes.SUSPECT, deaths=1)
        return len(tasks)

    if not context.read(lambda connection: list_expired(connection, now_s, latest_s)):
        return 0
    released = await context.write(work)
    for name in ("indexing", "cascading", "rebuilding", "removing", "delivering"):
        context.wakes.shared()[name].set()
    return released


def _held_source(connection: Connection, claim: IndexingClaim) -> SourceRow | None:
    """Return the source's current row, or None if the source was deleted or the worker no longer holds the task."""
    return find_source(connection, claim.source.team_id, claim.source.id) if is_held(connection, claim.task) else None


def indexed(source: SourceRow, extraction: Extraction, now: str, *, rechunk: bool) -> SourceRow:
    """Return the source's row with the status `active` and the facts about its extracted text."""
    return replace(
        source,
        status=readiness.ACTIVE,
        content_type=extraction.content_type,
        error=None,
        rechunk=rechunk,
        reader=READER_VERSION,
        warnings=extraction.warnings,
        extraction=extraction.facts,
        updated_at=now,
    )


def _end_attempt(
    connection: Connection, context: Context, task: TaskRow, source: SourceRow, failure: Failure, jitter: float
) -> Failure | None:
    """Queue the task again or, after the last attempt, let the source fail. Returns the final failure, if any."""
    if failure.retryable and has_progress(connection, task):
        # An attempt that has recognised a page of a scan isn't counted.
        put_back(connection, context, task, lanes.SCAN)
        return None
    if task_retries.is_last(task.attempt, task.max_attempts, retryable=failure.retryable):
        final = failure
        if failure.retryable:
            message = f"{failure.message} ({task.attempt} attempts)"
            final = Failure(SourceErrorCode.MAX_ATTEMPTS_EXHAUSTED, message, retryable=True)
        _fail(connection, context, task, source, final)
        return final
    pause_s = task_retries.pause_s(task.attempt, jitter)
    retry_task(connection, task, context.clock.timestamp(pause_s), failure.as_error())
    _move(connection, context, source, readiness.QUEUED)
    record_events(connection, context.ids, source.team_id, [source_event(EventType.SOURCE_QUEUED, source)])
    return None


def _fail(connection: Connection, context: Context, task: TaskRow, source: SourceRow, final: Failure) -> None:
    finish_task(connection, task, "failed", context.clock.timestamp(), final.as_error())
    _move(connection, context, source, readiness.FAILED, final.as_error())
    record_outcomes(connection, context, [replace(source, status=readiness.FAILED, error=final.as_error())])


def _move(
    connection: Connection, context: Context, source: SourceRow, status: str, error: SourceError | None = None
) -> None:
    moved = replace(source, status=status, error=error, reader=READER_VERSION, updated_at=context.clock.timestamp())
    update_state(connection, moved)
    touch_buckets_of(connection, source.id)


def _mark_queued(connection: Connection, context: Context, sources: Sequence[SourceRow]) -> None:
    """Set the status of these sources back to `queued`."""
    for team_id in {source.team_id for source in sources}:
        ours = [source.id for source in sources if source.team_id == team_id]
        update_statuses(connection, team_id, ours, readiness.QUEUED, context.clock.timestamp())
        queued = [source_event(EventType.SOURCE_QUEUED, source) for source in sources if source.team_id == team_id]
        record_events(connection, context.ids, team_id, queued)
    touch_buckets(connection, (bucket_id for source in sources for bucket_id in source.places))
