"""Finalizing: the bytes of finished sessions become sources, one session or a whole batch in one transaction.

The bytes get a second name as a blob, then source and session are committed together, then the first name goes. Killed
before the commit, the session still has its bytes and the sweeper removes the blob; killed after it, the retry finds
the session finalized and answers with the same source.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from sqlite3 import Connection

from svc_daemon.core import ids, media_types, readiness
from svc_daemon.core import uploads as rules
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.operations.contexts import Context
from svc_daemon.operations.ingest import add_source
from svc_daemon.operations.uploads import progress_of
from svc_daemon.store import uploads as store
from svc_daemon.store.buckets import get_bucket
from svc_daemon.store.keys import Key
from svc_daemon.store.sources import Source, find_source, get_source
from svc_daemon.store.uploads import Upload
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.tasks import INDEXING


@dataclass(frozen=True, slots=True)
class Finalized:
    """What a finalize made of one session: a source, now or before, or an error that another try won't cure."""

    upload: Upload
    source: Source | None = None
    error: ServiceError | None = None
    replayed: bool = False


async def finalize_upload(context: Context, key: Key, upload_id: str) -> Finalized:
    """The session's source; raises `blob_not_uploaded` (retryable) while bytes are missing, and the session's end."""
    upload = context.read(lambda connection: store.get_upload(connection, key.team_id, upload_id))
    if upload.status == store.OPEN:
        refuse_unfinished(context, upload)
    outcome = (await finalize_all(context, [upload]))[0]
    if outcome.error is not None:
        raise outcome.error
    return outcome


def refuse_unfinished(context: Context, upload: Upload) -> None:
    """Raises unless all bytes of the open session are there."""
    progress = progress_of(context, upload)
    rules.refuse_ended(progress.state)
    if progress.state != rules.UPLOADED:
        raise ServiceError(
            ErrorCode.BLOB_NOT_UPLOADED,
            f"{progress.received_bytes} of {upload.size_bytes} bytes have arrived.",
            received_bytes=progress.received_bytes,
            size_bytes=upload.size_bytes,
        )


async def finalize_all(context: Context, uploads: Sequence[Upload]) -> list[Finalized]:
    """Finalize sessions whose bytes are there; ended ones are replayed. In the order given."""
    async with AsyncExitStack() as held:
        for upload in uploads:
            # No chunk may come in between the hash and the second name.
            await held.enter_async_context(context.writers.hold(upload.id, lets_go=False))
        made = await asyncio.gather(*(_prepare(context, upload) for upload in uploads))
        try:
            outcomes = await context.write(lambda connection: [_commit(connection, context, *pair) for pair in made])
        except asyncio.CancelledError:
            # The commit may come all the same; if it doesn't, the next start removes the blobs.
            raise
        except BaseException:
            _drop_blobs(context, [source for _, source in made if source])
            raise
    _drop_blobs(context, _unused(made, outcomes))
    for outcome in outcomes:
        context.parts.delete(outcome.upload.id)
    context.wakes.indexing.set()
    context.wakes.sweeping.set()
    return outcomes


async def _prepare(context: Context, upload: Upload) -> tuple[Upload, Source | None]:
    """The source that an open session is to become, its blob in place; None for a session that has ended."""
    if upload.status != store.OPEN:
        return upload, None
    sha256 = await context.parts.hash(upload.id)
    head = await context.parts.head(upload.id)
    source = _new_source(context, upload, sha256, head)
    await context.parts.link(upload.id, source.id)
    return upload, source


def _commit(connection: Connection, context: Context, upload: Upload, source: Source | None) -> Finalized:
    """Source and session together; what can't be is written down on the session, so that nobody tries again."""
    now = store.get_upload(connection, upload.team_id, upload.id)
    if now.status != store.OPEN or source is None:
        return _replay(connection, now)
    try:
        _check_places(connection, source)
    except ServiceError as error:
        told = {"code": str(error.code), "message": error.message, "retryable": error.rule.retryable}
        store.finish_upload(connection, upload.id, store.FAILED, error=told)
        return Finalized(upload, error=error)
    store.finish_upload(connection, upload.id, store.FINALIZED, source_id=source.id)
    add_source(connection, context, source)
    return Finalized(upload, source)


def _replay(connection: Connection, upload: Upload) -> Finalized:
    if upload.status == store.CANCELED:
        return Finalized(upload, error=ServiceError(ErrorCode.SESSION_CANCELED))
    if upload.status == store.EXPIRED:
        return Finalized(upload, error=ServiceError(ErrorCode.SESSION_EXPIRED))
    if upload.error is not None:
        return Finalized(upload, error=ServiceError(ErrorCode(upload.error["code"]), upload.error["message"]))
    try:
        return Finalized(upload, get_source(connection, upload.team_id, upload.source_id or ""), replayed=True)
    except NotFound as error:
        return Finalized(upload, error=error, replayed=True)


def _check_places(connection: Connection, source: Source) -> None:
    """The buckets and the source to replace may have gone since the session was opened."""
    for bucket_id in source.places:
        bucket = get_bucket(connection, source.team_id, bucket_id)
        if bucket.status != "active":
            raise NotFound(ErrorCode.BUCKET_NOT_FOUND, f"The bucket {bucket.slug!r} is {bucket.status}.")
    if source.replaces is None:
        return
    old = find_source(connection, source.team_id, source.replaces)
    if old is None or not set(old.places) & set(source.places):
        raise NotFound(ErrorCode.SOURCE_NOT_FOUND, f"The source {source.replaces!r} is no longer in the bucket.")


def _unused(made: Sequence[tuple[Upload, Source | None]], outcomes: Sequence[Finalized]) -> list[Source]:
    kept = {outcome.source.id for outcome in outcomes if outcome.source}
    return [source for _, source in made if source and source.id not in kept]


def _drop_blobs(context: Context, sources: Sequence[Source]) -> None:
    """Blobs that no row will own; after a failed sync nobody knows, and the next start decides."""
    if not context.database.is_broken:
        for source in sources:
            context.blobs.delete(source.id)


def _new_source(context: Context, upload: Upload, sha256: str, head: bytes) -> Source:
    now = context.clock.timestamp()
    return Source(
        id=context.ids.make(ids.SOURCE),
        team_id=upload.team_id,
        type=readiness.FILE,
        title=upload.title,
        filename=upload.filename,
        content_type=media_types.detect(head, upload.filename, upload.content_type),
        size_bytes=upload.size_bytes,
        sha256=sha256,
        tags=upload.tags,
        metadata=upload.metadata,
        mapping=upload.mapping,
        replaces=upload.replaces,
        task_id=context.ids.make(ids.TASK),
        task_type=INDEXING,
        task_status="queued",
        places=dict.fromkeys(upload.bucket_ids, readiness.QUEUED),
        created_at=now,
        updated_at=now,
    )
