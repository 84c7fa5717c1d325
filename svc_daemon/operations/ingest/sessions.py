"""Creates and cancels upload sessions, and receives their bytes.

Only one request at a time works on a session.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

from svc_daemon.core import ids
from svc_daemon.core.uploads import sessions as rules
from svc_daemon.core.uploads.packs import PackItem
from svc_daemon.core.uploads.sessions import ContentRange, Step
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.operations.ingest.files import admit, check_replaces, check_room
from svc_daemon.operations.shared.batch_items import end_batches
from svc_daemon.operations.shared.destination_buckets import Destination, settle_buckets
from svc_daemon.operations.shared.idempotency import Creation, replaying, store_answer
from svc_daemon.operations.shared.reachable_rows import get_reachable_bucket, get_usable_bucket
from svc_daemon.process.contexts import Context
from svc_daemon.process.locks import session_lock
from svc_daemon.store.files.contract import PartWriter
from svc_daemon.store.rows import sessions as store
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sessions import SessionRow
from svc_daemon.store.rows.sources.sources import find_source
from svc_daemon.wire.light.error_codes import ErrorCode

#: Smallest extension of a session, as a share of its idle time. The limit keeps the number of database writes low.
EXTEND_STEP = 1 / 60


@dataclass(frozen=True, slots=True)
class SessionProgress:
    """An upload session, its state, and how many bytes it has received."""

    session: SessionRow
    state: str
    received_bytes: int
    #: In hexadecimal; None until all bytes have arrived.
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class ChunkBody:
    """The body of a request that sends bytes, with its headers."""

    #: The Content-Range; without it, the body is the whole file.
    asked: ContentRange | None
    #: The Content-Length; None with chunked transfer encoding.
    body_bytes: int | None
    chunks: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStart:
    """The fields of a new upload session that don't depend on its file."""

    id: str
    created_at: str
    expires_at: str
    ends_at: str
    batch_id: str | None = None
    client_file_id: str | None = None
    position: int = 0


def begin_session(context: Context) -> SessionStart:
    """Return the id and the end times of a new session that belongs to no batch."""
    expires_at, ends_at = lifetime(context)
    now = context.clock.timestamp()
    return SessionStart(id=context.ids.make(ids.SESSION), created_at=now, expires_at=expires_at, ends_at=ends_at)


async def create_session(
    context: Context, request: Creation, destination: Destination, wanted: SessionRow
) -> tuple[SessionRow, Creation]:
    """Create an upload session for the buckets. Raises ServiceError if the request is refused.

    A repeated request gets the session of the first request. An expired session is renewed.
    """

    def work(connection: Connection) -> tuple[SessionRow, Creation]:
        opened = replace(wanted, bucket_ids=settle_buckets(connection, context, request.key, destination))
        store.create_sessions(connection, [opened])
        body = {"session_id": opened.id, "status": rules.PENDING, "bucket_ids": list(opened.bucket_ids)}
        return opened, store_answer(connection, context, request, body)

    async with replaying(context, request) as earlier:
        if earlier is not None:
            return await reopen_session(context, earlier.body["session_id"]), earlier
        # Check only the first request: when a request is repeated, the source may already be replaced.
        context.read(lambda connection: check_replaces(connection, request.key, destination.ids, wanted.replaces))
        await admit(context, wanted.team_id, wanted.size_bytes)
        return await context.write(work)


async def reopen_session(context: Context, session_id: str) -> SessionRow:
    """Return the session for a repeated create request.

    If the session has expired before it was finished, renew the session with a new token.
    """
    found = context.read(lambda connection: get_session(connection, session_id))
    if not rules.is_expired(found.status, found.expires_at, context.clock.timestamp()):
        return found
    lives = lifetime(context)

    def work(connection: Connection) -> SessionRow:
        store.renew_session(connection, session_id, *lives)
        return get_session(connection, session_id)

    return await context.write(work)


def lifetime(context: Context) -> tuple[str, str]:
    """Return when a new session expires if no bytes arrive, and when it expires at the latest."""
    idle_s, life_s = context.limits.session_idle_seconds, context.limits.session_seconds
    return context.clock.timestamp(min(idle_s, life_s)), context.clock.timestamp(life_s)


def session_token(context: Context, session: SessionRow) -> str:
    """Return the secret token of the session's URL, which allows sending the session's bytes."""
    return rules.token(context.secret, session.id, session.generation)


def find_session(
    context: Context, key: KeyRow, bucket: str, session_id: str, *, to_finalize: bool = False
) -> SessionRow:
    """Return an upload session of this bucket; raises NotFound. If `to_finalize` is set, the bucket must be active."""
    get = get_usable_bucket if to_finalize else get_reachable_bucket

    def work(connection: Connection) -> SessionRow:
        found = get(connection, key, bucket)
        session = store.get_session(connection, key.team_id, session_id)
        if found.id not in session.bucket_ids:
            raise NotFound(ErrorCode.SESSION_NOT_FOUND, f"There is no upload session {session_id!r}.")
        return session

    return context.read(work)


def get_session(connection: Connection, session_id: str) -> SessionRow:
    """Return a session by id; raises NotFound. The caller must have authorized the request."""
    session = store.find_session(connection, session_id)
    if session is None:
        raise NotFound(ErrorCode.SESSION_NOT_FOUND, f"There is no upload session {session_id!r}.")
    return session


async def progress_of(context: Context, session: SessionRow) -> SessionProgress:
    """Return the session's state and how many bytes it has received."""
    return (await list_progress(context, [session]))[0]


async def list_progress(context: Context, sessions: Sequence[SessionRow]) -> list[SessionProgress]:
    """Return the progress of several sessions, in the same order."""
    sizes, now = await context.parts.measure(*(session.id for session in sessions)), context.clock.timestamp()
    return [_judge(session, size_bytes, now) for session, size_bytes in zip(sessions, sizes, strict=True)]


def _judge(session: SessionRow, stored_bytes: int, now: str) -> SessionProgress:
    """Compute the session's state. The bytes of a finalized session have become the source's blob."""
    received_bytes = session.size_bytes if session.status == rules.FINALIZED else stored_bytes
    is_expired = rules.is_expired(session.status, session.expires_at, now)
    state = rules.state_of(session.status, received_bytes, session.size_bytes, is_expired=is_expired)
    return SessionProgress(session, state, received_bytes)


def authorize(context: Context, session_id: str, token: str) -> SessionRow:
    """Return the session if the token is valid.

    Raises `session_not_found`, `session_canceled` or `session_expired`.
    """
    session = context.look(lambda connection: store.find_session(connection, session_id))
    if session is None or not rules.is_token(token, context.secret, session.id, session.generation):
        raise NotFound(ErrorCode.SESSION_NOT_FOUND, "There is no such upload session.")
    # Don't wait for the session's lock here: deleting the bytes of an ended session can hold the lock for a long time.
    rules.refuse_ended(_judge(session, 0, context.clock.timestamp()).state)
    return session


async def put_bytes(context: Context, session_id: str, sending: ChunkBody) -> SessionProgress:
    """Receive bytes of the session's file, if the request has any. Returns the session's progress.

    Raises ServiceError if the bytes are refused, and `request_in_progress` if another request has taken over the
    session.
    """
    async with context.locks.take_over(session_lock(session_id)) as hold:
        session = context.look(lambda connection: get_session(connection, session_id))
        (stored_bytes,) = await context.parts.settle(session_id)
        before = _judge(session, stored_bytes, context.clock.timestamp())
        verdict = rules.judge_put(before.state, before.received_bytes, session.size_bytes, sending.asked)
        if verdict.step is Step.REPORT:
            return before
        if verdict.step is Step.DONE:
            return await _finished(context, session)
        # Extend the session first, so that an interrupted chunk extends it too.
        expires_at, _ = lifetime(context)
        soonest = context.clock.timestamp(context.limits.session_idle_seconds * (1 - EXTEND_STEP))
        if session.expires_at < min(soonest, session.ends_at):
            await context.write(lambda connection: store.extend_session(connection, session.id, expires_at))
        first, size_bytes = before.received_bytes, session.size_bytes
        items = [PackItem(session_id, offset_bytes=0, size_bytes=size_bytes, held_bytes=first)]
        writer = context.parts.writer(items, first, first + verdict.take_bytes)
        taken = replace(sending, chunks=hold.arriving(sending.chunks))
        await receive(context, writer, verdict, size_bytes, taken)
        now = context.look(lambda connection: get_session(connection, session_id))
        if (now.status, now.generation) != (session.status, session.generation):
            # Another node has taken the lock, and may have deleted these bytes.
            raise ServiceError(ErrorCode.REQUEST_IN_PROGRESS, retry_after_seconds=1)
        return await _finished(context, now)


async def cancel_session(context: Context, session: SessionRow, key_id: str | None = None) -> SessionProgress:
    """Cancel the session and delete its bytes; does nothing if the session has ended."""

    def work(connection: Connection) -> bool:
        is_canceled = store.finish_session(connection, get_session(connection, session.id), rules.CANCELED)
        end_batches(connection, context, session.team_id, [session.batch_id], key_id)
        return is_canceled

    async with context.locks.take_over(session_lock(session.id)):
        if await context.write(work):
            await context.parts.delete(session.id)
        return await progress_of(context, context.read(lambda connection: get_session(connection, session.id)))


async def receive(
    context: Context, writer: PartWriter, verdict: rules.PutDecision, size_bytes: int, sending: ChunkBody
) -> None:
    """Store the bytes of the body that aren't stored yet. `size_bytes` is the size of the whole file or pack.

    Raises `size_mismatch` if the body's length differs from its headers. A body that is too long is not stored.
    """
    if sending.body_bytes is not None:
        rules.check_length(sending.asked, size_bytes, sending.body_bytes)
    try:
        sent_bytes = await _fill(context, writer, verdict, sending.chunks)
        if sent_bytes > verdict.skip_bytes + verdict.take_bytes:
            await writer.drop()
    finally:
        # Keep what arrived before a disconnect, so that it need not be sent again.
        try:
            with context.upload_priority.uploading():
                await writer.sync()
        finally:
            writer.close()
    rules.check_length(sending.asked, size_bytes, sent_bytes)


async def _fill(context: Context, writer: PartWriter, verdict: rules.PutDecision, chunks: AsyncIterator[bytes]) -> int:
    """Append the bytes of the body that aren't stored yet. Returns how many bytes of the body have arrived."""
    end_bytes = verdict.skip_bytes + verdict.take_bytes
    sent_bytes = 0
    async for chunk in chunks:
        # No disk space is reserved for a session, so check before each write.
        check_room(context)
        await writer.append(chunk[max(verdict.skip_bytes - sent_bytes, 0) : end_bytes - sent_bytes])
        sent_bytes += len(chunk)
        if sent_bytes > end_bytes:
            break
    return sent_bytes


async def _finished(context: Context, session: SessionRow) -> SessionProgress:
    """Return the session's progress, with the hash if all bytes have arrived."""
    progress = await progress_of(context, session)
    if progress.state == rules.FINALIZED:
        source = context.read(lambda connection: find_source(connection, session.team_id, session.source_id or ""))
        return replace(progress, sha256=source.sha256 if source else session.first_source()["sha256"])
    # Accept the bytes even if the session has expired meanwhile.
    if progress.received_bytes < session.size_bytes:
        return progress
    return replace(progress, state=rules.UPLOADED, sha256=await checked_hash(context, session))


async def checked_hash(context: Context, session: SessionRow, *, drops: bool = True) -> str:
    """Return the hash of the complete bytes; raises `checksum_mismatch`.

    If `drops` is set, bytes that don't match are deleted, so that the client can send them again.
    """
    actual = await context.parts.hash(session.id, session.size_bytes)
    if session.sha256 is not None and session.sha256 != actual:
        if drops:
            await context.parts.delete(session.id)
        raise ServiceError(ErrorCode.CHECKSUM_MISMATCH, expected=session.sha256, actual=actual)
    return actual
