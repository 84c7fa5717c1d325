"""Teams, what they have used, their removal, and facts about the installation."""

from collections.abc import Sequence
from dataclasses import dataclass

from svc_daemon.core.access.model_ids import DEFAULT_AGENT
from svc_daemon.core.search.agents import DEFAULT_NAME, EVERYTHING, TeamAgent
from svc_daemon.databases.contract import Connection
from svc_daemon.store.rows.agents import create_agent
from svc_daemon.store.tables import Table, delete_team_rows
from svc_daemon.wire.tasks import TEAM_REMOVAL


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamRow:
    """A stored team. Every bucket, source, agent and API key belongs to a team."""

    id: str
    #: The team's name, unique in the installation.
    name: str
    created_at: str


def create_team(connection: Connection, team_id: str, name: str, created_at: str) -> None:
    """Create the team and its default agent, which searches all active buckets."""
    connection.execute(
        "INSERT INTO teams (id, name, created_at) VALUES (:id, :name, :created_at)",
        {"id": team_id, "name": name, "created_at": created_at},
    )
    default = TeamAgent(
        id=DEFAULT_AGENT,
        team_id=team_id,
        name=DEFAULT_NAME,
        policy=EVERYTHING,
        created_at=created_at,
        updated_at=created_at,
    )
    create_agent(connection, default)


def find_team(connection: Connection, team: str) -> TeamRow | None:
    """Find a team by its id or name; if several match, the oldest."""
    row = connection.execute(
        "SELECT id, name, created_at FROM teams WHERE id = :team OR name = :team ORDER BY id LIMIT 1", {"team": team}
    ).fetchone()
    return TeamRow(**dict(row)) if row else None


def list_teams(connection: Connection) -> list[TeamRow]:
    """List all teams, oldest first."""
    return [TeamRow(**dict(row)) for row in connection.execute("SELECT id, name, created_at FROM teams ORDER BY id")]


def measure_sources(connection: Connection, team_id: str) -> tuple[int, int]:
    """Return the number of the team's sources and the total size of their files in bytes."""
    row = connection.execute(
        "SELECT COUNT(*) AS sources, COALESCE(SUM(size_bytes), 0) AS size_bytes FROM sources WHERE team_id = :team_id",
        {"team_id": team_id},
    ).fetchone()
    return row["sources"], int(row["size_bytes"])


def list_team_ids(connection: Connection) -> list[str]:
    return [row["id"] for row in connection.execute("SELECT id FROM teams ORDER BY id").fetchall()]


def find_answers(connection: Connection, team_id: str, month: str) -> int:
    """Return the team's number of answers and searches in a month such as `2026-01`."""
    row = connection.execute(
        "SELECT answers FROM usage WHERE team_id = :team_id AND month = :month", {"team_id": team_id, "month": month}
    ).fetchone()
    return row["answers"] if row else 0


def add_answers(connection: Connection, team_id: str, month: str, answers: int) -> None:
    connection.execute(
        "INSERT INTO usage (team_id, month, answers) VALUES (:team_id, :month, :answers)"
        " ON CONFLICT (team_id, month) DO UPDATE SET answers = usage.answers + excluded.answers",
        {"team_id": team_id, "month": month, "answers": answers},
    )


#: Tables whose rows are deleted together with the team, because a team without them counts as damaged.
_LAST = ("usage", "agents", "tasks")


def find_removal(connection: Connection, team_id: str) -> str | None:
    """Return the id of the unfinished task that removes the team, or None."""
    row = connection.execute(
        "SELECT id FROM tasks WHERE type = :type AND finished_at IS NULL AND team_id = :team_id",
        {"type": TEAM_REMOVAL, "team_id": team_id},
    ).fetchone()
    return row["id"] if row else None


def revoke_keys(connection: Connection, team_id: str, revoked_at: str) -> None:
    """Revoke all keys of the team."""
    connection.execute(
        "UPDATE keys SET revoked_at = :revoked_at WHERE team_id = :team_id AND revoked_at IS NULL",
        {"team_id": team_id, "revoked_at": revoked_at},
    )


def list_idle_sources(connection: Connection, team_id: str, limit: int) -> list[str]:
    """List up to `limit` of the team's sources that no worker is processing."""
    rows = connection.execute(
        "SELECT s.id FROM sources s WHERE s.team_id = :team_id"
        " AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.source_id = s.id AND t.status = 'running')"
        " ORDER BY s.id LIMIT :limit",
        {"team_id": team_id, "limit": limit},
    ).fetchall()
    return [row["id"] for row in rows]


def is_busy(connection: Connection, team_id: str) -> bool:
    """Whether the team has sources, open uploads, or unfinished tasks other than its removal."""
    (count,) = connection.execute(
        "SELECT (SELECT COUNT(*) FROM sources WHERE team_id = :team_id)"
        " + (SELECT COUNT(*) FROM uploads WHERE status = 'open' AND team_id = :team_id)"
        " + (SELECT COUNT(*) FROM tasks WHERE finished_at IS NULL AND team_id = :team_id AND type <> :type)",
        {"team_id": team_id, "type": TEAM_REMOVAL},
    ).fetchone()
    return bool(count)


def has_uncleaned(connection: Connection, team_id: str) -> bool:
    """Whether bytes of the team's deleted sources remain."""
    row = connection.execute(
        "SELECT 1 FROM tombstones WHERE cleaned_at IS NULL AND team_id = :team_id LIMIT 1", {"team_id": team_id}
    ).fetchone()
    return row is not None


def delete_most_rows(connection: Connection, tables: Sequence[Table], team_id: str, limit: int) -> int:
    """Delete at most `limit` rows of the team, and return how many. Rows that `delete_team` deletes are kept.

    In `tables`, each table must come before those that refer to it.
    """
    kept = {"tasks": f"type = '{TEAM_REMOVAL}'", "agents": "1 = 1", "usage": "1 = 1"}
    deleted = 0
    for table in reversed(tables):
        deleted += delete_team_rows(
            connection, table, team_id, limit - deleted, except_for=kept.get(table.name, "1 = 0")
        )
        if deleted >= limit:
            break
    return deleted


def delete_team(connection: Connection, team_id: str) -> None:
    """Delete the team, and its rows in the tables `_LAST`. Its rows in all other tables must already be deleted."""
    for table in _LAST:
        connection.execute(f"DELETE FROM {table} WHERE team_id = :team_id", {"team_id": team_id})  # noqa: S608
    connection.execute("DELETE FROM teams WHERE id = :team_id", {"team_id": team_id})


def find_fact(connection: Connection, name: str) -> str | None:
    row = connection.execute("SELECT value FROM facts WHERE name = :name", {"name": name}).fetchone()
    return row["value"] if row else None


def list_facts(connection: Connection) -> dict[str, str]:
    return {row["name"]: row["value"] for row in connection.execute("SELECT name, value FROM facts").fetchall()}


def put_fact(connection: Connection, name: str, value: str) -> None:
    """Store the value under the name, replacing any earlier value."""
    connection.execute(
        "INSERT INTO facts (name, value) VALUES (:name, :value)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        {"name": name, "value": value},
    )


def delete_fact(connection: Connection, name: str) -> None:
    connection.execute("DELETE FROM facts WHERE name = :name", {"name": name})


def keep_fact(connection: Connection, name: str, value: str) -> str:
    """Store the value, unless the name has one already. Returns the stored value."""
    connection.execute(
        "INSERT INTO facts (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING",
        {"name": name, "value": value},
    )
    return find_fact(connection, name) or value
