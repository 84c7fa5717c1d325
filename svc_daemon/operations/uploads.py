"""Upload sessions: create, take bytes, finalize, cancel. What may happen when is decided by `core.uploads`.

One request at a time writes to a session (`writers`); what was acknowledged is on the disk.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from sqlite3 import Connection

from svc_daemon.core import uploads as rules
from svc_daemon.core.uploads import ContentRange, Step
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.operations.contexts import Context
from svc_daemon.operations.ingest import admit
from svc_daemon.operations.replays import Outcome, Repeatable, replaying, store_answer
from svc_daemon.store import uploads as store
from svc_daemon.store.keys import Key
from svc_daemon.store.parts import PartWriter
from svc_daemon.store.sources import find_source
from svc_daemon.store.uploads import Upload
from svc_daemon.wire.codes import ErrorCode

#: An accepted chunk writes the new expiry only when it moves by this much, so that small chunks cost no commit.
EXTEND_STEP_S = 600


@dataclass(frozen=True, slots=True)
class Progress:
    """A session and how far it is."""

    upload: Upload
    state: str
    received_bytes: int
    #: Of all bytes, hex, once they are there.
    sha256: str | None = None


async def create_upload(context: Context, request: Repeatable, wanted: Upload) -> tuple[Upload, Outcome]:
    """Open a session, or find the one that this request opened before; an expired one gets a new life.

    Raises the replay errors, the gates' errors and `storage_full`.
    """
    with replaying(context, request) as earlier:
        if earlier is not None:
            return await reopen_upload(context, earlier.body["session_id"]), earlier
        admit(context, wanted.team_id, wanted.size_bytes)
        return await context.write(lambda connection: _open(connection, context, request, wanted))


async def reopen_upload(context: Context, upload_id: str) -> Upload:
    """The session as a replay answers with it: one that expired unfinished is given a new life and a new token."""
    now = context.clock.timestamp()
    found = context.read(lambda connection: store.find_upload(connection, upload_id))
    if found is None:
        raise NotFound(ErrorCode.SESSION_NOT_FOUND, f"There is no upload session {upload_id!r}.")
    if found.status not in (store.OPEN, store.EXPIRED) or now < found.expires_at:
        return found
    expires_at, ends_at = lifetime(context)
    await context.write(lambda connection: store.renew_upload(connection, upload_id, expires_at, ends_at))
    return replace(found, status=store.OPEN, generation=found.generation + 1, expires_at=expires_at, ends_at=ends_at)


def lifetime(context: Context) -> tuple[str, str]:
    """When a session that begins now expires without a chunk, and when it ends at the latest."""
    return context.clock.timestamp(rules.IDLE_S), context.clock.timestamp(rules.LIFE_S)


def upload_token(context: Context, upload: Upload) -> str:
    """The capability that its URL carries."""
    return rules.token(context.secret, upload.id, upload.generation)


def show_upload(context: Context, key: Key, upload_id: str) -> Progress:
    """How far a session of the key's team is; raises NotFound."""
    return progress_of(context, context.read(lambda connection: store.get_upload(connection, key.team_id, upload_id)))


def progress_of(context: Context, upload: Upload) -> Progress:
    """The session's computed state."""
    received_bytes = upload.size_bytes if upload.status == store.FINALIZED else context.parts.size_bytes(upload.id)
    is_expired = context.clock.timestamp() >= upload.expires_at
    stored = rules.CANCELED if upload.status == store.FAILED else upload.status
    state = rules.state_of(stored, received_bytes, upload.size_bytes, is_expired=is_expired)
    return Progress(upload, state, received_bytes)


def authorize(context: Context, upload_id: str, token: str) -> Upload:
    """The session whose token this is; anything else is `session_not_found`."""
    upload = context.read(lambda connection: store.find_upload(connection, upload_id))
    if upload is None or not rules.is_token(token, context.secret, upload.id, upload.generation):
        raise NotFound(ErrorCode.SESSION_NOT_FOUND, "There is no such upload session.")
    return upload


async def put_bytes(
    context: Context, upload: Upload, asked: ContentRange | None, chunks: AsyncIterator[bytes]
) -> Progress:
    """Take a chunk, or tell how far the session is; what is told as received is durable.

    Raises what `core.uploads.judge_put` raises, `checksum_mismatch`, `size_mismatch`, `storage_full`.
    """
    async with context.writers.hold(upload.id):
        before = progress_of(context, upload)
        verdict = rules.judge_put(before.state, before.received_bytes, upload.size_bytes, asked)
        if verdict.step is Step.TELL:
            return before
        if verdict.step is Step.DONE:
            return replace(before, sha256=await _sha256(context, upload))
        sha256 = await _append(context, upload, verdict, chunks)
    after = progress_of(context, upload)
    await _extend(context, upload)
    if after.state != rules.UPLOADED:
        return after
    return replace(after, sha256=await _checked_hash(context, upload, sha256))


async def cancel_upload(context: Context, key: Key, upload_id: str) -> Progress:
    """End the session and drop its bytes; one that has ended stays as it is."""
    upload = context.read(lambda connection: store.get_upload(connection, key.team_id, upload_id))
    async with context.writers.hold(upload.id, lets_go=False):
        if await context.write(lambda connection: store.finish_upload(connection, upload.id, store.CANCELED)):
            context.parts.delete(upload.id)
    return show_upload(context, key, upload_id)


async def _append(context: Context, upload: Upload, verdict: rules.Verdict, chunks: AsyncIterator[bytes]) -> str | None:
    """Store the body behind what is there; the hash when it is the whole file."""
    writer = await context.parts.open(upload.id)
    try:
        await _fill(writer, upload, verdict, chunks)
    finally:
        # Also when the client is gone: what came is kept, so that it need not be sent again.
        try:
            await writer.sync()
        finally:
            writer.close()
    is_whole = writer.start_bytes == 0 and writer.appended_bytes == upload.size_bytes
    return writer.hash.hexdigest() if is_whole else None


async def _fill(writer: PartWriter, upload: Upload, verdict: rules.Verdict, chunks: AsyncIterator[bytes]) -> None:
    """Append the part of the body that is new; raises `size_mismatch` for a body that says more than it declared."""
    skip, room = verdict.skip_bytes, verdict.take_bytes
    async for chunk in chunks:
        new = chunk[skip:]
        skip = max(skip - len(chunk), 0)
        if len(new) > room:
            raise ServiceError(
                ErrorCode.SIZE_MISMATCH,
                "The body is longer than its range.",
                declared_bytes=upload.size_bytes,
            )
        await writer.append(new)
        room -= len(new)


async def _extend(context: Context, upload: Upload) -> None:
    expires_at, _ = lifetime(context)
    soonest = context.clock.timestamp(rules.IDLE_S - EXTEND_STEP_S)
    if upload.expires_at < min(soonest, upload.ends_at):
        await context.write(lambda connection: store.extend_upload(connection, upload.id, expires_at))


async def _sha256(context: Context, upload: Upload) -> str:
    if upload.status != store.FINALIZED:
        return await context.parts.hash(upload.id)
    source = context.read(lambda connection: find_source(connection, upload.team_id, upload.source_id or ""))
    return source.sha256 if source else ""


async def _checked_hash(context: Context, upload: Upload, sha256: str | None) -> str:
    """The hash of the finished bytes; wrong ones are dropped, so that they can be sent again."""
    actual = sha256 or await context.parts.hash(upload.id)
    if upload.sha256 is not None and upload.sha256 != actual:
        context.parts.delete(upload.id)
        raise ServiceError(ErrorCode.CHECKSUM_MISMATCH, expected=upload.sha256, actual=actual)
    return actual


def _open(connection: Connection, context: Context, request: Repeatable, wanted: Upload) -> tuple[Upload, Outcome]:
    store.create_upload(connection, wanted)
    body = {"session_id": wanted.id, "status": rules.PENDING, "bucket_ids": list(wanted.bucket_ids)}
    store_answer(connection, context, request, body)
    return wanted, Outcome(body)
