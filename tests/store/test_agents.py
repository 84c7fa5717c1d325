"""Agents as rows: each team's own, and one whose policy is broken retrieves nothing and has the reason."""

from dataclasses import replace
from sqlite3 import Connection

from svc_daemon.core.search.agents import EVERYTHING, NOTHING, RetrievalPolicy, TeamAgent
from svc_daemon.store.agents import create_agent, find_agent, put_agent
from tests.store.rows import LATER, NOW, OURS, THEIRS

FILTER = {"type": "eq", "key": "a", "value": 1}
POLICY = RetrievalPolicy(scope="sources", source_ids=("src_a",), filters=FILTER, top_k=2)
TEXTS = {"name": "Sales", "role": "seller", "instructions": "Be brief.", "bound_surface": "widget"}
SALES = TeamAgent(id="sales", team_id=OURS, policy=POLICY, created_at=NOW, updated_at=NOW, **TEXTS)


def test_an_agent_is_its_teams_own_and_reads_back_as_it_was_written(db: Connection) -> None:
    assert create_agent(db, SALES)
    assert not create_agent(db, replace(SALES, name="Other"))
    assert (find_agent(db, OURS, "sales"), find_agent(db, THEIRS, "sales")) == (SALES, None)
    changed = replace(SALES, name="Shop", policy=EVERYTHING, bound_surface=None, updated_at=LATER)
    put_agent(db, changed)
    assert create_agent(db, replace(SALES, team_id=THEIRS, name="Theirs"))
    put_agent(db, replace(SALES, team_id=THEIRS, name="Changed"))
    assert find_agent(db, OURS, "sales") == changed


def test_a_broken_policy_retrieves_nothing_and_has_the_reason(db: Connection) -> None:
    for policy in ("", "{}", "null", b"\xff\xfe", 7, '{"scope": "team"}'):
        db.execute("UPDATE agents SET policy = ? WHERE team_id = ? AND id = 'default'", (policy, OURS))
        broken, whole = (find_agent(db, team_id, "default") for team_id in (OURS, THEIRS))
        assert broken is not None and whole is not None
        assert broken.policy == NOTHING and broken.policy_fault, policy
        assert (whole.policy, whole.policy_fault) == (EVERYTHING, None)
