"""Creates, finalizes and shows batches."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from svc_daemon.core.access import api_keys
from svc_daemon.core.json_bodies import refusals
from svc_daemon.core.uploads import batches as rules
from svc_daemon.core.uploads.batches import RollUp
from svc_daemon.core.uploads.sessions import CANCELED, OPEN, PENDING, UPLOADING
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound
from svc_daemon.operations.ingest.files import admit
from svc_daemon.operations.ingest.finalizing import Finalized, finalize_all, judge_finalize, list_complete
from svc_daemon.operations.ingest.sessions import lifetime, list_progress
from svc_daemon.operations.shared.authorization import refuse_out_of_reach
from svc_daemon.operations.shared.batch_items import BatchItemStatus, end_batches, list_items
from svc_daemon.operations.shared.destination_buckets import Destination, settle_buckets
from svc_daemon.operations.shared.idempotency import Creation, replaying, store_answer
from svc_daemon.operations.shared.reachable_rows import get_usable_bucket
from svc_daemon.process.contexts import Context
from svc_daemon.process.locks import session_lock
from svc_daemon.store.rows import batches as store
from svc_daemon.store.rows import sessions
from svc_daemon.store.rows.batches import BatchRow
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sessions import SessionRow
from svc_daemon.wire.light.error_codes import ErrorCode

#: Maximum total size in bytes of the sessions finalized in one transaction.
STEP_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Opening:
    """A request to create a batch, with its files already checked."""

    batch: BatchRow
    #: Each accepted file's upload session, and the buckets of its source.
    wanted: Sequence[tuple[SessionRow, Destination]]
    #: Each rejected file's `client_file_id` and `error`.
    rejected: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class FinalizeReport:
    """The result of finalizing a batch. Each file is either in `outcomes` or in `pending`."""

    status: str
    outcomes: tuple[Finalized, ...]
    #: The upload sessions that are not finalized yet, each with the reason.
    pending: tuple[tuple[SessionRow, str], ...]


async def create_batch(context: Context, request: Creation, opening: Opening) -> tuple[list[SessionRow], Creation]:
    """Create the batch, with an upload session for each accepted file. Raises ServiceError if the request is refused.

    A repeated request gets the batch of the first request. For the rate limits, a batch counts as one create request.
    """

    def work(connection: Connection) -> tuple[list[SessionRow], Creation]:
        # Most files share their buckets, so look up each set of buckets once.
        shared = {destination.slugs: destination for _, destination in opening.wanted}
        settled = {slugs: settle_buckets(connection, context, request.key, place) for slugs, place in shared.items()}
        opened = [
            # Copy a row only if its buckets have changed, because copying is slow.
            session
            if session.bucket_ids == settled[destination.slugs]
            else replace(session, bucket_ids=settled[destination.slugs])
            for session, destination in opening.wanted
        ]
        bucket_ids = tuple(dict.fromkeys(bucket_id for session in opened for bucket_id in session.bucket_ids))
        store.create_batch(connection, replace(opening.batch, bucket_ids=bucket_ids))
        sessions.create_sessions(connection, opened)
        body = {"batch_id": opening.batch.id, "bucket_ids": list(bucket_ids), "rejected": opening.rejected}
        return opened, store_answer(connection, context, request, body)

    async with replaying(context, request) as earlier:
        if earlier is not None:
            return await _reopen(context, request.key.team_id, earlier.body["batch_id"]), earlier
        # Check only the first request. If it is repeated, files may be rejected because the first request has already
        # replaced their sources.
        refuse_empty(opening)
        await admit(context, request.key.team_id, sum(session.size_bytes for session, _ in opening.wanted))
        return await context.write(work)


def refuse_empty(opening: Opening) -> None:
    """Raise `invalid_request` if every file of the batch is rejected."""
    if not opening.wanted:
        raise refusals([(f"files.{at}", each["error"]["message"]) for at, each in enumerate(opening.rejected)])


def find_batch(context: Context, key: KeyRow, bucket: str, batch_id: str) -> BatchRow:
    """Return the batch in this active bucket; raises NotFound.

    Raises `forbidden_project_key` if the key can't reach all of the batch's buckets.
    """

    def work(connection: Connection) -> BatchRow:
        found = get_usable_bucket(connection, key, bucket)
        batch = _get_reachable(connection, key, batch_id)
        if found.id not in batch.bucket_ids:
            raise NotFound(ErrorCode.BATCH_NOT_FOUND, f"There is no batch {batch_id!r}.")
        refuse_out_of_reach(key, batch.bucket_ids, "batch", api_keys.FILE_CREATE)
        return batch

    return context.read(work)


async def finalize_batch(context: Context, key: KeyRow, batch: BatchRow, *, abandon: bool) -> FinalizeReport:
    """Create sources from the files that are complete. If `abandon` is set, cancel the incomplete files.

    Raises `request_in_progress` while another request is finalizing these files, and `storage_full`.
    """
    members = context.read(lambda connection: sessions.list_sessions(connection, batch.id))
    late = await list_complete(context, members)
    await asyncio.sleep(0)  # let other requests run
    ready = {session.id for session in late}
    others = [session for session in members if session.id not in ready]
    if abandon:
        await _abandon(context, others, key.id)
    outcomes: list[Finalized] = []
    until_s = context.clock.monotonic() + context.limits.finalize_seconds
    while late and context.clock.monotonic() <= until_s:
        ends = accumulate(session.size_bytes for session in late)
        step = [session for session, end in zip(late, ends, strict=True) if end <= STEP_BYTES] or late[:1]
        outcomes += await finalize_all(context, step, key)
        late = late[len(step) :]
    if others:
        outcomes += await finalize_all(context, others, key)
    outcomes.sort(key=lambda outcome: outcome.session.position)
    pending = [(one.session, str(one.error.code)) for one in outcomes if one.error is not None and one.is_pending]
    pending += [(session, "time_budget_exhausted") for session in late]
    ended = tuple(outcome for outcome in outcomes if not outcome.is_pending)
    # The specification requires `partial` even if this call finalized no file, and the batch stays so.
    status = "partial"
    if pending and batch.finalized_at is None:
        now = context.clock.timestamp()
        await context.write(lambda connection: store.mark_finalized(connection, batch.id, now))
    if not pending:
        # New sources are all queued, so their states need not be read.
        is_new = all(outcome.source is not None and not outcome.replayed for outcome in ended)
        rolled = rules.roll_up([(rules.QUEUED, False)] * len(ended), is_expired=False) if is_new else None
        status = (rolled or show_batch(context, key, batch.id)[1]).status
    return FinalizeReport(status, ended, tuple(pending))


async def judge_batch(context: Context, batch: BatchRow) -> list[Finalized]:
    """Return the result that finalizing each file would have, for a dry run. Nothing is stored."""
    members = context.read(lambda connection: sessions.list_sessions(connection, batch.id))
    return [await judge_finalize(context, session) for session in members]


def show_batch(context: Context, key: KeyRow, batch_id: str) -> tuple[BatchRow, RollUp, list[BatchItemStatus]]:
    """Return the batch, its status and the files that the key may see; raises NotFound."""
    now = context.clock.timestamp()

    def work(connection: Connection) -> tuple[BatchRow, RollUp, list[BatchItemStatus]]:
        batch = _get_reachable(connection, key, batch_id)
        members = [each for each in store.list_members(connection, batch.id) if key.reaches(each.bucket_ids)]
        return batch, *list_items(members, now, is_finalized=batch.finalized_at is not None)

    return context.read(work)


def _get_reachable(connection: Connection, key: KeyRow, batch_id: str) -> BatchRow:
    """Return the batch if the key can reach one of the batch's buckets; raises NotFound."""
    batch = store.get_batch(connection, key.team_id, batch_id)
    if not key.reaches(batch.bucket_ids):
        raise NotFound(ErrorCode.BATCH_NOT_FOUND, f"There is no batch {batch_id!r}.")
    return batch


async def _reopen(context: Context, team_id: str, batch_id: str) -> list[SessionRow]:
    """Return the batch's upload sessions for a repeated create request.

    Sessions of an expired batch are renewed.
    """
    batch = context.look(lambda connection: store.get_batch(connection, team_id, batch_id))
    if context.clock.timestamp() < batch.expires_at:
        return context.look(lambda connection: sessions.list_sessions(connection, batch_id))
    _, ends_at = lifetime(context)

    def work(connection: Connection) -> list[SessionRow]:
        store.renew_batch(connection, batch_id, ends_at)
        for session in sessions.list_sessions(connection, batch_id):
            sessions.renew_session(connection, session.id, ends_at, ends_at)
        return sessions.list_sessions(connection, batch_id)

    return await context.write(work)


async def _abandon(context: Context, missing: Sequence[SessionRow], key_id: str) -> None:
    """Cancel the upload sessions whose bytes are incomplete, and interrupt requests that send such bytes."""
    open_ids = [session.id for session in missing if session.status == OPEN]
    async with context.locks.take_over(*map(session_lock, open_ids)):
        measured = await list_progress(context, missing)
        lacking = [one.session for one in measured if one.state in (PENDING, UPLOADING)]

        def work(connection: Connection) -> list[str]:
            ended = [session for session in lacking if sessions.finish_session(connection, session, CANCELED)]
            if ended:
                end_batches(connection, context, ended[0].team_id, (session.batch_id for session in ended), key_id)
            return [session.id for session in ended]

        await context.parts.delete(*await context.write(work))
