"""The event log: each change of a source, bucket or batch is recorded in the transaction that makes the change."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from svc_daemon.core import ids, readiness
from svc_daemon.core.access import api_keys
from svc_daemon.core.access.event_cursors import PREFIX, EventCursors
from svc_daemon.core.ids import Ids
from svc_daemon.core.times import to_text
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ServiceError
from svc_daemon.operations.shared.authorization import require
from svc_daemon.operations.shared.reachable_rows import get_reachable_bucket
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows import events as store
from svc_daemon.store.rows import teams
from svc_daemon.store.rows.batches import list_batch_buckets
from svc_daemon.store.rows.buckets import BucketRow
from svc_daemon.store.rows.events import START, EventFilter, NewEvent, Position
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sources.sources import SourceRow
from svc_daemon.wire.events import EventType
from svc_daemon.wire.light.error_codes import ErrorCode

#: The value of `after` that selects only events from now on.
LATEST = "latest"
#: Maximum number of events read at once. Between two reads, other readers have their turn.
READ_ROWS = 256
#: Maximum number of rows per deletion, so that other writes can run in between.
STEP_ROWS = 1000
#: Maximum length of an unknown `after` in an error message.
MOST_AFTER_CHARACTERS = 60

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
class StoredEvent:
    """An event as a key may see it."""

    id: str
    type: str
    #: The `LogEvent` as JSON, in ASCII. The stored data becomes a part of it without being parsed.
    body: str


@dataclass(frozen=True, slots=True)
class EventPage:
    """The events that a key may see, and the position after them."""

    events: Sequence[StoredEvent]
    #: Id of the last event read, even if the key may not see that event; None if no event was read.
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
    """Return the filter with this bucket (id or slug) and the key's buckets added. Raises `bucket_not_found`.

    Raises `forbidden_project_key` if the filter selects another key's events and this key may not manage keys.
    """
    if chosen.key_id not in (None, key.id):
        require(key, api_keys.KEY_MANAGE)
    chosen = replace(chosen, reachable=None if key.buckets is None else frozenset(key.buckets))
    if bucket is None:
        return chosen
    return replace(chosen, bucket_id=context.look(lambda connection: get_reachable_bucket(connection, key, bucket)).id)


def find_start(context: Context, key: KeyRow, after: str | None) -> tuple[str | None, Position]:
    """Return the id of the event that `after` names, and its position in the log.

    `after` can be a cursor, the id of an event that the key may see, or `latest`. Raises `events_expired` if it is
    neither, or if the log does not have this event.
    """
    if not after:
        return None, START
    if after == LATEST:
        return context.look(lambda connection: store.find_latest(connection, key.team_id)) or (None, START)
    is_cursor = after.startswith(PREFIX)
    event_id = cursors_for(context, key).find_event_id(after) if is_cursor else after
    found = event_id and context.look(lambda connection: store.find_event(connection, key.team_id, event_id))
    if found:
        position, bucket_ids = found
        if is_cursor or bucket_ids is None or key.reaches(bucket_ids.split()):
            return event_id, position
    raise ServiceError(
        ErrorCode.EVENTS_EXPIRED,
        f"The place {after[:MOST_AFTER_CHARACTERS]!r} in the log is no longer kept, or a restore has lost it. Look up"
        " the state of what you wait for, and continue after `latest`.",
    )


def cursors_for(context: Context, key: KeyRow) -> EventCursors:
    """Return the cursors of this key's team."""
    return EventCursors.of_team(context.secret, key.team_id)


def read_events(context: Context, key: KeyRow, chosen: EventFilter, after: Position, rows: int) -> EventPage:
    """Read the next `rows` events after a position, and return those that pass the filter, oldest first.

    Blocks the thread.
    """
    span = context.look(lambda connection: store.read_events(connection, key.team_id, chosen, after, rows))
    hidden: set[str] = set()
    if key.is_limited:
        # A source may come into a bucket later than its batch, which was for other buckets.
        batch_ids = {row["batch_id"] for row in span.rows if row["batch_id"]}
        places = context.look(lambda connection: list_batch_buckets(connection, batch_ids)) if batch_ids else {}
        hidden = {each for each in batch_ids if not key.reaches(places.get(each, ()))}
    may_see_keys = api_keys.KEY_MANAGE in key.capabilities
    # Most events of a part are about the same buckets.
    buckets = {text: _encode_buckets(text, key) for text in {row["bucket_ids"] for row in span.rows}}
    events = [
        StoredEvent(
            row["id"],
            row["type"],
            # Ids, types and times have no characters to escape. To encode them like any text takes twice as long.
            f'{{"id":"{row["id"]}","object":"event","type":"{row["type"]}","created_at":"{row["created_at"]}",'
            f'{buckets[row["bucket_ids"]]},"source_id":{_quote(row["source_id"])},'
            f'"batch_id":{_quote(None if row["batch_id"] in hidden else row["batch_id"])},'
            f'"key_id":{_quote(row["key_id"] if may_see_keys or row["key_id"] == key.id else None)},'
            f'"data":{row["data"]}}}',
        )
        for row in span.rows
    ]
    return EventPage(events, span.last_id, span.position, span.is_full)


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


def _encode_buckets(bucket_ids: str | None, key: KeyRow) -> str:
    """Encode an event's fields about buckets, without those that the key can't reach."""
    reachable = None if bucket_ids is None else key.reachable(bucket_ids.split())
    one = reachable[0] if reachable and len(reachable) == 1 else None
    return json.dumps({"bucket_id": one, "bucket_ids": reachable}, separators=(",", ":"))[1:-1]


def _quote(plain: str | None) -> str:
    return "null" if plain is None else f'"{plain}"'
