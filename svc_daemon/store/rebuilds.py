"""Rebuilds: tasks that make a team's search index anew. A team whose last one is open is in maintenance."""

from sqlite3 import Connection

from svc_daemon.store.tasks import Task


def find_open_rebuild(connection: Connection, team_id: str) -> Task | None:
    """The rebuild that has not ended; the team is in maintenance as long as there is one."""
    row = connection.execute(
        "SELECT * FROM tasks WHERE team_id = :team_id AND type = 'store_rebuild' AND finished_at IS NULL",
        {"team_id": team_id},
    ).fetchone()
    return Task.from_row(row) if row else None


def find_last_rebuild(connection: Connection, team_id: str) -> Task | None:
    """The team's newest, whatever became of it."""
    row = connection.execute(
        "SELECT * FROM tasks WHERE team_id = :team_id AND type = 'store_rebuild' ORDER BY id DESC LIMIT 1",
        {"team_id": team_id},
    ).fetchone()
    return Task.from_row(row) if row else None


def is_in_maintenance(connection: Connection, team_id: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM teams_in_maintenance WHERE team_id = :team_id", {"team_id": team_id}
    ).fetchone()
    return row is not None
