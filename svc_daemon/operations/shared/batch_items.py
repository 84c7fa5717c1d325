"""Determines the status of each file in a batch, and records when the batch has ended."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from svc_daemon.core import readiness
from svc_daemon.core.uploads import batches as rules
from svc_daemon.core.uploads import sessions
from svc_daemon.core.uploads.batches import RollUp
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ServiceError
from svc_daemon.operations.shared.events import record_events
from svc_daemon.process.contexts import Context
from svc_daemon.store.columns import read_object
from svc_daemon.store.rows import batches as store
from svc_daemon.store.rows.batches import BatchMember
from svc_daemon.store.rows.events import NewEvent
from svc_daemon.wire.events import EventType
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.sources import SourceError


@dataclass(frozen=True, slots=True)
class BatchItemStatus:
    """The status of one file in a batch of uploads."""

    member: BatchMember
    #: One of the item states in `core.uploads.batches`.
    state: str
    #: Whether searches find the source now. False while the search index is being rebuilt.
    ready: bool
    error: SourceError | None


def list_items(
    members: Iterable[BatchMember], now: str, *, is_finalized: bool = False
) -> tuple[RollUp, list[BatchItemStatus]]:
    """Return the overall status of a batch with these files at the time `now`, and the status of each file.

    `is_finalized`: the batch was finalized with files missing.
    """
    items = [_item(member, now) for member in members]
    states = [(item.state, item.ready) for item in items]
    has_expired = _EXPIRED in [item.error for item in items]
    return rules.roll_up(states, is_expired=has_expired, is_finalized=is_finalized), items


def end_batches(
    connection: Connection, context: Context, team_id: str, batch_ids: Iterable[str | None], key_id: str | None = None
) -> None:
    """Record that a batch has ended, for each batch in which every file is finished.

    `batch_ids` may contain duplicates and None. Call this in the transaction that finishes a file.
    """
    ended: list[NewEvent] = []
    now = context.clock.timestamp()
    for batch_id in sorted({each for each in batch_ids if each is not None}):
        if not store.may_have_ended(connection, batch_id):
            continue
        members = store.list_members(connection, batch_id)
        status, _ = list_items(members, now)
        if not status.terminal:
            continue
        store.end_batch(connection, batch_id, now)
        ended.append(
            NewEvent(
                str(EventType.BATCH_EXPIRED if status.status == "expired" else EventType.BATCH_COMPLETED),
                " ".join(dict.fromkeys(bucket_id for member in members for bucket_id in member.bucket_ids)),
                json.dumps({"status": status.status, "ready": status.ready, "counters": status.counters}),
                batch_id=batch_id,
                key_id=key_id,
            )
        )
    record_events(connection, context.ids, team_id, ended)


def _item(member: BatchMember, now: str) -> BatchItemStatus:
    """Return a file's status: the status of its upload session or, once the upload is finalized, of its source."""
    if member.session_status == sessions.FAILED:
        return BatchItemStatus(member, rules.FAILED, ready=False, error=_read_error(member, member.session_error))
    if member.session_status == sessions.CANCELED:
        return BatchItemStatus(
            member, rules.GIVEN_UP, ready=False, error=ServiceError(ErrorCode.SESSION_CANCELED).as_error()
        )
    if sessions.is_expired(member.session_status, member.expires_at, now):
        return BatchItemStatus(member, rules.GIVEN_UP, ready=False, error=_EXPIRED)
    if member.session_status != sessions.FINALIZED:
        return BatchItemStatus(member, rules.PENDING, ready=False, error=None)
    if member.source_status is None:
        return BatchItemStatus(
            member, rules.DELETED, ready=False, error=ServiceError(ErrorCode.SOURCE_NOT_FOUND).as_error()
        )
    places = [place.partition(" ")[2] for place in (member.places or "").split(",") if place]
    ready = readiness.is_ready(member.source_status, places)
    is_detached = member.source_status == rules.ACTIVE and not places
    state = rules.DETACHED if is_detached else member.source_status
    return BatchItemStatus(member, state, ready=ready, error=_read_error(member, member.source_error))


_EXPIRED = ServiceError(ErrorCode.SESSION_EXPIRED).as_error()


def _read_error(member: BatchMember, error: str | None) -> SourceError | None:
    found: SourceError | None = read_object(error, "error", {"id": member.session_id})
    return found
