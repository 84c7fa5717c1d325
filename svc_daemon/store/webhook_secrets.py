"""Webhook secrets: which generation each team is at, and since when. The secrets themselves are stored nowhere."""

from dataclasses import dataclass
from sqlite3 import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretGeneration:
    #: Counts the rotations.
    generation: int = 0
    #: None for a team that never rotated.
    rotated_at: str | None = None


def find_generation(connection: Connection, team_id: str) -> SecretGeneration:
    row = connection.execute(
        "SELECT generation, rotated_at FROM webhook_secrets WHERE team_id = :team_id", {"team_id": team_id}
    ).fetchone()
    return SecretGeneration(**dict(row)) if row else SecretGeneration()


def rotate_secret(connection: Connection, team_id: str, rotated_at: str) -> SecretGeneration:
    rows = connection.execute(
        "INSERT INTO webhook_secrets (team_id, generation, rotated_at) VALUES (:team_id, 1, :rotated_at)"
        " ON CONFLICT (team_id) DO UPDATE SET generation = webhook_secrets.generation + 1,"
        " rotated_at = excluded.rotated_at RETURNING generation, rotated_at",
        {"team_id": team_id, "rotated_at": rotated_at},
    ).fetchall()
    return SecretGeneration(**dict(rows[0]))
