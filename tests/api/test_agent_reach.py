"""What a key that is kept to some buckets or models may see and change of agents."""

from typing import Any

import pytest

from tests.api.agents import FILTERS, OUT_OF_REACH, change, changed, faults, listed, made, make, show
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon


@pytest.fixture
def halves(daemon: Daemon) -> Daemon:
    """Two buckets; agents of the first, of both, of a source in the second, and of the whole team."""
    first, second = daemon.make_bucket("first"), daemon.make_bucket("second")
    hidden, seen = daemon.add_source(bucket="second"), daemon.add_source(bucket="first")
    policies: dict[str, dict[str, Any]] = {
        "first": {"bucket_ids": [first]},
        "both": {"bucket_ids": [first, second]},
        "seen": {"source_ids": [seen]},
        "hidden": {"source_ids": [hidden]},
        "team": {"scope": "team"},
    }
    for agent_id, policy in policies.items():
        made(daemon, agent_id, policy=policy)
    return daemon


def test_a_key_changes_and_deletes_only_agents_that_reach_no_further(halves: Daemon) -> None:
    key = halves.add_key(buckets=(halves.make_bucket("first"),))
    assert listed(halves, key=key) == ["both", "default", "first", "hidden", "seen", "team"]
    for agent_id in ("both", "default", "hidden", "team"):
        assert details_of(change(halves, agent_id, key=key, role="x"), "forbidden_project_key") == OUT_OF_REACH
        if agent_id != "default":
            refused = halves.ask("DELETE", f"/v1/agents/{agent_id}", key=key)
            assert details_of(refused, "forbidden_project_key") == OUT_OF_REACH
    for agent_id in ("first", "seen"):
        assert changed(halves, agent_id, key=key, role="x")["role"] == "x"
        body_of(halves.ask("DELETE", f"/v1/agents/{agent_id}", key=key))


def test_no_key_widens_an_agent_beyond_its_own_reach(halves: Daemon) -> None:
    first, second = halves.make_bucket("first"), halves.make_bucket("second")
    (hidden,) = halves.members("second", status="all")
    key = halves.add_key(buckets=(first,))
    for policy in ({"bucket_ids": ["*"]}, {"scope": "team"}):
        for answer in (change(halves, "first", key=key, policy=policy), make(halves, "new", key=key, policy=policy)):
            assert details_of(answer, "forbidden_project_key") == OUT_OF_REACH
    for policy, path in (({"bucket_ids": [second]}, "bucket_ids"), ({"source_ids": [hidden]}, "source_ids")):
        for answer in (change(halves, "first", key=key, policy=policy), make(halves, "new", key=key, policy=policy)):
            assert faults(answer) == [f"policy.{path}.0"]
    assert show(halves, "first")["policy"]["bucket_ids"] == [first]
    assert made(halves, "new", key=key)["policy"]["bucket_ids"] == [first]


def test_a_key_sees_of_a_policy_what_it_reaches(halves: Daemon) -> None:
    first, second = halves.make_bucket("first"), halves.make_bucket("second")
    (seen,), (hidden,) = (halves.members(bucket, status="all") for bucket in ("first", "second"))
    made(halves, "sources", policy={"source_ids": [seen, hidden]})
    key = halves.add_key(buckets=(first,))
    agents = {agent["id"]: agent for agent in body_of(halves.ask("GET", "/v1/agents", key=key))["agents"]}
    for agent_id, agent in agents.items():
        alone = body_of(halves.ask("GET", f"/v1/agents/{agent_id}", key=key))
        assert {name: alone[name] for name in agent} == agent
    assert not any(other in repr(agents) for other in (second, hidden))
    assert {name for name, agent in agents.items() if agent["policy_withheld"]} == {"both", "hidden", "sources"}
    policies = {name: agent["policy"] for name, agent in agents.items()}
    assert (policies["both"]["bucket_ids"], policies["default"]["bucket_ids"]) == ([first], ["*"])
    assert policies["sources"]["source_ids"] == [seen]
    both = show(halves, "both")
    assert (both["policy"]["bucket_ids"], both["policy_withheld"]) == ([first, second], False)


def test_a_key_for_some_models_widens_none_of_them(halves: Daemon) -> None:
    first, second = halves.make_bucket("first"), halves.make_bucket("second")
    (hidden,) = halves.members("second", status="all")
    key = halves.add_key(models=("svc-agent:first", "svc-agent:seen", "svc-agent:next"))
    buckets: list[dict[str, Any]] = [{"bucket_ids": [second]}, {"bucket_ids": ["*"]}]
    for policy in (*buckets, {"scope": "team"}, {"source_ids": [hidden]}):
        for answer in (change(halves, "first", key=key, policy=policy), make(halves, "next", key=key, policy=policy)):
            assert details_of(answer, "forbidden_project_key") == OUT_OF_REACH
    assert show(halves, "first")["policy"]["bucket_ids"] == [first]
    narrower = changed(halves, "first", key=key, policy={"filters": FILTERS}, role="x")
    assert (narrower["policy"]["filters"], narrower["role"]) == (FILTERS, "x")
    details_of(change(halves, "first", key=key, policy={"filters": {}}), "forbidden_project_key")
    assert made(halves, "next", key=key)["policy"]["bucket_ids"] == []
    copied = {"bucket_ids": [first], "filters": FILTERS}
    assert changed(halves, "next", key=key, policy=copied)["policy"]["bucket_ids"] == [first]


def test_a_key_for_some_models_sees_and_changes_only_these(shared: Daemon) -> None:
    made(shared, "mine")
    made(shared, "theirs")
    key = shared.add_key(models=("svc-rag-agent:mine", "svc-agent:next"))
    assert listed(shared, key=key) == ["mine"]
    for method, options in (("GET", {}), ("PUT", {"json": {"role": "x"}}), ("DELETE", {})):
        details_of(shared.ask(method, "/v1/agents/theirs", key=key, **options), "model_not_allowed")
    assert changed(shared, "mine", key=key, role="x")["role"] == "x"
    for agent_id in ("other", None):
        details_of(make(shared, agent_id, key=key), "model_not_allowed")
    made(shared, "next", key=key)
