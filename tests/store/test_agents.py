"""Agents as rows: each team's own, and one whose policy is broken retrieves nothing and says why."""

from dataclasses import replace
from sqlite3 import Connection

import pytest

from svc_daemon.core.search.agents import EVERYTHING, NOTHING, RetrievalPolicy, TeamAgent
from svc_daemon.store.agents import create_agent, find_agent, put_agent
from tests.store.rows import LATER, NOW, OURS, THEIRS

SALES = TeamAgent(
    id="sales",
    team_id=OURS,
    name="Sales",
    role="seller",
    instructions="Be brief.",
    policy=RetrievalPolicy(
        scope="sources", source_ids=("src_a",), filters={"type": "eq", "key": "a", "value": 1}, top_k=2
    ),
    bound_surface="widget",
    created_at=NOW,
    updated_at=NOW,
)


def test_an_agent_is_read_as_it_was_written(connection: Connection) -> None:
    assert create_agent(connection, SALES)
    assert find_agent(connection, OURS, "sales") == SALES
    changed = replace(SALES, name="Shop", policy=EVERYTHING, bound_surface=None, updated_at=LATER)
    put_agent(connection, changed)
    assert find_agent(connection, OURS, "sales") == changed


def test_an_id_is_taken_once_in_a_team_and_free_in_another(connection: Connection) -> None:
    assert create_agent(connection, SALES)
    assert not create_agent(connection, replace(SALES, name="Other"))
    assert find_agent(connection, THEIRS, "sales") is None
    assert create_agent(connection, replace(SALES, team_id=THEIRS, name="Theirs"))
    put_agent(connection, replace(SALES, team_id=THEIRS, name="Changed"))
    assert find_agent(connection, OURS, "sales") == SALES


@pytest.mark.parametrize("policy", ["", "{}", "null", b"\xff\xfe", 7, '{"scope": "team"}'])
def test_a_broken_policy_retrieves_nothing_and_says_why(connection: Connection, policy: str | bytes | int) -> None:
    connection.execute("UPDATE agents SET policy = ? WHERE team_id = ? AND id = 'default'", (policy, OURS))
    broken, whole = (find_agent(connection, team_id, "default") for team_id in (OURS, THEIRS))
    assert broken is not None
    assert whole is not None
    assert broken.policy == NOTHING
    assert broken.policy_fault
    assert (whole.policy, whole.policy_fault) == (EVERYTHING, None)
