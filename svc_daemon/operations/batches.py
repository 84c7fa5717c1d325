"""Batches: create with a session per accepted file, finalize again and again, roll the status up from the files."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from sqlite3 import Connection
from typing import Any

from svc_daemon.core import batches as rules
from svc_daemon.core import readiness
from svc_daemon.core.batches import RollUp
from svc_daemon.core.uploads import UPLOADED
from svc_daemon.errors import ServiceError
from svc_daemon.operations.contexts import Context
from svc_daemon.operations.finalizing import Finalized, finalize_all
from svc_daemon.operations.ingest import admit
from svc_daemon.operations.replays import Outcome, Repeatable, replaying, store_answer
from svc_daemon.operations.uploads import progress_of, reopen_upload
from svc_daemon.store import batches as store
from svc_daemon.store import uploads
from svc_daemon.store.batches import Batch, BatchMember
from svc_daemon.store.keys import Key
from svc_daemon.store.uploads import Upload
from svc_daemon.wire.codes import ErrorCode

#: A finalize stops taking on more after this long; what is left is pending, `time_budget_exhausted`.
FINALIZE_BUDGET_S = 20.0
#: Sessions finalized in one transaction.
STEP = 25


@dataclass(frozen=True, slots=True)
class Item:
    """One file of a batch as its status shows it."""

    member: BatchMember
    #: A state of `core.batches`.
    state: str
    ready: bool
    error: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Report:
    """What a finalize did: every file of the batch is in exactly one of the three."""

    status: str
    outcomes: tuple[Finalized, ...]
    #: Sessions without all their bytes, and why they are not finalized.
    pending: tuple[tuple[Upload, str], ...]


async def create_batch(
    context: Context, request: Repeatable, batch: Batch, wanted: Sequence[Upload], rejected: list[dict[str, Any]]
) -> tuple[list[Upload], Outcome]:
    """Open the batch with a session per accepted file, or find the one that this request opened before.

    A batch counts as one create; its bytes are charged together. Raises the replay errors and the gates' errors.
    """
    with replaying(context, request) as earlier:
        if earlier is not None:
            members = context.read(lambda connection: uploads.list_uploads(connection, earlier.body["batch_id"]))
            return [await reopen_upload(context, upload.id) for upload in members], earlier
        admit(context, batch.team_id, sum(upload.size_bytes for upload in wanted))
        body = {"batch_id": batch.id, "bucket_ids": list(batch.bucket_ids), "rejected": rejected}

        def work(connection: Connection) -> Outcome:
            store.create_batch(connection, batch)
            for upload in wanted:
                uploads.create_upload(connection, upload)
            store_answer(connection, context, request, body)
            return Outcome(body)

        return list(wanted), await context.write(work)


async def finalize_batch(context: Context, key: Key, batch_id: str, *, abandon: bool) -> Report:
    """Make sources of the files whose bytes are there; with `abandon`, give up the rest so that the batch can end."""
    batch = context.read(lambda connection: store.get_batch(connection, key.team_id, batch_id))
    members = context.read(lambda connection: uploads.list_uploads(connection, batch.id))
    states = {upload.id: progress_of(context, upload).state for upload in members}
    missing = [upload for upload in members if upload.status == uploads.OPEN and states[upload.id] != UPLOADED]
    chosen = [upload for upload in members if upload not in missing]
    outcomes, late = await _finalize_in_steps(context, chosen)
    if abandon:
        await _abandon(context, missing)
    ended = [upload for upload in missing if abandon or states[upload.id] == "expired"]
    lost = [Finalized(upload, error=_lost(abandon=abandon)) for upload in ended]
    pending = [(upload, "blob_not_uploaded") for upload in missing if upload not in ended]
    pending += [(upload, "time_budget_exhausted") for upload in late]
    rolled, _ = show_batch(context, key, batch_id)[1:]
    return Report(rolled.status, (*outcomes, *lost), tuple(pending))


def show_batch(context: Context, key: Key, batch_id: str) -> tuple[Batch, RollUp, list[Item]]:
    """The batch, its status and its files, in one snapshot."""
    now = context.clock.timestamp()

    def work(connection: Connection) -> tuple[Batch, RollUp, list[Item]]:
        batch = store.get_batch(connection, key.team_id, batch_id)
        items = [_item(member, now) for member in store.list_members(connection, batch.id)]
        states = [(item.state, item.ready) for item in items]
        return batch, rules.roll_up(states, is_expired=now >= batch.expires_at), items

    return context.read(work)


async def _finalize_in_steps(context: Context, chosen: Sequence[Upload]) -> tuple[list[Finalized], list[Upload]]:
    """The outcomes, and what the time budget left over."""
    outcomes: list[Finalized] = []
    until_s = context.clock.monotonic() + FINALIZE_BUDGET_S
    for start in range(0, len(chosen), STEP):
        if context.clock.monotonic() > until_s:
            return outcomes, list(chosen[start:])
        outcomes += await finalize_all(context, chosen[start : start + STEP])
    return outcomes, []


async def _abandon(context: Context, missing: Iterable[Upload]) -> None:
    given_up = list(missing)

    def work(connection: Connection) -> None:
        for upload in given_up:
            uploads.finish_upload(connection, upload.id, uploads.CANCELED)

    await context.write(work)
    for upload in given_up:
        context.parts.delete(upload.id)


def _lost(*, abandon: bool) -> ServiceError:
    return ServiceError(ErrorCode.SESSION_CANCELED if abandon else ErrorCode.SESSION_EXPIRED)


def _item(member: BatchMember, now: str) -> Item:
    """The file's state: its session's until it is finalized, then its source's."""
    if member.upload_status == uploads.OPEN:
        state = rules.GIVEN_UP if now >= member.expires_at else rules.PENDING
        return Item(member, state, ready=False, error=None)
    if member.upload_status != uploads.FINALIZED:
        return Item(member, rules.GIVEN_UP, ready=False, error=_parsed(member.upload_error))
    if member.source_status is None:
        return Item(member, rules.DELETED, ready=False, error=None)
    places = [place.partition(" ")[2] for place in (member.places or "").split(",") if place]
    ready = readiness.is_ready(member.source_status, places)
    return Item(member, member.source_status, ready=ready, error=_parsed(member.source_error))


def _parsed(error: str | None) -> dict[str, Any] | None:
    return json.loads(error) if error else None


def in_batch(upload: Upload, batch: Batch, position: int, client_file_id: str) -> Upload:
    """The session as a member of the batch."""
    return replace(
        upload, batch_id=batch.id, client_file_id=client_file_id, position=position, expires_at=batch.expires_at
    )
