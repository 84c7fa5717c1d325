"""Agents over the API: made once, listed, changed, deleted unless something is in the way, and which keys may."""

import threading
from typing import Any

import httpx
import pytest

from tests.acceptance.installations import PATIENCE_S
from tests.api.agents import FILTERS, OUT_OF_REACH, change, changed, faults, listed, made, make, show
from tests.api.answers import body_of, details_of, refused_field, without_id
from tests.api.daemons import Daemon
from tests.api.fixtures import LimitDaemon


def test_a_new_team_has_its_default_agent(shared: Daemon) -> None:
    agent = show(shared, "default")
    assert (agent["id"], agent["model"], agent["policy_error"]) == ("default", "svc-agent", None)
    assert (agent["policy"]["scope"], agent["policy"]["bucket_ids"]) == ("buckets", ["*"])
    assert listed(shared, key=shared.add_team()) == ["default"]


def test_an_agent_is_returned_as_it_was_made_with_an_id_of_its_own(shared: Daemon) -> None:
    bucket_id = shared.make_bucket("prices")
    policy = {"bucket_ids": ["prices", bucket_id, "*"], "filters": FILTERS, "top_k": 3, "score_threshold": 0.5}
    described = {"name": "Sales", "role": "seller", "instructions": "Be\nbrief.", "bound_surface": "widget"}
    agent = made(shared, "sales", policy=policy, **described)
    named = {"id": "sales", "agent_id": "sales", "object": "agent", "model": "svc-agent:sales", **described}
    assert {name: agent[name] for name in named} == named
    assert agent["policy"] == {**policy, "scope": "buckets", "bucket_ids": [bucket_id, "*"], "source_ids": []}
    assert without_id(show(shared, "sales")) == without_id(agent)
    assert agent["created_at"] == agent["updated_at"]
    unnamed = made(shared, None, name="Nobody")
    assert unnamed["id"].startswith("agt_")
    assert (unnamed["model"], unnamed["policy"]["bucket_ids"]) == (f"svc-agent:{unnamed['id']}", ["*"])
    assert show(shared, unnamed["id"])["name"] == "Nobody"


def test_an_id_is_taken_once(shared: Daemon) -> None:
    made(shared, "once")
    for agent_id in ("once", "default"):
        assert details_of(make(shared, agent_id), "agent_exists") == {"agent_id": agent_id}
    made(shared, "Once")
    made(shared, "once", key=shared.add_team())


@pytest.mark.rule("agent_replay_check_unavailable")
def test_a_create_with_the_key_of_an_undecided_one_is_unavailable(daemon: Daemon) -> None:
    """Two requests at once, alike in every way; the disk takes its time."""
    slow = threading.Event()
    daemon.context.database.submit(lambda _: slow.wait(PATIENCE_S))
    asking = daemon.asking("POST", "/v1/agents", headers={"Idempotency-Key": "k1"}, json={"agent_id": "raced"})
    racing = [daemon.loop.begin(asking()) for _ in range(2)]
    try:
        daemon.wait(lambda: any(each.done() for each in racing), "one of the two is answered")
    finally:
        slow.set()
    created, refused = sorted((each.result(PATIENCE_S) for each in racing), key=lambda answer: answer.status_code)
    assert details_of(refused, "agent_replay_check_unavailable") == {"agent_id": "raced", "retry_after_seconds": 1}
    replayed = make(daemon, "raced", "k1")
    assert replayed.headers["Idempotent-Replayed"] == "true"
    assert body_of(replayed)["created_at"] == body_of(created, 201)["created_at"]


@pytest.mark.rule("agent_limit_reached")
def test_the_plan_bounds_named_agents(limited: LimitDaemon) -> None:
    daemon = limited(agents=2)
    for agent_id in ("a", "b"):
        made(daemon, agent_id)
    for dry_run in (False, True):
        details = details_of(make(daemon, "c", dry_run=dry_run), "agent_limit_reached")
        assert details == {"limit": 2, "used": 2, "resets_at": None}
    details_of(make(daemon, "a"), "agent_exists")
    assert daemon.show("/v1/limits")["limits"]["agents"] == {"value": 2, "unit": "agents", "used": 2}
    made(daemon, "c", key=daemon.add_team())
    daemon.delete("/v1/agents/a")
    made(daemon, "c")


@pytest.mark.rule("agents.put")
def test_an_update_changes_what_it_names_and_nothing_else(shared: Daemon) -> None:
    bucket_id = shared.make_bucket("kept")
    before = made(shared, "partial", role="a", policy={"bucket_ids": ["kept"], "top_k": 3})
    after = changed(shared, "partial", role="b", policy={"score_threshold": 0.4})
    assert (after["role"], after["name"]) == ("b", "partial")
    assert after["policy"] == {**before["policy"], "score_threshold": 0.4}
    assert after["updated_at"] > after["created_at"] == before["created_at"]
    assert without_id(show(shared, "partial")) == without_id(after)
    taken_away = changed(shared, "partial", role=None, policy={"score_threshold": None, "filters": None})
    assert (taken_away["role"], taken_away["policy"]) == ("b", before["policy"])
    assert changed(shared, "partial", bound_surface="widget")["bound_surface"] == "widget"
    assert show(shared, "partial")["bound_surface"] == "widget"
    cleared = changed(shared, "partial", bound_surface="", policy=None)
    assert (cleared["bound_surface"], cleared["policy"]["bucket_ids"]) == (None, [bucket_id])
    details_of(change(shared, "nobody", role="b"), "agent_not_found")


@pytest.mark.rule("agents.put", "no_updates")
def test_an_update_without_a_field_is_refused(shared: Daemon) -> None:
    cases: list[dict[str, Any]] = [{}, {"colour": "red"}, {"name": None}, {"policy": {}}, {"agent_id": "other"}]
    for body in cases:
        details_of(shared.ask("PUT", "/v1/agents/default", json=body), "no_updates")


#: Fields outside of the policy, and the paths that they are refused for.
BAD: list[tuple[dict[str, Any], list[str]]] = [
    *(({"name": name}, ["name"]) for name in ("", "  ", "x" * 201)),
    ({"name": 7, "role": []}, ["name", "role"]),
    ({"name": "a\nb", "bound_surface": "x\x07"}, ["name", "bound_surface"]),
    ({"policy": "everything"}, ["policy"]),
    ({"buckets": ["inbox"], "bucket_ids": ["inbox"]}, ["buckets", "bucket_ids"]),
    ({"scope": "team", "source_ids": [], "filters": {}}, ["scope", "source_ids", "filters"]),
    ({"score_threshold": 1}, ["score_threshold"]),
    ({"name": " ", "policy": {"bucket_ids": ["nowhere"]}}, ["name", "policy.bucket_ids.0"]),
]
#: Policies, and the paths within them that they are refused for; an empty one is the policy itself.
BAD_POLICIES: list[tuple[dict[str, Any], str]] = [
    ({"scope": "all"}, "scope"),
    ({"bucket_ids": "inbox"}, "bucket_ids"),
    ({"bucket_ids": ["inbox", "nowhere", "gone"]}, "bucket_ids.1 bucket_ids.2"),
    ({"source_ids": ["src_missing"]}, "source_ids.0"),
    ({"scope": "sources", "bucket_ids": ["inbox"]}, "bucket_ids source_ids"),
    *(({"top_k": number}, "top_k") for number in (0, 1.5, 51)),
    ({"score_threshold": 1.01}, "score_threshold"),
    ({"filters": []}, "filters"),
    ({"filters": {"type": "like", "key": "a", "value": 1}}, "filters.type"),
    ({"filters": {"type": "and", "filters": [FILTERS, {}]}}, "filters.filters[1].type"),
    ({"shelves": ["inbox"]}, ""),
    ({"vector_store_ids": ["inbox"], "top_k": 3}, "vector_store_ids"),
    ({"buckets": ["inbox"], "bucketIds": ["inbox"]}, "bucketIds"),
]
BAD += [
    ({"policy": policy}, [f"policy.{path}" for path in paths.split()] or ["policy"]) for policy, paths in BAD_POLICIES
]


@pytest.mark.rule("invalid_agent_profile")
@pytest.mark.parametrize(("body", "paths"), BAD)
def test_a_profile_that_is_not_valid_names_every_fault(shared: Daemon, body: dict[str, Any], paths: list[str]) -> None:
    before = show(shared, "default")
    assert faults(make(shared, "bad", **body)) == paths
    assert faults(change(shared, "default", **body)) == paths
    assert without_id(show(shared, "default")) == without_id(before)


def test_an_id_fits_into_paths_and_is_no_spelling_of_the_default_model(shared: Daemon) -> None:
    malformed: list[Any] = ["", "a b", "a/b", "a:b", "-a", ".a", "x" * 64, "ä", 7]
    for agent_id in (*malformed, "svc-agent", "svc-rag-agent", "SVC-agent"):
        for dry_run in (False, True):
            assert faults(make(shared, agent_id, dry_run=dry_run)) == ["agent_id"], agent_id


def test_a_bucket_that_is_gone_may_stay_in_a_policy(daemon: Daemon) -> None:
    gone, left = daemon.make_bucket("gone"), daemon.make_bucket("left")
    made(daemon, "both", policy={"bucket_ids": ["gone", "left"]})
    daemon.delete("/v1/buckets/gone", force="true")
    policy = show(daemon, "both")["policy"]
    assert policy["bucket_ids"] == [gone, left]
    assert changed(daemon, "both", policy=policy, role="x")["policy"] == policy
    assert faults(make(daemon, "other", policy=policy)) == ["policy.bucket_ids.0"]


@pytest.mark.rule("model.deleted")
def test_deleting_an_agent_ends_its_model_until_it_is_made_again(working: Daemon) -> None:
    working.add_ready()
    made(working, "brief")
    assert working.found("umber", agent="svc-rag-agent:brief")
    deleted = working.delete("/v1/agents/brief")
    assert without_id(deleted) == {"id": "brief", "agent_id": "brief", "object": "agent", "deleted": True}
    details_of(working.search("umber", agent="svc-rag-agent:brief"), "agent_not_found")
    details_of(working.ask("DELETE", "/v1/agents/brief"), "agent_not_found")
    made(working, "brief")
    assert working.found("umber", agent="svc-agent:brief")


@pytest.mark.rule("error.bound", "delete_blocked")
def test_an_agent_that_is_bound_goes_only_by_force_and_the_default_one_never(shared: Daemon) -> None:
    made(shared, "bound", bound_surface="widget")
    assert details_of(shared.ask("DELETE", "/v1/agents/bound"), "delete_blocked") == {"bound_surface": "widget"}
    assert "bound" in listed(shared)
    shared.delete("/v1/agents/bound", force="true")
    assert "bound" not in listed(shared)
    for force in ("false", "true"):
        assert refused_field(shared.ask("DELETE", "/v1/agents/default", params={"force": force})) == "agent_id"


@pytest.mark.rule("status.dependents", "delete_blocked")
def test_a_source_that_an_agent_names_goes_only_by_force(daemon: Daemon) -> None:
    source_id, other = daemon.add_source(), daemon.add_source(filename="other.md")
    made(daemon, "picked", policy={"source_ids": [source_id, other]})
    assert details_of(daemon.ask("DELETE", f"/v1/sources/{source_id}"), "delete_blocked") == {"agents": ["picked"]}
    daemon.source(source_id)
    daemon.delete(f"/v1/sources/{source_id}", force="true")
    details_of(daemon.ask("GET", f"/v1/sources/{source_id}"), "source_not_found")
    changed(daemon, "picked", policy={"bucket_ids": ["*"]})
    daemon.delete(f"/v1/sources/{other}")


def test_an_agent_follows_a_source_to_its_successor(working: Daemon) -> None:
    source_id = working.add_ready()
    made(working, "picked", policy={"source_ids": [source_id], "top_k": 4})
    successor = working.add_ready(b"The umber quay once more.\n", replaces=source_id)
    assert working.found("umber", agent="svc-agent:picked") == [successor]
    policy = show(working, "picked")["policy"]
    assert (policy["source_ids"], policy["top_k"]) == ([successor], 4)


@pytest.mark.rule("service.agents")
def test_a_broken_policy_is_shown_and_stays_broken_until_another_is_written(working: Daemon) -> None:
    working.add_ready()
    limited = working.add_key(buckets=(working.make_bucket(),))
    for breaking, error in (
        ("UPDATE agents SET policy = '{' WHERE id = 'default'", "The stored policy is not JSON."),
        ("DELETE FROM agents", "The stored policy is missing."),
    ):
        working.write(lambda connection: connection.execute(breaking))  # noqa: B023
        assert listed(working) == ["default"]
        assert show(working, "default")["policy_error"] == error
        assert changed(working, "default", role="x")["policy_error"]
        assert working.found("umber") == []
        answer = change(working, "default", key=limited, policy={"bucket_ids": ["inbox"]})
        assert details_of(answer, "forbidden_project_key") == OUT_OF_REACH
        assert changed(working, "default", policy={"bucket_ids": ["*"]})["policy_error"] is None
        assert working.found("umber")


@pytest.fixture
def halves(daemon: Daemon) -> Daemon:
    """Two buckets; agents of the first, of both, of a source in the second, and of the whole team."""
    first, second = daemon.make_bucket("first"), daemon.make_bucket("second")
    hidden, seen = daemon.add_source(bucket="second"), daemon.add_source(bucket="first")
    for agent_id, bucket_ids in (("first", [first]), ("both", [first, second])):
        made(daemon, agent_id, policy={"bucket_ids": bucket_ids})
    for agent_id, source_id in (("seen", seen), ("hidden", hidden)):
        made(daemon, agent_id, policy={"source_ids": [source_id]})
    made(daemon, "team", policy={"scope": "team"})
    return daemon


def widened(halves: Daemon, key: str, policy: dict[str, Any]) -> list[httpx.Response]:
    """The answers where the key gives this policy to the agent of the first bucket, and to a new one."""
    return [change(halves, "first", key=key, policy=policy), make(halves, "next", key=key, policy=policy)]


def test_a_key_changes_and_deletes_only_agents_that_reach_no_further(halves: Daemon) -> None:
    key = halves.add_key(buckets=(halves.make_bucket("first"),))
    assert listed(halves, key=key) == ["both", "default", "first", "hidden", "seen", "team"]
    refused = [change(halves, agent_id, key=key, role="x") for agent_id in ("both", "default", "hidden", "team")]
    refused += [halves.ask("DELETE", f"/v1/agents/{agent_id}", key=key) for agent_id in ("both", "hidden", "team")]
    assert [details_of(answer, "forbidden_project_key") for answer in refused] == [OUT_OF_REACH] * 7
    for agent_id in ("first", "seen"):
        assert changed(halves, agent_id, key=key, role="x")["role"] == "x"
        body_of(halves.ask("DELETE", f"/v1/agents/{agent_id}", key=key))


def test_no_key_widens_an_agent_beyond_its_own_reach(halves: Daemon) -> None:
    first, second = halves.make_bucket("first"), halves.make_bucket("second")
    (hidden,) = halves.members("second", status="all")
    key = halves.add_key(buckets=(first,))
    for policy in ({"bucket_ids": ["*"]}, {"scope": "team"}):
        for answer in widened(halves, key, policy):
            assert details_of(answer, "forbidden_project_key") == OUT_OF_REACH
    for policy in ({"bucket_ids": [second]}, {"source_ids": [hidden]}):
        for answer in widened(halves, key, policy):
            assert faults(answer) == [f"policy.{next(iter(policy))}.0"]
    assert show(halves, "first")["policy"]["bucket_ids"] == [first]
    assert made(halves, "next", key=key)["policy"]["bucket_ids"] == [first]


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


@pytest.mark.rule("auth.models")
def test_a_key_for_some_models_widens_none_of_them(halves: Daemon) -> None:
    first, second = halves.make_bucket("first"), halves.make_bucket("second")
    (hidden,) = halves.members("second", status="all")
    key = halves.add_key(models=("svc-agent:first", "svc-agent:seen", "svc-agent:next"))
    buckets: list[dict[str, Any]] = [{"bucket_ids": [second]}, {"bucket_ids": ["*"]}]
    for policy in (*buckets, {"scope": "team"}, {"source_ids": [hidden]}):
        for answer in widened(halves, key, policy):
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
