"""Finalizing: creates sources from upload sessions that have received all of their bytes.

A crash loses nothing: a session keeps its bytes until the source is committed.
"""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from svc_daemon.core import ids, readiness
from svc_daemon.core.text import media_types
from svc_daemon.core.uploads import sessions as rules
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound, ServiceError, StorageError
from svc_daemon.operations.ingest.files import FileUpload, add_sources, commit_blobs, new_source, queued_in
from svc_daemon.operations.ingest.sessions import SessionProgress, checked_hash, get_session, list_progress, progress_of
from svc_daemon.operations.shared.batch_items import end_batches
from svc_daemon.operations.shared.events import record_events, source_event
from svc_daemon.process.contexts import Context
from svc_daemon.process.locks import session_lock
from svc_daemon.store.rows import sessions as store
from svc_daemon.store.rows.buckets import get_bucket
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sessions import SessionRow
from svc_daemon.store.rows.sources.sources import SourceRow, find_source
from svc_daemon.wire.events import EventType
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.tasks import INDEXING


@dataclass(frozen=True, slots=True)
class Finalized:
    """The result of finalizing one session: an error, or the source.

    After `blob_not_uploaded` or `checksum_mismatch`, the bytes can be sent again. After any other error, a retry won't
    help.
    """

    session: SessionRow
    source: SourceRow | None = None
    error: ServiceError | None = None
    replayed: bool = False
    #: Whether the source was deleted since. `source` then has what was known when it was created.
    is_gone: bool = False

    @property
    def is_pending(self) -> bool:
        return self.error is not None and self.error.code in (ErrorCode.BLOB_NOT_UPLOADED, ErrorCode.CHECKSUM_MISMATCH)


async def finalize_session(context: Context, session: SessionRow, key: KeyRow) -> Finalized:
    """Finalize one session. Raises the error if this fails, such as `blob_not_uploaded` if bytes are missing."""
    outcome = (await finalize_all(context, [session], key))[0]
    if outcome.error is not None:
        raise outcome.error
    return outcome


async def finalize_all(context: Context, sessions: Sequence[SessionRow], key: KeyRow) -> list[Finalized]:
    """Finalize the sessions whose bytes are complete. Returns a result for each session, in order.

    A session that has ended gets its earlier result. Raises `request_in_progress` if another request is finalizing one
    of these sessions, and `storage_full`.
    """

    def work(connection: Connection) -> list[Finalized]:
        active: set[str] = set()
        outcomes = [_commit(connection, one, active) for one in made]
        new = [one.source for one in outcomes if one.source is not None and not one.replayed]
        if new:
            add_sources(connection, context, new)
            queued = [source_event(EventType.SOURCE_QUEUED, source, key_id=key.id) for source in new]
            record_events(connection, context.ids, new[0].team_id, queued)
        # If a refused session was the last unfinished one of its batch, the batch ends now.
        refused = [one.session for one in outcomes if one.error is not None and not one.is_pending]
        if refused:
            end_batches(connection, context, refused[0].team_id, (session.batch_id for session in refused), key.id)
        return outcomes

    async with AsyncExitStack() as held:
        held.enter_context(context.upload_priority.uploading())
        ready = {session.id for session in await list_complete(context, sessions)}
        # Nothing may write to a session between hashing and linking its bytes.
        await held.enter_async_context(context.locks.take_over(*map(session_lock, ready)))
        # A request that held one of the locks may have ended its session.
        now = context.read(lambda connection: store.get_sessions(connection, [session.id for session in sessions]))
        await asyncio.sleep(0)  # let other requests run
        made = await _prepare_all(context, now, ready)
        names = _blobs_of(made)
        outcomes = await commit_blobs(context, names, work)
        kept = set(_blobs_of(outcomes))
        await context.blobs.drop([name for name in names if name not in kept])
        pairs = zip(made, outcomes, strict=True)
        await context.parts.delete(*(one.session.id for one, end in pairs if one.source and not end.is_pending))
    context.wakes.indexing.set()
    context.wakes.sweeping.set()
    return outcomes


async def list_complete(context: Context, sessions: Sequence[SessionRow]) -> list[SessionRow]:
    """Return the sessions that are open and have received all of their bytes."""
    measured = await list_progress(context, [session for session in sessions if session.status == rules.OPEN])
    return [progress.session for progress in measured if progress.state == rules.UPLOADED]


async def _prepare_all(context: Context, sessions: Sequence[SessionRow], held: Collection[str]) -> list[Finalized]:
    """Build a source for each complete open session, and link the session's bytes as the source's blob.

    The result for a session that has ended has neither source nor error.
    """
    hashes: dict[str, str] = {}
    made: list[Finalized] = []
    for progress in await list_progress(context, sessions):
        session = progress.session
        try:
            if session.status == rules.OPEN:
                if progress.state != rules.UPLOADED or session.id not in held:
                    raise _incomplete(progress)
                hashes[session.id] = await checked_hash(context, session)
            made.append(Finalized(session))
        except StorageError:
            raise
        except ServiceError as error:
            made.append(Finalized(session, error=error))
    names = dict(zip(hashes, context.ids.make_many(ids.SOURCE, len(hashes)), strict=True))
    task_ids = dict(zip(hashes, context.ids.make_many(ids.TASK, len(hashes)), strict=True))
    heads = await context.parts.link(names, hashes)
    for place, one in enumerate(made):
        session_id = one.session.id
        if session_id in hashes:
            new_ids = (names[session_id], task_ids[session_id])
            source = _new_source(context, one.session, hashes[session_id], heads[session_id], new_ids)
            made[place] = Finalized(one.session, source)
    return made


async def judge_finalize(context: Context, session: SessionRow) -> Finalized:
    """Return the result that finalizing the session would have, for a dry run. Nothing is stored.

    If the session has ended, the result has no source.
    """
    if session.status != rules.OPEN:
        return replace(context.read(lambda connection: _replay(connection, session)), source=None)
    progress = await progress_of(context, session)
    try:
        if progress.state != rules.UPLOADED:
            raise _incomplete(progress)
        sha256 = await checked_hash(context, session, drops=False)
        head, new_ids = await context.parts.head(session.id), (context.ids.make(ids.SOURCE), context.ids.make(ids.TASK))
        source = _new_source(context, session, sha256, head, new_ids)
        context.read(lambda connection: _check_places(connection, source, set()))
    except StorageError:
        raise
    except ServiceError as error:
        return Finalized(session, error=error)
    return Finalized(session, source)


def _incomplete(progress: SessionProgress) -> ServiceError:
    if progress.state == rules.EXPIRED:
        return ServiceError(ErrorCode.SESSION_EXPIRED)
    return ServiceError(
        ErrorCode.BLOB_NOT_UPLOADED,
        f"{progress.received_bytes} of {progress.session.size_bytes} bytes have arrived.",
        received_bytes=progress.received_bytes,
        size_bytes=progress.session.size_bytes,
    )


def _commit(connection: Connection, made: Finalized, active: set[str]) -> Finalized:
    """End the session. The caller adds the source. A permanent error is stored, so that retries get the same error."""
    if made.error is not None:
        return made
    session_id, outcome = made.session.id, made
    if made.source is None:
        return _replay(connection, get_session(connection, session_id))
    try:
        _check_places(connection, made.source, active)
        source = made.source
        known = store.MadeSource(
            content_type=source.content_type, sha256=source.sha256, task_id=source.task_id, created_at=source.created_at
        )
        is_first = store.finish_session(connection, made.session, rules.FINALIZED, source_id=made.source.id, made=known)
    except ServiceError as error:
        outcome = Finalized(made.session, error=error)
        is_first = store.finish_session(connection, made.session, rules.FAILED, error=error.as_error())
    return outcome if is_first else _replay(connection, get_session(connection, session_id))


def _replay(connection: Connection, session: SessionRow) -> Finalized:
    if session.status == rules.OPEN:
        message = "The session was renewed meanwhile; send its bytes again."
        return Finalized(session, error=ServiceError(ErrorCode.BLOB_NOT_UPLOADED, message))
    if session.status == rules.CANCELED:
        return Finalized(session, error=ServiceError(ErrorCode.SESSION_CANCELED))
    if session.status == rules.EXPIRED:
        return Finalized(session, error=ServiceError(ErrorCode.SESSION_EXPIRED))
    if session.error is not None:
        return Finalized(session, error=ServiceError(ErrorCode(session.error["code"]), session.error["message"]))
    source = find_source(connection, session.team_id, session.source_id or "")
    return Finalized(session, source or _deleted_source(session), replayed=True, is_gone=source is None)


def _deleted_source(session: SessionRow) -> SourceRow:
    """Return the source as it was when the session was finalized. It was deleted since."""
    made = session.first_source()
    return SourceRow(
        id=session.source_id or "",
        team_id=session.team_id,
        type=readiness.FILE,
        **session.description(),
        filename=session.filename,
        size_bytes=session.size_bytes,
        batch_id=session.batch_id,
        places=queued_in(session.bucket_ids),
        task_type=INDEXING,
        task_status="queued",
        content_type=made["content_type"],
        sha256=made["sha256"],
        task_id=made["task_id"],
        created_at=made["created_at"],
        updated_at=made["created_at"],
    )


def _check_places(connection: Connection, source: SourceRow, active: set[str]) -> None:
    """Raise NotFound if a bucket of the source, or the source that it replaces, no longer exists.

    `active` collects the ids of the buckets that were already checked in this transaction.
    """
    for bucket_id in source.places.keys() - active:
        bucket = get_bucket(connection, source.team_id, bucket_id)
        if bucket.status != readiness.ACTIVE:
            raise NotFound(ErrorCode.BUCKET_NOT_FOUND, f"The bucket {bucket.slug!r} is {bucket.status}.")
        active.add(bucket_id)
    if source.replaces is None:
        return
    old = find_source(connection, source.team_id, source.replaces)
    if old is None or not set(old.places) & set(source.places):
        raise NotFound(ErrorCode.SOURCE_NOT_FOUND, f"The source {source.replaces!r} is no longer in the bucket.")


def _blobs_of(made: Sequence[Finalized]) -> list[str]:
    return [one.source.id for one in made if one.source]


def _new_source(context: Context, session: SessionRow, sha256: str, head: bytes, new_ids: tuple[str, str]) -> SourceRow:
    """Build the source of a session. `new_ids` are the ids of the source and of its task."""
    file = FileUpload(
        filename=session.filename,
        content_type=media_types.detect(head, session.filename, session.content_type),
        **session.description(),
    )
    return new_source(
        context,
        session.team_id,
        file,
        size_bytes=session.size_bytes,
        sha256=sha256,
        new_ids=new_ids,
        bucket_ids=session.bucket_ids,
        batch_id=session.batch_id,
    )
