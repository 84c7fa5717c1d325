"""The event log: rows that are written in the transaction of what they report, and read in the order of the commits.

The order is that of `turn`, then `seq`; ids follow the wall clock, and don't order. On SQLite there is one writer, so
`seq` alone is the order of the commits. On PostgreSQL many transactions write at a time, and one with a lower `seq` may
be committed after one with a higher: there, `turn` is the number of the transaction, and an event is shown only once no
transaction with a lower number is running. Who has read up to an event has therefore seen all that come before it.

The functions `this_turn` and `unsettled_turn` differ between the engines: see `databases.sqlite` and
`databases.postgres.functions`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from svc_daemon.databases.contract import Connection, Row


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in the log of a team."""

    turn: int = -1
    seq: int = -1


#: Before the first event.
START = Position()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """Something that has happened in a team."""

    id: str
    team_id: str
    #: One of `wire.event_types.EventType`, or one that a later release has written.
    type: str
    #: The buckets that the event is about, as they were; None if it is about the whole team.
    bucket_ids: tuple[str, ...] | None = ()
    source_id: str | None = None
    batch_id: str | None = None
    #: The key whose request caused it; None if the service did it by itself.
    key_id: str | None = None
    data: dict[str, Any] = field(default_factory=dict)
    created_at: str
    #: Assigned when it is stored.
    position: Position = START

    @classmethod
    def from_row(cls, row: Row) -> "EventRow":
        return cls(
            id=row["id"],
            team_id=row["team_id"],
            type=row["type"],
            bucket_ids=None if row["bucket_ids"] is None else tuple(row["bucket_ids"].split()),
            source_id=row["source_id"],
            batch_id=row["batch_id"],
            key_id=row["key_id"],
            data=json.loads(row["data"]),
            created_at=row["created_at"],
            position=Position(row["turn"], row["seq"]),
        )


def create_events(connection: Connection, events: Sequence[EventRow]) -> None:
    """Append the events, in this order."""
    connection.executemany(
        "INSERT INTO events (turn, id, team_id, type, bucket_ids, source_id, batch_id, key_id, data, created_at)"
        " VALUES (this_turn(), :id, :team_id, :type, :bucket_ids, :source_id, :batch_id, :key_id, :data, :created_at)",
        [
            {
                "id": event.id,
                "team_id": event.team_id,
                "type": event.type,
                "bucket_ids": None if event.bucket_ids is None else " ".join(event.bucket_ids),
                "source_id": event.source_id,
                "batch_id": event.batch_id,
                "key_id": event.key_id,
                "data": json.dumps(event.data),
                "created_at": event.created_at,
            }
            for event in events
        ],
    )


def list_events(connection: Connection, team_id: str, after: Position, limit: int) -> list[EventRow]:
    """List the team's events after a position, oldest first, without those that an earlier one may still precede."""
    rows = connection.execute(
        "SELECT turn, seq, id, team_id, type, bucket_ids, source_id, batch_id, key_id, data, created_at FROM events"
        " WHERE team_id = :team_id AND (turn, seq) > (:turn, :seq) AND turn < unsettled_turn()"
        " ORDER BY turn, seq LIMIT :limit",
        {"team_id": team_id, "turn": after.turn, "seq": after.seq, "limit": limit},
    ).fetchall()
    return [EventRow.from_row(row) for row in rows]


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
