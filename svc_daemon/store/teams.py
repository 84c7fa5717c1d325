"""Teams, and how many answers and searches each team has used per calendar month."""

from dataclasses import dataclass

from svc_daemon.core.ids import DEFAULT_AGENT
from svc_daemon.core.search.agents import DEFAULT_NAME, EVERYTHING, TeamAgent
from svc_daemon.databases.contract import Connection
from svc_daemon.store.agents import create_agent


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
