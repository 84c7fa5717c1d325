"""Mending what verifying has found, where that is no guess. What is lost is never dropped: it fails and shows why.

Bytes that the state has lost are taken in again as the team's index names them. The index knows the source, its team,
its title and its buckets; size, hash and type are read from the bytes. What else was known of the source (tags,
metadata, its URL) is lost with the state.

The workers do the rest once the service runs: they read again what was queued, and make the calls that are due.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from sqlite3 import Connection

from svc_daemon.core import ids, readiness
from svc_daemon.core.problems import Mend, Problem
from svc_daemon.core.text import media_types
from svc_daemon.core.uploads.source_fields import clean_file_name
from svc_daemon.errors import ServiceError, stored_error
from svc_daemon.operations.cascades import queue_cascade
from svc_daemon.operations.ingest import FileUpload, add_source, new_source, queued_in
from svc_daemon.operations.rebuilding import queue_rebuild
from svc_daemon.operations.sources import requeue
from svc_daemon.operations.webhooks import record_event
from svc_daemon.process.contexts import Context
from svc_daemon.store import tasks
from svc_daemon.store.blobs import HEAD_BYTES
from svc_daemon.store.buckets import BucketRow, create_bucket, find_bucket, touch_buckets_of
from svc_daemon.store.cascades import find_running_cascade
from svc_daemon.store.deliveries import resend_delivery
from svc_daemon.store.memberships import schedule_syncs, suspend_syncs
from svc_daemon.store.sources import SourceRow, find_source, update_content, update_state
from svc_daemon.store.teams import create_team, find_team
from svc_daemon.store.tombstones import create_detachment
from svc_daemon.wire.codes import SourceErrorCode


async def take_in(context: Context, team_id: str, path: Path) -> None:
    """Make a source of the file, under the id in its name, and queue it to be read again.

    A team or a bucket that the state doesn't know any more is made under its id.
    """
    source_id = ids.source_of(path.name) or ""
    document = await asyncio.to_thread(context.provider.get_document, team_id, source_id)
    stored = await asyncio.to_thread(context.provider.get_text, team_id, source_id)
    if document is None or stored is None:
        return
    described = await asyncio.to_thread(_describe, context, path, team_id, stored.title)
    source = replace(described, generation=document.generation + 1)
    place = context.blobs.path(path.name)
    await context.blobs.run(lambda: path.rename(place))
    await context.blobs.run(context.blobs.sync_folder)
    await context.write(lambda connection: _add(connection, context, source, document.bucket_ids))


def _describe(context: Context, path: Path, team_id: str, title: str) -> SourceRow:
    """What the bytes say of themselves. A title is the name of the file unless the sender had another."""
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        head = file.read(HEAD_BYTES)
    source_id = ids.source_of(path.name) or ""
    try:
        filename = clean_file_name(title)
    except ServiceError:
        filename = source_id
    upload = FileUpload(filename=filename, content_type=media_types.detect(head, filename), title=title)
    source = new_source(context, team_id, upload, size_bytes=path.stat().st_size, sha256=sha256)
    return replace(source, id=source_id, blob=None if path.name == source_id else path.name)


def _add(connection: Connection, context: Context, source: SourceRow, bucket_ids: Collection[str]) -> None:
    if find_source(connection, source.team_id, source.id) is not None:
        return
    if find_team(connection, source.team_id) is None:
        create_team(connection, source.team_id, _name(source.team_id), source.created_at)
    buckets = [
        find_bucket(connection, source.team_id, bucket_id) or _make_bucket(connection, source, bucket_id)
        for bucket_id in bucket_ids
    ]
    places = queued_in([bucket.id for bucket in buckets if bucket.status != readiness.DELETING])
    add_source(connection, context, replace(source, places=places))
    update_content(connection, source)


def _make_bucket(connection: Connection, source: SourceRow, bucket_id: str) -> BucketRow:
    """The id is the bucket's own; its name was in the state alone."""
    bucket = BucketRow(
        id=bucket_id,
        team_id=source.team_id,
        slug=_name(bucket_id),
        name=_name(bucket_id),
        metadata={},
        created_at=source.created_at,
        updated_at=source.created_at,
    )
    create_bucket(connection, bucket)
    return bucket


def _name(known_id: str) -> str:
    return f"recovered-{known_id[-8:]}"


LOST = stored_error(
    SourceErrorCode.STORED_BYTES_LOST,
    "The stored bytes are gone or were damaged; upload the file again.",
    retryable=False,
)


async def mend(context: Context, problems: Iterable[Problem]) -> list[Problem]:
    """Mend what can be mended, in the order of `Mend`. Returns what that was."""
    order = list(Mend)
    mendable = [problem for problem in problems if problem.mend is not None]
    for problem in sorted(mendable, key=lambda each: order.index(each.mend or Mend.TRIM_LOG)):
        await _MENDS[problem.mend or Mend.TRIM_LOG](context, problem)
    return mendable


async def _trim_log(context: Context, problem: Problem) -> None:
    """The state's is done by having opened it."""
    if "team_id" in problem.about:
        await asyncio.to_thread(context.provider.get_document, problem.about["team_id"], "")


async def _remove_file(context: Context, problem: Problem) -> None:
    about = problem.about
    if "blob" in about:
        context.blobs.delete(about["blob"])
    elif "part" in about:
        await context.parts.delete(about["part"])
    else:
        context.blobs.delete_staged(about["staged"])


async def _take_in(context: Context, problem: Problem) -> None:
    await take_in(context, problem.about["team_id"], Path(problem.about["file"]))


async def _set_aside(context: Context, problem: Problem) -> None:
    about = problem.about
    path = context.blobs.path(about["blob"]) if "blob" in about else context.parts.path(about["part"])
    await asyncio.to_thread(context.asides.put, path, context.clock.timestamp()[:10])


async def _fail_source(context: Context, problem: Problem) -> None:
    """Wrong bytes are put where no retry can take them for the right ones."""
    context.blobs.move_damaged(problem.about["blob"])

    def work(connection: Connection, source: SourceRow) -> None:
        now = context.clock.timestamp()
        failed = replace(source, status=readiness.FAILED, error=LOST, updated_at=now)
        tasks.cancel_tasks(connection, source.id, now)
        suspend_syncs(connection, source.id)
        update_state(connection, failed)
        touch_buckets_of(connection, source.id)
        record_event(connection, context, failed)

    await _write_source(context, problem, work)


async def _rebuild_index(context: Context, problem: Problem) -> None:
    team_id = problem.about["team_id"]
    await context.write(lambda connection: queue_rebuild(connection, context.ids, team_id))


async def _remove_document(context: Context, problem: Problem) -> None:
    about = problem.about
    await asyncio.to_thread(context.provider.delete_document, about["team_id"], about["source_id"])


async def _queue_source(context: Context, problem: Problem) -> None:
    def work(connection: Connection, source: SourceRow) -> None:
        if source.status != readiness.FAILED:
            tasks.cancel_tasks(connection, source.id, context.clock.timestamp())
            requeue(connection, context, source)

    await _write_source(context, problem, work)


async def _sync_source(context: Context, problem: Problem) -> None:
    def work(connection: Connection, source: SourceRow) -> None:
        # One that is queued again is synced after it.
        if source.status == readiness.ACTIVE:
            schedule_syncs(connection, source.id, context.clock.timestamp())
            touch_buckets_of(connection, source.id)

    await _write_source(context, problem, work)


async def _tell_index(context: Context, problem: Problem) -> None:
    await _write_source(
        context, problem, lambda connection, source: create_detachment(connection, source.team_id, source.id)
    )


async def _cancel_task(context: Context, problem: Problem) -> None:
    now = context.clock.timestamp()
    await context.write(lambda connection: tasks.cancel_task(connection, problem.about["task_id"], now))


async def _queue_cascade(context: Context, problem: Problem) -> None:
    def work(connection: Connection) -> None:
        bucket = find_bucket(connection, problem.about["team_id"], problem.about["bucket_id"])
        stuck = find_running_cascade(connection, problem.about["bucket_id"])
        if stuck is not None:
            tasks.cancel_task(connection, stuck.task_id, context.clock.timestamp())
        if bucket is not None:
            queue_cascade(connection, context, bucket)

    await context.write(work)


async def _record_event(context: Context, problem: Problem) -> None:
    await _write_source(context, problem, lambda connection, source: record_event(connection, context, source))


async def _send_event(context: Context, problem: Problem) -> None:
    now = context.clock.timestamp()
    await context.write(lambda connection: resend_delivery(connection, problem.about["event_id"], now))


async def _write_source(context: Context, problem: Problem, work: Callable[[Connection, SourceRow], None]) -> None:
    """Run `work` with the source as it stands after what was mended before."""

    def on_source(connection: Connection) -> None:
        source = find_source(connection, problem.about["team_id"], problem.about["source_id"])
        if source is not None:
            work(connection, source)

    await context.write(on_source)


_MENDS: dict[Mend, Callable[[Context, Problem], Awaitable[None]]] = {
    Mend.TRIM_LOG: _trim_log,
    Mend.REMOVE_FILE: _remove_file,
    Mend.TAKE_IN: _take_in,
    Mend.SET_ASIDE: _set_aside,
    Mend.FAIL_SOURCE: _fail_source,
    Mend.REBUILD_INDEX: _rebuild_index,
    Mend.REMOVE_DOCUMENT: _remove_document,
    Mend.CANCEL_TASK: _cancel_task,
    Mend.QUEUE_SOURCE: _queue_source,
    Mend.SYNC_SOURCE: _sync_source,
    Mend.TELL_INDEX: _tell_index,
    Mend.QUEUE_CASCADE: _queue_cascade,
    Mend.RECORD_EVENT: _record_event,
    Mend.SEND_EVENT: _send_event,
}
