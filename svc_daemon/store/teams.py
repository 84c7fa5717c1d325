"""Teams: the owner of everything else."""

from dataclasses import dataclass
from sqlite3 import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """One team as stored."""

    id: str
    #: Unique in the installation.
    name: str
    created_at: str


def create_team(connection: Connection, team_id: str, name: str, created_at: str) -> None:
    connection.execute(
        "INSERT INTO teams (id, name, created_at) VALUES (:id, :name, :created_at)",
        {"id": team_id, "name": name, "created_at": created_at},
    )


def find_team(connection: Connection, team: str) -> Team | None:
    """By id or by name, the oldest where several have it."""
    row = connection.execute(
        "SELECT id, name, created_at FROM teams WHERE id = :team OR name = :team ORDER BY id LIMIT 1", {"team": team}
    ).fetchone()
    return Team(**dict(row)) if row else None


def list_teams(connection: Connection) -> list[Team]:
    """Every team, oldest first."""
    return [Team(**dict(row)) for row in connection.execute("SELECT id, name, created_at FROM teams ORDER BY id")]


def list_team_ids(connection: Connection) -> list[str]:
    return [row["id"] for row in connection.execute("SELECT id FROM teams ORDER BY id").fetchall()]
