"""Repairs problems that `verifying` has found, if there is a safe repair.

For example, sources without their stored file are marked as failed, and files that belong to no source become sources
again.
"""

import asyncio
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath

from svc_daemon.core import ids, readiness
from svc_daemon.core.problems import Problem, Repair
from svc_daemon.core.text import media_types
from svc_daemon.core.uploads.source_fields import check_title, clean_file_name
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ServiceError, StorageError, stored_error
from svc_daemon.operations.index.rebuilding import queue_rebuild
from svc_daemon.operations.ingest.files import FileUpload, add_sources, new_source, queued_in
from svc_daemon.operations.installations import refuse_moved
from svc_daemon.operations.remove.setting_aside import sort_leftovers
from svc_daemon.operations.shared.events import bucket_event, record_events, source_event
from svc_daemon.operations.shared.outcomes import record_outcomes
from svc_daemon.operations.sources import requeue
from svc_daemon.process.contexts import Context
from svc_daemon.store.files.inspections import DataFolders
from svc_daemon.store.files.staging import HEAD_BYTES
from svc_daemon.store.rows import tasks
from svc_daemon.store.rows.buckets import BucketRow, create_bucket, find_bucket, touch_buckets_of
from svc_daemon.store.rows.sources.detachments import create_detachment
from svc_daemon.store.rows.sources.memberships import schedule_syncs, suspend_syncs
from svc_daemon.store.rows.sources.sources import SourceRow, find_source, update_content, update_state
from svc_daemon.store.rows.teams import create_team, find_team
from svc_daemon.wire.events import EventType
from svc_daemon.wire.light.error_codes import SourceErrorCode


async def recover(context: Context, team_id: str, place: str) -> None:
    """Create a source again from a stored file, and queue its indexing.

    `place` is the file's path, or its key in an object store. A missing team or bucket is created again with its old
    id.
    """
    name = PurePath(place).name
    source_id = ids.source_of(name) or ""
    document = await asyncio.to_thread(context.provider.get_document, team_id, source_id)
    stored = await asyncio.to_thread(context.provider.get_text, team_id, source_id)
    # The index of a restored backup may have any text in place of an id.
    bucket_ids = list(filter(ids.FILE_NAME.fullmatch, document.bucket_ids)) if document is not None else []
    if document is None or stored is None or not bucket_ids:
        return
    if isinstance(context.stores, DataFolders):
        blobs, path = context.stores.blobs, Path(place)
        await blobs.run(lambda: path.rename(blobs.path(name)))
        await blobs.run(blobs.sync_folder)
    blob = context.blobs.blob(name)
    found = await blob.find()
    if found is None:
        raise StorageError(f"The blob {name} is gone.")
    # The file's name is lost, so use the title, unless it is one that a stranger's index has in place of it.
    title = filename = source_id
    with suppress(ServiceError):
        title = check_title(stored.title, context.limits)
        filename = clean_file_name(title)
    content_type = media_types.detect(await blob.read(0, HEAD_BYTES), filename)
    upload = FileUpload(filename=filename, content_type=content_type, title=title)
    described = new_source(context, team_id, upload, size_bytes=found.size_bytes, sha256=await blob.hash())
    own_name = None if name == source_id else name
    source = replace(described, id=source_id, blob=own_name, generation=document.generation + 1)
    await context.write(lambda connection: _add(connection, context, source, bucket_ids))


def _add(connection: Connection, context: Context, source: SourceRow, bucket_ids: Collection[str]) -> None:
    if find_source(connection, source.team_id, source.id) is not None:
        return
    if find_team(connection, source.team_id) is None:
        create_team(connection, source.team_id, _name(source.team_id), source.created_at)
    places = []
    for bucket_id in bucket_ids:
        bucket = find_bucket(connection, source.team_id, bucket_id)
        if bucket is None:
            # The index has only the bucket's id. The bucket's name is lost.
            now, name = source.created_at, _name(bucket_id)
            bucket = BucketRow(
                id=bucket_id,
                team_id=source.team_id,
                slug=name,
                name=name,
                metadata={},
                created_at=now,
                updated_at=now,
            )
            create_bucket(connection, bucket)
            made = bucket_event(EventType.BUCKET_CREATED, bucket)
            record_events(connection, context.ids, source.team_id, [made])
        if bucket.status != readiness.DELETING:
            places.append(bucket_id)
    placed = replace(source, places=queued_in(places))
    add_sources(connection, context, [placed])
    update_content(connection, source)
    record_events(connection, context.ids, source.team_id, [source_event(EventType.SOURCE_QUEUED, placed)])


def _name(known_id: str) -> str:
    return f"recovered-{known_id[-8:]}"


LOST = stored_error(
    SourceErrorCode.STORED_BYTES_LOST,
    "The stored bytes are gone or were damaged; upload the file again.",
    retryable=False,
)


async def repair_problems(context: Context, problems: Iterable[Problem]) -> list[Problem]:
    """Make all safe repairs, in the order of `Repair`. Returns the repaired problems.

    Raises StorageError if the installation is being moved, because the target would lack the repairs.
    """
    context.read(refuse_moved)
    order = list(Repair)
    repairable = [problem for problem in problems if problem.repair is not None]
    for problem in sorted(repairable, key=lambda each: order.index(each.repair or Repair.TRIM_LOG)):
        about = problem.about
        match problem.repair:
            case Repair.TRIM_LOG if "team_id" in about:
                # Opening the index truncates its write-ahead log.
                await asyncio.to_thread(context.provider.get_document, about["team_id"], "")
            case Repair.RECOVER:
                await recover(context, about["team_id"], about["file"])
            case Repair.REBUILD_INDEX:
                await context.write(partial(queue_rebuild, make_ids=context.ids, team=about["team_id"]))
            case Repair.REMOVE_DOCUMENT:
                await asyncio.to_thread(context.provider.delete_document, about["team_id"], about["source_id"])
            case Repair.REMOVE_FILE if "part" in about:
                await context.stores.parts.delete(about["part"])
            case Repair.FAIL_SOURCE | Repair.QUEUE_SOURCE | Repair.SYNC_SOURCE | Repair.UPDATE_INDEX:
                await _repair_source(context, problem)
    # What is left over is sorted as each start does it.
    await sort_leftovers(context)
    return repairable


async def _repair_source(context: Context, problem: Problem) -> None:
    if problem.repair is Repair.FAIL_SOURCE:
        # Move the wrong bytes aside, so that no retry reads them.
        await context.blobs.move_damaged(problem.about["blob"])
    now = context.clock.timestamp()

    def work(connection: Connection) -> None:
        # Earlier repairs may have changed the source.
        source = find_source(connection, problem.about["team_id"], problem.about["source_id"])
        match problem.repair, source:
            case _, None:
                pass
            case Repair.FAIL_SOURCE, SourceRow() if source.blob_name == problem.about["blob"]:
                failed = replace(source, status=readiness.FAILED, error=LOST, updated_at=now)
                tasks.cancel_tasks(connection, source.id, now)
                suspend_syncs(connection, source.id)
                update_state(connection, failed)
                touch_buckets_of(connection, source.id)
                record_outcomes(connection, context, [failed])
            case Repair.QUEUE_SOURCE, SourceRow() if source.status != readiness.FAILED:
                tasks.cancel_tasks(connection, source.id, now)
                requeue(connection, context, source)
            case Repair.SYNC_SOURCE, SourceRow() if source.status == readiness.ACTIVE:
                # For any other source, indexing writes the buckets to the index.
                schedule_syncs(connection, source.id, now)
                touch_buckets_of(connection, source.id)
            case Repair.UPDATE_INDEX, SourceRow():
                create_detachment(connection, source.team_id, source.id)

    await context.write(work)
