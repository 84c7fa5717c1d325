"""The event log of each team, which clients read to follow changes.

An event is written in the same transaction as the change that it reports. Events are read sorted by `turn`, then by
`seq`. A new event never sorts before an event that a client has read.

- SQLite has one writer at a time, so sorting by `seq` is enough.
- In PostgreSQL, an event with a lower `seq` may be committed later. So `turn` is the number of the transaction, and an
  event is shown only once no transaction with a lower number is running. Otherwise, clients could miss events.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from svc_daemon.databases.contract import Connection, Row


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """How far a client has read a team's event log: `turn` and `seq` of the last event read."""

    turn: int = -1
    seq: int = -1


#: The position before the first event of any log.
START = Position()


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events to list; None means any."""

    types: frozenset[str] | None = None
    bucket_id: str | None = None
    key_id: str | None = None
    #: Only events about one of these buckets or the whole team.
    reachable: frozenset[str] | None = None

    def admits(self, row: Row) -> bool:
        if self.types is not None and row["type"] not in self.types:
            return False
        if self.key_id is not None and row["key_id"] != self.key_id:
            return False
        if row["bucket_ids"] is None or (self.bucket_id is None and self.reachable is None):
            return True
        bucket_ids = row["bucket_ids"].split()
        is_about = self.bucket_id is None or self.bucket_id in bucket_ids
        return is_about and (self.reachable is None or not self.reachable.isdisjoint(bucket_ids))


@dataclass(frozen=True, slots=True)
class EventSpan:
    """The result of reading a part of the event log."""

    #: The matching events, oldest first, as rows of the table.
    rows: list[Row]
    #: Id of the last event read, even if the filter excluded this event; None if no event was read.
    last_id: str | None
    position: Position
    #: Whether the limit was reached. The log may then have more events.
    is_full: bool


class NewEvent(NamedTuple):
    """An event to add to the log."""

    type: str
    #: Ids of the event's buckets, separated by spaces; None for the whole team.
    bucket_ids: str | None
    #: What the event reports, as a JSON text.
    data: str
    source_id: str | None = None
    batch_id: str | None = None
    #: The API key whose request caused the event, if any.
    key_id: str | None = None


def create_events(
    connection: Connection, team_id: str, created_at: str, event_ids: Sequence[str], events: Sequence[NewEvent]
) -> None:
    """Append a team's events to the log, in this order."""
    connection.executemany(
        "INSERT INTO events (turn, id, team_id, created_at, type, bucket_ids, data, source_id, batch_id, key_id)"
        " VALUES (this_turn(), ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(event_id, team_id, created_at, *event) for event_id, event in zip(event_ids, events, strict=True)],
    )


def read_events(connection: Connection, team_id: str, chosen: EventFilter, after: Position, limit: int) -> EventSpan:
    """Read at most `limit` of the team's events after a position.

    Events that the filter excludes count towards the limit, so that no read takes long. An event is held back while a
    running transaction may still add an earlier event.
    """
    # With `(turn, seq) > (:turn, :seq)`, SQLite would read all earlier events of the same turn: in SQLite, all events.
    rows = connection.execute(
        "SELECT * FROM events"
        " WHERE team_id = :team_id AND turn = :turn AND seq > :seq AND :turn < unsettled_turn()"
        " UNION ALL SELECT * FROM events WHERE team_id = :team_id AND turn > :turn AND turn < unsettled_turn()"
        " ORDER BY turn, seq LIMIT :limit",
        {"team_id": team_id, "turn": after.turn, "seq": after.seq, "limit": limit},
    ).fetchall()
    if not rows:
        return EventSpan([], None, after, is_full=False)
    last = rows[-1]
    passing = [row for row in rows if chosen.admits(row)]
    return EventSpan(passing, last["id"], Position(last["turn"], last["seq"]), is_full=len(rows) == limit)


def find_event(connection: Connection, team_id: str, event_id: str) -> tuple[Position, str | None] | None:
    """Return the event's position and `bucket_ids`; None if the log doesn't have this event."""
    row = connection.execute(
        "SELECT turn, seq, bucket_ids FROM events WHERE id = :id AND team_id = :team_id",
        {"id": event_id, "team_id": team_id},
    ).fetchone()
    return (Position(row["turn"], row["seq"]), row["bucket_ids"]) if row else None


def find_latest(connection: Connection, team_id: str) -> tuple[str, Position] | None:
    """Return id and position of the last event that `read_events` would return; None if there is none."""
    row = connection.execute(
        "SELECT id, turn, seq FROM events WHERE team_id = :team_id AND turn < unsettled_turn()"
        " ORDER BY turn DESC, seq DESC LIMIT 1",
        {"team_id": team_id},
    ).fetchone()
    return (row["id"], Position(row["turn"], row["seq"])) if row else None


def has_old_events(connection: Connection, team_id: str, oldest: str) -> bool:
    """Whether the team has several events, and the first one is older than `oldest`."""
    rows = connection.execute(
        "SELECT created_at FROM events WHERE team_id = :team_id ORDER BY turn, seq LIMIT 2", {"team_id": team_id}
    ).fetchall()
    return len(rows) > 1 and rows[0]["created_at"] < oldest


def delete_old_events(connection: Connection, team_id: str, oldest: str, limit: int) -> int:
    """Delete up to `limit` of the team's events from before `oldest`, oldest first. Returns their number.

    The last event is always kept, because clients that have read everything continue after its id.
    """
    rows = connection.execute(
        "SELECT id, created_at FROM events WHERE team_id = :team_id ORDER BY turn, seq LIMIT :limit",
        {"team_id": team_id, "limit": limit + 1},
    ).fetchall()
    young = next((place for place, row in enumerate(rows) if row["created_at"] >= oldest), len(rows))
    old = [row["id"] for row in rows[: min(young, len(rows) - 1)]]
    connection.execute("DELETE FROM events WHERE id IN (SELECT value FROM json_each(:ids))", {"ids": json.dumps(old)})
    return len(old)
