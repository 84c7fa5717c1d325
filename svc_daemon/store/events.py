"""The event log: rows that are written in the transaction of what they report, and read in the order of the commits.

The order is that of `turn`, then `seq`; ids follow the wall clock, and don't order. On SQLite there is one writer, so
`seq` alone is the order of the commits. On PostgreSQL many transactions write at a time, and one with a lower `seq` may
be committed after one with a higher: there, `turn` is the number of the transaction, and an event is shown only once no
transaction with a lower number is running. Who has read up to an event has therefore seen all that come before it.

The functions `this_turn` and `unsettled_turn` differ between the engines: see `databases.sqlite` and
`databases.postgres.functions`.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from svc_daemon.databases.contract import Connection, Parameters, Row


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in the log of a team."""

    turn: int = -1
    seq: int = -1


#: Before the first event.
START = Position()


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events to list; None means any."""

    types: frozenset[str] | None = None
    bucket_id: str | None = None
    key_id: str | None = None


@dataclass(frozen=True, slots=True)
class EventSpan:
    """What was read of the log."""

    #: Those events that pass the filter, oldest first, with the columns of the table.
    rows: list[Row]
    #: The last event that was read, even if it doesn't pass; None if there was none.
    last_id: str | None
    position: Position
    #: Whether the limit was reached, so that there may be more.
    is_full: bool


def create_events(connection: Connection, events: Iterable[Parameters]) -> None:
    """Append events, in this order.

    Each has the columns of the table but for the first two; `bucket_ids` are separated by spaces, or None if the event
    is about the whole team, and `data` is JSON. They are no objects: a small document has four of them.
    """
    connection.executemany(
        "INSERT INTO events (turn, id, team_id, type, bucket_ids, source_id, batch_id, key_id, data, created_at)"
        " VALUES (this_turn(), :id, :team_id, :type, :bucket_ids, :source_id, :batch_id, :key_id, :data, :created_at)",
        events,
    )


def read_events(connection: Connection, team_id: str, chosen: EventFilter, after: Position, limit: int) -> EventSpan:
    """Read at most `limit` of the team's events after a position, without those that an earlier one may still precede.

    The filter is applied here: events that don't pass count for the limit, so that a read never takes long.
    """
    rows = connection.execute(
        "SELECT turn, seq, id, team_id, type, bucket_ids, source_id, batch_id, key_id, data, created_at FROM events"
        " WHERE team_id = :team_id AND (turn, seq) > (:turn, :seq) AND turn < unsettled_turn()"
        " ORDER BY turn, seq LIMIT :limit",
        {"team_id": team_id, "turn": after.turn, "seq": after.seq, "limit": limit},
    ).fetchall()
    if not rows:
        return EventSpan([], None, after, is_full=False)
    passing = [row for row in rows if chosen.types is None or row["type"] in chosen.types]
    if chosen.key_id is not None:
        passing = [row for row in passing if row["key_id"] == chosen.key_id]
    if chosen.bucket_id is not None:
        passing = [row for row in passing if row["bucket_ids"] is None or chosen.bucket_id in row["bucket_ids"].split()]
    last = rows[-1]
    return EventSpan(passing, last["id"], Position(last["turn"], last["seq"]), is_full=len(rows) == limit)


def find_position(connection: Connection, team_id: str, event_id: str) -> Position | None:
    """Return the place of an event; None if the log doesn't have it, or not any more."""
    row = connection.execute(
        "SELECT turn, seq FROM events WHERE id = :id AND team_id = :team_id", {"id": event_id, "team_id": team_id}
    ).fetchone()
    return Position(row["turn"], row["seq"]) if row else None


def find_latest(connection: Connection, team_id: str) -> tuple[str, Position] | None:
    """Return id and place of the team's latest event that is shown; None if there is none."""
    row = connection.execute(
        "SELECT id, turn, seq FROM events WHERE team_id = :team_id AND turn < unsettled_turn()"
        " ORDER BY turn DESC, seq DESC LIMIT 1",
        {"team_id": team_id},
    ).fetchone()
    return (row["id"], Position(row["turn"], row["seq"])) if row else None


def has_old_events(connection: Connection, team_id: str, oldest: str) -> bool:
    """Whether the team's first event is from before `oldest`, and isn't the only one."""
    rows = connection.execute(
        "SELECT created_at FROM events WHERE team_id = :team_id ORDER BY turn, seq LIMIT 2", {"team_id": team_id}
    ).fetchall()
    return len(rows) > 1 and rows[0]["created_at"] < oldest


def delete_old_events(connection: Connection, team_id: str, oldest: str, limit: int) -> int:
    """Delete the team's first events, up to the first from after `oldest`, and return how many.

    The latest event is kept, however old: a client that has read everything knows it, and may go on from there.
    """
    rows = connection.execute(
        "SELECT id, created_at FROM events WHERE team_id = :team_id ORDER BY turn, seq LIMIT :limit",
        {"team_id": team_id, "limit": limit + 1},
    ).fetchall()
    young = next((place for place, row in enumerate(rows) if row["created_at"] >= oldest), len(rows))
    old = [row["id"] for row in rows[: min(young, len(rows) - 1)]]
    connection.execute("DELETE FROM events WHERE id IN (SELECT value FROM json_each(:ids))", {"ids": json.dumps(old)})
    return len(old)
