"""Teams: the owner of everything else."""

from sqlite3 import Connection


def create_team(connection: Connection, team_id: str, name: str, created_at: str) -> None:
    connection.execute(
        "INSERT INTO teams (id, name, created_at) VALUES (:id, :name, :created_at)",
        {"id": team_id, "name": name, "created_at": created_at},
    )


def list_team_ids(connection: Connection) -> list[str]:
    return [row["id"] for row in connection.execute("SELECT id FROM teams ORDER BY id").fetchall()]
