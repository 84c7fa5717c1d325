"""Rebuilds a team's search index from the stored files, and splits texts again after a change of chunk sizes.

During a rebuild, the team's searches are refused and its sources are not ready. After a crash, the rebuild continues
with the sources that the new index lacks. Where the index itself rebuilds what only searches need, a rebuild waits
for that.

A source whose text is split again stays ready. Searches use the old chunks until the index has all of the new chunks.
The same way, a source is read again that an older version of the readers has read.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from svc_daemon.core import ids, readiness, task_retries
from svc_daemon.core.ids import Ids
from svc_daemon.core.text.chunking import READER_VERSION, Extraction
from svc_daemon.core.times import to_text
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ServiceError
from svc_daemon.operations.index import documents
from svc_daemon.operations.index.extraction import SourceReading, find_reading, list_chunkings
from svc_daemon.operations.index.indexing import indexed, put_back
from svc_daemon.operations.keys import get_team
from svc_daemon.operations.shared.events import maintenance_event, record_events, source_event
from svc_daemon.operations.shared.leases import claim_next
from svc_daemon.operations.sources import requeue
from svc_daemon.process.contexts import Context
from svc_daemon.process.resource_shortages import Short
from svc_daemon.provider.errors import ProviderError
from svc_daemon.store.rows import tasks
from svc_daemon.store.rows.buckets import touch_buckets_of, touch_buckets_of_team
from svc_daemon.store.rows.sources import memberships
from svc_daemon.store.rows.sources.detachments import create_detachment
from svc_daemon.store.rows.sources.memberships import find_next_older, find_next_rechunk
from svc_daemon.store.rows.sources.refreshes import end_swap
from svc_daemon.store.rows.sources.sources import (
    SourceRow,
    find_source,
    find_sources,
    list_active_generations,
    update_state,
)
from svc_daemon.store.rows.tasks import TaskRow, find_last_rebuild, find_open_rebuild
from svc_daemon.wire.events import EventType
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.tasks import INDEXING, REBUILD

log = logging.getLogger(__name__)

#: The stages of a rebuild: remove the old index, then index the documents.
CLEAR, INDEX = "clear", "index"
#: Rebuilds are retried without limit, but clients see no higher attempt number than this.
ATTEMPTS = 3


def queue_rebuild(
    connection: Connection, make_ids: Ids, team: str, due_at: str | None = None, stage: str | None = None
) -> TaskRow:
    """Queue the rebuild of a team's index, or return its open rebuild. `team` is an id or name; raises NotFound.

    Searches are refused at once. A worker begins the rebuild at `due_at`, or immediately if that is None, and
    with this stage, or the first one.
    """
    found = get_team(connection, team)
    running = find_open_rebuild(connection, found.id)
    if running is not None:
        return running
    task = TaskRow(
        id=make_ids.make(ids.TASK),
        team_id=found.id,
        type=REBUILD,
        source_id=None,
        max_attempts=ATTEMPTS,
        stage=stage,
        next_attempt_at=due_at,
        created_at=to_text(make_ids.now()),
    )
    tasks.create_tasks(connection, [task])
    memberships.withdraw_syncs(connection, task.team_id, task.created_at)
    touch_buckets_of_team(connection, task.team_id)
    record_events(connection, make_ids, task.team_id, [maintenance_event("began", task.id)])
    return task


async def rebuild_store(context: Context, team: str) -> TaskRow:
    """Queue the rebuild of a team's index, unless a rebuild is already open. Raises NotFound."""
    task = await context.write(lambda connection: queue_rebuild(connection, context.ids, team))
    context.wakes.rebuilding.set()
    return task


async def rebuild_after(context: Context, team_id: str, last: TaskRow | None) -> None:
    """Queue the rebuild of a team's index, unless another node has done so since the rebuild `last`."""

    def work(connection: Connection) -> None:
        newest = find_last_rebuild(connection, team_id)
        if (newest and newest.id) == (last and last.id):
            queue_rebuild(connection, context.ids, team_id)

    await context.write(work)
    context.wakes.rebuilding.set()


async def claim_rebuild(context: Context) -> TaskRow | None:
    """Claim a rebuild that is due. An interrupted rebuild continues at its last stage."""

    return await claim_next(context, REBUILD, CLEAR, tasks.claim_again)


async def note_cleared(context: Context, task: TaskRow) -> None:
    """Record that the old index was removed, and requeue the indexing tasks that may have written to it."""

    def work(connection: Connection) -> None:
        if not tasks.is_held(connection, task):
            return
        tasks.update_progress(connection, task, INDEX, 0, None)
        for running in tasks.list_running(connection, task.team_id, INDEXING):
            put_back(connection, context, running)

    await context.write(work)
    context.wakes.indexing.set()


async def find_missing(context: Context, task: TaskRow) -> list[str]:
    """List the ids of active sources whose document the new index lacks, and record the progress."""
    held = await asyncio.to_thread(list_generations, context, task.team_id)
    active = await context.read_in_thread(partial(list_active_generations, team_id=task.team_id))
    missing = [source_id for source_id, generations in active.items() if held.get(source_id) not in generations]
    done = len(active) - len(missing)
    await context.write(lambda connection: tasks.update_progress(connection, task, INDEX, done, len(active)))
    return missing


def list_active(context: Context, task: TaskRow, source_ids: Sequence[str]) -> list[SourceReading]:
    """Return the sources that are still active, with their chunk sizes."""

    def work(connection: Connection) -> list[SourceReading]:
        sources = [
            source
            for source in find_sources(connection, task.team_id, source_ids).values()
            if source.status == readiness.ACTIVE
        ]
        chunkings = list_chunkings(connection, sources)
        return [SourceReading(source, chunkings[source.id]) for source in sources]

    return context.read(work)


async def note_read(context: Context, task: TaskRow, read: Sequence[tuple[SourceReading, Extraction]]) -> None:
    """Update the sources' rows, now that the index has their documents."""

    def work(connection: Connection) -> None:
        for reading, extraction in read:
            source = _unchanged(connection, reading)
            now = indexed(source, extraction, context.clock.timestamp(), rechunk=source.rechunk) if source else None
            if source and now and now != replace(source, updated_at=now.updated_at):
                update_state(connection, now)
        tasks.count_progress(connection, task, len(read))

    await context.write(work)


async def requeue_document(context: Context, reading: SourceReading) -> None:
    """Queue a new indexing task, with the full number of attempts, for a document that the rebuild can't read."""

    def work(connection: Connection) -> None:
        source = _unchanged(connection, reading)
        if source is not None:
            requeue(connection, context, source)

    await context.write(work)
    context.wakes.indexing.set()


async def finish_rebuild(context: Context, task: TaskRow) -> None:
    """End the rebuild: allow searches again, and sync sources whose buckets have changed."""

    def work(connection: Connection) -> None:
        tasks.finish_task(connection, task, "succeeded", context.clock.timestamp())
        touch_buckets_of_team(connection, task.team_id)
        record_events(connection, context.ids, task.team_id, [maintenance_event("ended", task.id)])

    await context.write(work)
    context.wakes.syncing.set()
    context.wakes.rechunking.set()
    context.wakes.note_unembedded(task.team_id)


async def give_back_rebuild(context: Context, task: TaskRow, reason: str, jitter: float, *, is_damaged: bool) -> None:
    """Schedule another attempt after a pause. If the new index is damaged too, the attempt starts from scratch."""
    due_at = context.clock.timestamp(task_retries.pause_s(task.attempt, jitter))
    error = ServiceError(ErrorCode.SEARCH_FAILED, reason).as_error()

    def work(connection: Connection) -> None:
        if is_damaged:
            tasks.update_progress(connection, task, CLEAR, 0, None)
        tasks.retry_task(connection, task, due_at, error, is_endless=True)

    await context.write(work)


def _unchanged(connection: Connection, reading: SourceReading) -> SourceRow | None:
    """Return the source's current row, or None if the source is not active or has a newer generation."""
    source = find_source(connection, reading.source.team_id, reading.source.id)
    if source is None or source.status != readiness.ACTIVE or source.generation != reading.source.generation:
        return None
    return source


def list_generations(context: Context, team_id: str) -> dict[str, int]:
    """Return each source's generation in the team's index, by source id; raises ProviderError."""
    return {document.source_id: document.generation for document in context.provider.list_documents(team_id)}


def next_reading(context: Context, after: SourceRow | None) -> SourceReading | None:
    """Return the first source after this one whose text must be split again; None if there is none."""

    def work(connection: Connection) -> SourceReading | None:
        found = find_next_rechunk(connection, after.id if after else "")
        return find_reading(connection, *found) if found else None

    return context.read(work)


def next_older(context: Context, after: SourceRow | None) -> SourceReading | None:
    """Return the first source after this one that an older reader has read; None if there is none."""

    def work(connection: Connection) -> SourceReading | None:
        found = find_next_older(connection, READER_VERSION, (after.reader, after.id) if after else (-1, ""))
        return find_reading(connection, *found) if found else None

    return context.read(work)


def is_indexing_due(context: Context) -> bool:
    """Return whether a source waits to be indexed and could be now."""
    return context.read(lambda connection: tasks.has_due(connection, INDEXING, context.clock.timestamp()))


async def is_read_alike(context: Context, source: SourceRow, extraction: Extraction) -> bool:
    """Return whether the index has the same text in the same chunks already. Raises ProviderError."""
    stored = await asyncio.to_thread(context.provider.get_text, source.team_id, source.id)
    return (
        stored is not None
        and stored.generation == source.generation
        and stored.text == extraction.text
        and [piece.chunk for piece in stored.chunks] == list(extraction.chunks)
    )


async def note_reread(context: Context, reading: SourceReading, extraction: Extraction | None, warning: str) -> None:
    """Record that this version's reader has read the source, while its text in the index stays.

    `extraction` has the same text; without one, the source only gets the warning, if any.
    """

    def work(connection: Connection) -> None:
        source = find_source(connection, reading.source.team_id, reading.source.id)
        if source is None or source.generation != reading.source.generation:
            return
        noted = replace(source, reader=READER_VERSION)
        if extraction is not None and source.status == readiness.ACTIVE:
            noted = indexed(source, extraction, source.updated_at, rechunk=source.rechunk)
        if warning and source.status == readiness.ACTIVE:
            noted = replace(noted, warnings=tuple(dict.fromkeys((*source.warnings, warning))))
        if noted == source:
            return
        update_state(connection, noted)
        if noted.warnings != source.warnings or noted.extraction != source.extraction:
            touch_buckets_of(connection, source.id)

    await context.write(work)


async def retry_failed(context: Context, reading: SourceReading) -> None:
    """Queue a source that an older reader could not read, now that its text was found."""

    def work(connection: Connection) -> None:
        source = find_source(connection, reading.source.team_id, reading.source.id)
        unchanged = source is not None and source.generation == reading.source.generation
        if source is not None and unchanged and source.status == readiness.FAILED:
            requeue(connection, context, replace(source, reader=READER_VERSION))

    await context.write(work)
    context.wakes.indexing.set()


async def begin_rechunk(context: Context, reading: SourceReading) -> SourceReading | None:
    """Give the source its next generation, for its new chunks.

    Returns None if another change of the source is in progress.
    """

    def work(connection: Connection) -> SourceReading | None:
        source = _unchanged(connection, reading)
        if source is None or source.in_maintenance:
            return None
        if readiness.SYNCING in source.places.values():
            # A running sync would fail if the index had the next generation.
            return None
        # Marked to be split again, so that a daemon that is killed meanwhile goes on with this source.
        moved = replace(source, generation=source.generation + 1, valid_from=source.generations.start, rechunk=True)
        update_state(connection, moved)
        return replace(reading, source=moved)

    return await context.write(work)


async def exchange(context: Context, begun: SourceReading, extraction: Extraction) -> bool:
    """Put the text of the source's new generation in the place of its old one. Returns False if the index refused it.

    Raises Short in a shortage. In both cases, the source is still marked to be split.
    """
    try:
        (entry,) = await asyncio.to_thread(documents.put, context, [(begun.source, extraction)])
    except ProviderError as error:
        if await context.shortages.is_cause_of(error):
            raise Short from error
        log.warning("the index did not take the new chunks of %s: %s", begun.source.id, error)
        return False
    await asyncio.to_thread(documents.undo, context, [begun.source])
    if entry.kept_generation is not None:
        # The index kept a later generation, which a restored database doesn't know. Index the document again.
        await requeue_document(context, begun)
        return True
    await finish_rechunk(context, begun, extraction)
    return True


async def finish_rechunk(context: Context, reading: SourceReading, extraction: Extraction) -> None:
    """Record that the index has the source's new chunks.

    If the chunk sizes have changed again, the source is marked to be split once more.
    """

    def work(connection: Connection) -> None:
        source = _unchanged(connection, reading)
        if source is None:
            return
        is_outdated = list_chunkings(connection, [source])[source.id] != reading.chunking
        done = indexed(source, extraction, source.updated_at, rechunk=is_outdated)
        if source.is_swapping:
            # The old text is not that of the stored bytes, so no hit in it counts any more.
            done = replace(end_swap(connection, done), valid_from=None, updated_at=context.clock.timestamp())
            event = source_event(EventType.SOURCE_UPDATED, done, refresh={"outcome": "changed"}, sha256=done.sha256)
            record_events(connection, context.ids, source.team_id, [event])
        update_state(connection, done)
        if set(source.places) != set(reading.source.places):
            # The source has joined or left a bucket since it was read, so schedule an update of the index.
            create_detachment(connection, source.team_id, source.id)
        touch_buckets_of(connection, source.id)

    await context.write(work)
    context.wakes.syncing.set()
    # The new chunks have no vectors yet.
    context.wakes.note_unembedded(reading.source.team_id)


async def give_up_rechunk(context: Context, reading: SourceReading, reason: str) -> None:
    """Keep the old chunks of a document that can't be read, and add a warning to the source."""
    warning = f"The new chunking of its bucket could not be applied: {reason}"

    def work(connection: Connection) -> None:
        source = _unchanged(connection, reading)
        if source is not None:
            update_state(connection, replace(source, rechunk=False, warnings=(*source.warnings, warning)))
            touch_buckets_of(connection, source.id)

    await context.write(work)
