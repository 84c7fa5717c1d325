"""Agents: one row for each, the default one among them from the team's first day on."""

from sqlite3 import Connection, Row

from svc_daemon.core.agents import NOTHING, Agent, PolicyFault, policy_text, read_policy


def create_agent(connection: Connection, agent: Agent) -> bool:
    """True when it was made; False when the team has an agent of this id."""
    cursor = connection.execute(
        "INSERT INTO agents (team_id, id, name, role, instructions, policy, bound_surface, created_at, updated_at)"
        " VALUES (:team_id, :id, :name, :role, :instructions, :policy, :bound_surface, :created_at, :updated_at)"
        " ON CONFLICT (team_id, id) DO NOTHING",
        _values(agent),
    )
    return cursor.rowcount == 1


def find_agent(connection: Connection, team_id: str, agent_id: str) -> Agent | None:
    row = connection.execute(
        "SELECT * FROM agents WHERE team_id = :team_id AND id = :id", {"team_id": team_id, "id": agent_id}
    ).fetchone()
    return _from_row(row) if row else None


def update_agent(connection: Connection, agent: Agent) -> None:
    """Write all that a change may move."""
    connection.execute(
        "UPDATE agents SET name = :name, role = :role, instructions = :instructions, policy = :policy,"
        " bound_surface = :bound_surface, updated_at = :updated_at WHERE team_id = :team_id AND id = :id",
        _values(agent),
    )


def _values(agent: Agent) -> dict[str, str | None]:
    return {
        "team_id": agent.team_id,
        "id": agent.id,
        "name": agent.name,
        "role": agent.role,
        "instructions": agent.instructions,
        "policy": policy_text(agent.policy),
        "bound_surface": agent.bound_surface,
        "created_at": agent.created_at,
        "updated_at": agent.updated_at,
    }


def _from_row(row: Row) -> Agent:
    """The agent as stored; one whose policy is not whole retrieves nothing, and says why."""
    values = dict(row)
    try:
        values["policy"] = read_policy(values["policy"])
    except PolicyFault as fault:
        values |= {"policy": NOTHING, "policy_fault": str(fault)}
    return Agent(**values)
