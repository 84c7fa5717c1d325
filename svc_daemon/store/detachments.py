"""Detachments: sources whose index rows may still name a bucket that they have left, or an old title."""

from dataclasses import dataclass
from sqlite3 import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Detachment:
    source_id: str
    team_id: str


def create_detachment(connection: Connection, team_id: str, source_id: str) -> None:
    connection.execute(
        "INSERT INTO detachments (source_id, team_id) VALUES (:source_id, :team_id) ON CONFLICT (source_id) DO NOTHING",
        {"source_id": source_id, "team_id": team_id},
    )


def list_detachments(connection: Connection, *, after: str = "", limit: int) -> list[Detachment]:
    """Up to `limit` of them behind the source id `after`, in the order of the ids; none of a team in maintenance."""
    rows = connection.execute(
        "SELECT source_id, team_id FROM detachments WHERE source_id > :after"
        " AND NOT EXISTS (SELECT 1 FROM teams_in_maintenance r WHERE r.team_id = detachments.team_id)"
        " ORDER BY source_id LIMIT :limit",
        {"after": after, "limit": limit},
    ).fetchall()
    return [Detachment(**dict(row)) for row in rows]


def delete_detachment(connection: Connection, source_id: str) -> None:
    connection.execute("DELETE FROM detachments WHERE source_id = :source_id", {"source_id": source_id})
