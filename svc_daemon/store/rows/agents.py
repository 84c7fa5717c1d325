"""Agents: named sets of instructions and search policies. Each team has a default agent."""

from typing import Any

from svc_daemon.core.access.model_ids import DEFAULT_AGENT
from svc_daemon.core.search.agents import NOTHING, PolicyFault, TeamAgent, lost_default, policy_text, read_policy
from svc_daemon.databases.contract import Connection, Row
from svc_daemon.errors import NotFound
from svc_daemon.store.columns import column_values, insertion
from svc_daemon.wire.light.error_codes import ErrorCode

_INSERT = f"{insertion(TeamAgent, 'agents', 'policy_fault')} ON CONFLICT (team_id, id)"


def create_agent(connection: Connection, agent: TeamAgent) -> bool:
    """Create the agent. Returns False if the team already has an agent with this id."""
    return connection.execute(f"{_INSERT} DO NOTHING", _values(agent)).rowcount == 1


def find_agent(connection: Connection, team_id: str, agent_id: str) -> TeamAgent | None:
    row = connection.execute(
        "SELECT * FROM agents WHERE team_id = :team_id AND id = :id", {"team_id": team_id, "id": agent_id}
    ).fetchone()
    return _from_row(row) if row else None


def get_agent(connection: Connection, team_id: str, agent_id: str) -> TeamAgent:
    """Return the agent. Raises NotFound.

    If the default agent's row is missing, returns a default agent that retrieves nothing.
    """
    found = find_agent(connection, team_id, agent_id)
    if found is not None:
        return found
    if agent_id == DEFAULT_AGENT:
        return lost_default(team_id)
    raise NotFound(ErrorCode.AGENT_NOT_FOUND, f"There is no agent {agent_id!r}.", agent_id=agent_id)


def list_agents(connection: Connection, team_id: str) -> list[TeamAgent]:
    """List the team's agents, ordered by id. The default agent is listed even if its row is missing."""
    rows = connection.execute("SELECT * FROM agents WHERE team_id = :team_id", {"team_id": team_id}).fetchall()
    found = [_from_row(row) for row in rows]
    if all(agent.id != DEFAULT_AGENT for agent in found):
        found.append(lost_default(team_id))
    return sorted(found, key=lambda agent: agent.id)


def count_named_agents(connection: Connection, team_id: str) -> int:
    row = connection.execute(
        "SELECT COUNT(*) AS named FROM agents WHERE team_id = :team_id AND id <> :default",
        {"team_id": team_id, "default": DEFAULT_AGENT},
    ).fetchone()
    return int(row["named"])


def put_agent(connection: Connection, agent: TeamAgent) -> None:
    """Update the agent, or create it if its row is missing.

    If `agent.policy_fault` is set, the stored policy is invalid, and is not changed.
    """
    connection.execute(
        f"{_INSERT} DO UPDATE SET name = excluded.name, role = excluded.role,"
        " instructions = excluded.instructions, bound_surface = excluded.bound_surface,"
        " updated_at = excluded.updated_at, policy = CASE WHEN :is_broken THEN agents.policy ELSE excluded.policy END",
        {**_values(agent), "is_broken": agent.policy_fault is not None},
    )


def delete_agent(connection: Connection, team_id: str, agent_id: str) -> None:
    connection.execute("DELETE FROM agents WHERE team_id = :team_id AND id = :id", {"team_id": team_id, "id": agent_id})


def _values(agent: TeamAgent) -> dict[str, Any]:
    policy = "" if agent.policy_fault is not None else policy_text(agent.policy)
    return column_values(agent) | {"policy": policy}


def _from_row(row: Row) -> TeamAgent:
    """Convert a row to an agent. An agent with an invalid policy retrieves nothing and has a `policy_fault`."""
    values = dict(row)
    try:
        values["policy"] = read_policy(values["policy"])
    except PolicyFault as fault:
        values |= {"policy": NOTHING, "policy_fault": str(fault)}
    return TeamAgent(**values)
