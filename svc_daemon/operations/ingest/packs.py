"""Receives the bytes of a batch's files as a pack: one after another, in one body."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from svc_daemon.core.uploads import packs
from svc_daemon.core.uploads import sessions as rules
from svc_daemon.core.uploads.packs import PackItem
from svc_daemon.core.uploads.sessions import Step
from svc_daemon.errors import NotFound
from svc_daemon.operations.ingest.sessions import ChunkBody, receive
from svc_daemon.process.contexts import Context
from svc_daemon.process.locks import session_lock
from svc_daemon.store.rows import sessions
from svc_daemon.store.rows.sessions import PackMember, SessionRow
from svc_daemon.wire.light.error_codes import ErrorCode


@dataclass(frozen=True, slots=True)
class PackProgress:
    """A pack's files, its state, and how many of its bytes have been received."""

    items: Sequence[PackItem]
    state: str
    received_bytes: int
    size_bytes: int


def has_pack(context: Context, members: Sequence[SessionRow]) -> bool:
    """Return whether the batch of these sessions is small enough to be sent as a pack."""
    return sum(session.size_bytes for session in members) <= context.limits.pack_bytes


def pack_token(context: Context, batch_id: str, members: Sequence[SessionRow | PackMember]) -> str:
    """Return the secret token of the pack's URL, which allows sending all files of the pack."""
    return rules.token(context.secret, batch_id, max(session.generation for session in members))


def authorize_pack(context: Context, batch_id: str, token: str) -> list[PackMember]:
    """Return the pack's upload sessions if the token is valid; otherwise raises `session_not_found`."""
    members = context.look(lambda connection: sessions.list_pack_members(connection, batch_id))
    generation = max((member.generation for member in members), default=0)
    if not members or not rules.is_token(token, context.secret, batch_id, generation):
        raise NotFound(ErrorCode.SESSION_NOT_FOUND, "There is no such upload session.")
    return members


async def put_pack(context: Context, batch_id: str, members: Sequence[PackMember], sending: ChunkBody) -> PackProgress:
    """Receive bytes of a pack, if the request has any. Returns the pack's progress.

    Raises ServiceError if the bytes are refused, and `request_in_progress` if another request has taken over one of the
    upload sessions.
    """
    async with context.locks.take_over(*map(session_lock, (batch_id, *(member.id for member in members)))) as hold:
        before = await _read_progress(context, batch_id)
        verdict = rules.judge_put(before.state, before.received_bytes, before.size_bytes, sending.asked)
        if verdict.step is not Step.TAKE:
            return before
        first = before.received_bytes
        writer = context.parts.writer(before.items, first, first + verdict.take_bytes)
        taken = replace(sending, chunks=hold.arriving(sending.chunks))
        await receive(context, writer, verdict, before.size_bytes, taken)
        return await _read_progress(context, batch_id)


async def _read_progress(context: Context, batch_id: str) -> PackProgress:
    """Compute the pack's progress from its upload sessions, after making the received bytes durable."""
    members = context.look(lambda connection: sessions.list_pack_members(connection, batch_id))
    stored = await context.parts.settle(*(member.id for member in members))
    items = packs.place_items(
        # A session that has ended needs no more bytes.
        (member.id, member.size_bytes, size if member.status == rules.OPEN else member.size_bytes)
        for member, size in zip(members, stored, strict=True)
    )
    received_bytes, size_bytes = packs.received_bytes(items), sum(item.size_bytes for item in items)
    statuses = {member.status for member in members}
    now = context.clock.timestamp()
    is_expired = any(rules.is_expired(member.status, member.expires_at, now) for member in members)
    state = packs.state_of(statuses, received_bytes, size_bytes, is_expired=is_expired)
    return PackProgress(items, state, received_bytes, size_bytes)
