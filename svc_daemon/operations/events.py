"""The event log: each change of a source, bucket or batch is recorded in the transaction that makes the change."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from svc_daemon.core import ids, readiness
from svc_daemon.core.access import api_keys
from svc_daemon.core.ids import Ids
from svc_daemon.core.times import to_text
from svc_daemon.databases.contract import Connection, Row
from svc_daemon.errors import ServiceError
from svc_daemon.operations.authorization import get_reachable_bucket, require
from svc_daemon.process.contexts import Context
from svc_daemon.store import events as store
from svc_daemon.store import teams
from svc_daemon.store.buckets import BucketRow
from svc_daemon.store.events import START, EventFilter, NewEvent, Position
from svc_daemon.store.keys import KeyRow
from svc_daemon.store.sources import SourceRow
from svc_daemon.wire import events as wire
from svc_daemon.wire.error_codes import ErrorCode
from svc_daemon.wire.event_types import EventType
from svc_daemon.wire.parsing import parse_json

#: The value of `after` that selects only events from now on.
LATEST = "latest"
#: Number of events read in one query, before they are filtered.
READ_ROWS = 500
#: Maximum number of rows per deletion, so that other writes can run in between.
STEP_ROWS = 1000
#: Maximum length of an unknown event id in an error message.
MOST_ID_CHARACTERS = 60

#: A source's status and readiness after each type of event, as JSON.
_STATES = {
    kind: f', "status": "{status}", "ready": {json.dumps(kind is EventType.SOURCE_READY)}'
    for kind, status in (
        (EventType.SOURCE_QUEUED, readiness.QUEUED),
        (EventType.SOURCE_INDEXING, readiness.INDEXING),
        (EventType.SOURCE_ACTIVE, readiness.ACTIVE),
        (EventType.SOURCE_READY, readiness.ACTIVE),
        (EventType.SOURCE_FAILED, readiness.FAILED),
    )
}
#: Twice as fast as `json.dumps` for a short text, because no options are checked.
_encode = json.JSONEncoder().encode


@dataclass(frozen=True, slots=True)
class EventPage:
    """The events that a key may see, and the position after them."""

    events: list[wire.LogEvent]
    #: Id of the last event read, even if the key may not see that event.
    last_id: str | None
    position: Position
    #: Whether the log may have more events after these.
    has_more: bool


def source_event(
    kind: EventType,
    source: SourceRow,
    bucket_ids: Iterable[str] | None = None,
    key_id: str | None = None,
    **facts: Any,
) -> NewEvent:
    """Build an event about the source; `facts` are added to its data.

    The event names the buckets in `bucket_ids`, or all of the source's buckets if `bucket_ids` is None.
    """
    if kind is EventType.SOURCE_FAILED:
        facts["error"] = source.error
    if source.warnings and kind is EventType.SOURCE_READY:
        facts["warnings"] = source.warnings
    rest = f", {_encode(facts)[1:]}" if facts else "}"
    data = f'{{"title": {_encode(source.title)}{_STATES.get(kind, "")}{rest}'
    places = " ".join(source.places if bucket_ids is None else bucket_ids)
    return NewEvent(str(kind), places, data, source.id, source.batch_id, key_id)


def bucket_event(kind: EventType, bucket: BucketRow, key_id: str | None = None, **facts: Any) -> NewEvent:
    data = {"slug": bucket.slug, "name": bucket.name, "status": bucket.status}
    return NewEvent(str(kind), bucket.id, _encode(data | facts), key_id=key_id)


def maintenance_event(status: str, task_id: str) -> NewEvent:
    return NewEvent(str(EventType.STORE_MAINTENANCE), None, _encode({"status": status, "task_id": task_id}))


def record_events(connection: Connection, make_ids: Ids, team_id: str, new_events: Sequence[NewEvent]) -> list[str]:
    """Add the events to the team's log, in this order, and return their ids."""
    if not new_events:
        return []
    now, event_ids = to_text(make_ids.now()), make_ids.make_many(ids.EVENT, len(new_events))
    store.create_events(connection, team_id, now, event_ids, new_events)
    return event_ids


def choose_events(context: Context, key: KeyRow, chosen: EventFilter, bucket: str | None) -> EventFilter:
    """Return the filter with this bucket (id or slug) added. Raises `bucket_not_found`.

    Raises `forbidden_project_key` if the filter selects another key's events and this key may not manage keys.
    """
    if chosen.key_id not in (None, key.id):
        require(key, api_keys.KEY_MANAGE)
    if bucket is None:
        return chosen
    return replace(chosen, bucket_id=context.look(lambda connection: get_reachable_bucket(connection, key, bucket)).id)


def find_start(context: Context, key: KeyRow, after: str | None) -> tuple[str | None, Position]:
    """Return the id of the event that `after` names, and its position in the log. `after` can be `latest`.

    Raises `events_expired` if the log does not have this event.
    """
    if not after:
        return None, START
    if after == LATEST:
        return context.look(lambda connection: store.find_latest(connection, key.team_id)) or (None, START)
    position = context.look(lambda connection: store.find_position(connection, key.team_id, after))
    if position is None:
        raise ServiceError(
            ErrorCode.EVENTS_EXPIRED,
            f"The event {after[:MOST_ID_CHARACTERS]!r} is no longer kept, or a restore has lost it. Look up the state"
            " of what you wait for, and continue after `latest`.",
        )
    return after, position


def read_events(context: Context, key: KeyRow, chosen: EventFilter, after: Position, limit: int) -> EventPage:
    """Return at most `limit` events after a position that pass the filter, oldest first. Blocks the thread."""
    found: list[wire.LogEvent] = []
    last_id, position = None, after
    while True:
        start = position
        span = context.look(
            lambda connection: store.read_events(connection, key.team_id, chosen, start, READ_ROWS)  # noqa: B023
        )
        for row in span.rows:
            if (event := _view(row, key)) is None:
                continue
            found.append(event)
            if len(found) == limit:
                has_more = span.is_full or row["id"] != span.last_id
                return EventPage(found, row["id"], Position(row["turn"], row["seq"]), has_more=has_more)
        last_id, position = span.last_id or last_id, span.position
        if not span.is_full:
            return EventPage(found, last_id, position, has_more=False)


async def forget_events(context: Context) -> int:
    """Delete events older than the configured limit, in small steps. Returns how many."""
    oldest = context.clock.timestamp(-86400 * context.limits.event_days)
    count = 0
    for team_id in context.read(teams.list_team_ids):
        while context.read(lambda connection: store.has_old_events(connection, team_id, oldest)):  # noqa: B023
            deleted = await context.write(
                lambda connection: store.delete_old_events(connection, team_id, oldest, STEP_ROWS)  # noqa: B023
            )
            count += deleted
    return count


def _view(row: Row, key: KeyRow) -> wire.LogEvent | None:
    """Convert the event to its API form for this key; None if the key can reach none of its buckets."""
    reachable = None if row["bucket_ids"] is None else key.reachable(row["bucket_ids"].split())
    if key.buckets is not None and reachable == []:
        return None
    may_see_key = row["key_id"] == key.id or api_keys.KEY_MANAGE in key.capabilities
    # Skip validation; the values were validated when the row was written.
    return wire.LogEvent.model_construct(
        id=row["id"],
        type=row["type"],
        created_at=row["created_at"],
        bucket_id=reachable[0] if reachable and len(reachable) == 1 else None,
        bucket_ids=reachable,
        source_id=row["source_id"],
        batch_id=row["batch_id"],
        key_id=row["key_id"] if may_see_key else None,
        data=parse_json(row["data"]),
    )
