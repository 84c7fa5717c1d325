"""Agents over the API: made once, listed, changed field by field, deleted unless something is in the way."""

import threading
from dataclasses import replace
from typing import Any

from svc_daemon.wire.agents import AgentAnswer
from tests.api.agents import FILTERS, OUT_OF_REACH, change, faults, listed, make, show
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import UNLIMITED, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.holds import PATIENCE_S


def test_a_new_team_has_its_default_agent(daemon: Daemon) -> None:
    agent = show(daemon, "default")
    assert (agent["id"], agent["model"], agent["policy_error"]) == ("default", "svc-agent", None)
    assert agent["policy"]["scope"] == "buckets"
    assert agent["policy"]["bucket_ids"] == ["*"]
    assert listed(daemon, key=daemon.add_team()) == ["default"]


def test_an_agent_is_told_as_it_was_made(shared: Daemon) -> None:
    bucket_id = shared.make_bucket("prices")
    policy = {"bucket_ids": ["prices", bucket_id, "*"], "filters": FILTERS, "top_k": 3, "score_threshold": 0.5}
    described = {"name": "Sales", "role": "seller", "instructions": "Be\nbrief.", "bound_surface": "widget"}
    made = body_of(make(shared, "sales", policy=policy, **described), 201)
    assert AgentAnswer.model_validate(made, extra="forbid")
    assert (made["id"], made["agent_id"], made["object"], made["model"]) == (
        "sales",
        "sales",
        "agent",
        "svc-agent:sales",
    )
    assert {name: made[name] for name in described} == described
    assert made["policy"] == {**policy, "scope": "buckets", "bucket_ids": [bucket_id, "*"], "source_ids": []}
    shown = show(shared, "sales")
    assert {**shown, "request_id": ""} == {**made, "request_id": ""}
    assert made["created_at"] == made["updated_at"]


def test_an_agent_without_an_id_gets_one(shared: Daemon) -> None:
    made = body_of(make(shared, None, name="Nobody"), 201)
    assert made["id"].startswith("agt_")
    assert made["model"] == f"svc-agent:{made['id']}"
    assert made["policy"]["bucket_ids"] == ["*"]
    assert show(shared, made["id"])["name"] == "Nobody"


def test_an_id_is_taken_once(shared: Daemon) -> None:
    body_of(make(shared, "once"), 201)
    for agent_id in ("once", "default"):
        assert details_of(make(shared, agent_id), "agent_exists") == {"agent_id": agent_id}
    body_of(make(shared, "Once"), 201)
    body_of(make(shared, "once", key=shared.add_team()), 201)


def test_the_same_request_is_answered_with_the_same_agent(shared: Daemon) -> None:
    first = body_of(make(shared, "again", "k1", role="a"), 201)
    again = make(shared, "again", "k1", role="a")
    assert ({**body_of(again), "request_id": first["request_id"]}, again.headers["Idempotent-Replayed"]) == (
        first,
        "true",
    )
    details_of(make(shared, "again", "k1", role="b"), "idempotency_key_conflict")
    details_of(make(shared, "again", "k2", role="a"), "agent_exists")
    body_of(make(shared, None, "k3"), 201)
    assert body_of(make(shared, None, "k3"))["id"].startswith("agt_")


def test_while_a_create_is_undecided_nobody_can_say_whether_another_is_its_replay(daemon: Daemon) -> None:
    """Two requests at once, alike in every way; the disk takes its time."""
    slow = threading.Event()
    daemon.context.database.submit(lambda _: slow.wait(PATIENCE_S))
    asking = daemon.asking("POST", "/v1/agents", headers={"Idempotency-Key": "k1"}, json={"agent_id": "raced"})
    racing = [daemon.loop.begin(asking()) for _ in range(2)]
    try:
        daemon.wait(lambda: any(each.done() for each in racing), "one of the two is answered")
    finally:
        slow.set()
    made, refused = sorted((each.result(PATIENCE_S) for each in racing), key=lambda answer: answer.status_code)
    assert details_of(refused, "agent_replay_check_unavailable") == {"agent_id": "raced", "retry_after_seconds": 1}
    replayed = make(daemon, "raced", "k1")
    assert replayed.headers["Idempotent-Replayed"] == "true"
    assert body_of(replayed)["created_at"] == body_of(made, 201)["created_at"]


def test_racing_creates_make_an_agent_once(daemon: Daemon) -> None:
    asks = [
        daemon.asking("POST", "/v1/agents", headers={"Idempotency-Key": f"k{n % 4}"}, json={"agent_id": "raced"})
        for n in range(16)
    ]
    answers = daemon.ask_together(*asks)
    assert [answer.status_code for answer in answers].count(201) == 1
    assert {answer.status_code for answer in answers} <= {200, 201, 409, 503}
    assert daemon.count("agents") == 2


def test_a_dry_run_judges_and_leaves_nothing(daemon: Daemon) -> None:
    told = body_of(make(daemon, "ghost", "k1", dry_run=True, policy={"bucket_ids": ["inbox"]}))
    assert (told["would_create"]["model"], len(told["would_create"]["policy"]["bucket_ids"])) == ("svc-agent:ghost", 1)
    assert "id" not in body_of(make(daemon, None, dry_run=True))["would_create"]
    details_of(make(daemon, "default", dry_run=True), "agent_exists")
    assert faults(make(daemon, "ghost", dry_run=True, policy={"bucket_ids": ["nowhere"]})) == ["policy.bucket_ids.0"]
    assert (daemon.count("agents"), daemon.count("idempotency")) == (1, 0)


def test_the_plan_bounds_named_agents(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=replace(UNLIMITED, agents=2))
    for agent_id in ("a", "b"):
        body_of(make(daemon, agent_id), 201)
    for dry_run in (False, True):
        told = details_of(make(daemon, "c", dry_run=dry_run), "agent_limit_reached")
        assert told == {"limit": 2, "used": 2, "resets_at": None}
    details_of(make(daemon, "a"), "agent_exists")
    assert body_of(daemon.ask("GET", "/v1/limits"))["limits"]["agents"] == {"value": 2, "unit": "agents", "used": 2}
    body_of(make(daemon, "c", key=daemon.add_team()), 201)
    body_of(daemon.ask("DELETE", "/v1/agents/a"))
    body_of(make(daemon, "c"), 201)


def test_a_list_is_paged_by_id(daemon: Daemon) -> None:
    for agent_id in ("c", "a", "e"):
        body_of(make(daemon, agent_id), 201)
    assert listed(daemon) == ["a", "c", "default", "e"]
    page = body_of(daemon.ask("GET", "/v1/agents", params={"limit": "2"}))
    assert ([agent["id"] for agent in page["agents"]], page["has_more"], page["last_id"]) == (["a", "c"], True, "c")
    assert listed(daemon, limit="2", after="c") == ["default", "e"]
    assert refused_field(daemon.ask("GET", "/v1/agents", params={"limit": "0"})) == "limit"


def test_an_update_changes_what_it_names_and_nothing_else(shared: Daemon) -> None:
    bucket_id = shared.make_bucket("kept")
    made = body_of(make(shared, "partial", role="a", policy={"bucket_ids": ["kept"], "top_k": 3}), 201)
    changed = body_of(change(shared, "partial", role="b", policy={"score_threshold": 0.4}))
    assert (changed["role"], changed["name"]) == ("b", "partial")
    assert changed["policy"] == {**made["policy"], "score_threshold": 0.4}
    taken_away = body_of(change(shared, "partial", role=None, policy={"score_threshold": None, "filters": None}))
    assert (taken_away["role"], taken_away["policy"]) == ("b", made["policy"])
    assert changed["updated_at"] > changed["created_at"] == made["created_at"]
    assert body_of(change(shared, "partial", bound_surface="widget"))["bound_surface"] == "widget"
    cleared = body_of(change(shared, "partial", bound_surface="", policy=None))
    assert (cleared["bound_surface"], cleared["policy"]["bucket_ids"]) == (None, [bucket_id])
    details_of(change(shared, "nobody", role="b"), "agent_not_found")


def test_an_update_without_a_field_is_refused(shared: Daemon) -> None:
    cases: list[dict[str, Any]] = [{}, {"colour": "red"}, {"name": None}, {"policy": {}}, {"agent_id": "other"}]
    for body in cases:
        details_of(shared.ask("PUT", "/v1/agents/default", json=body), "no_updates")


BAD: list[tuple[dict[str, Any], list[str]]] = [
    ({"name": ""}, ["name"]),
    ({"name": "  "}, ["name"]),
    ({"name": 7, "role": []}, ["name", "role"]),
    ({"name": "x" * 201}, ["name"]),
    ({"policy": "everything"}, ["policy"]),
    ({"policy": {"scope": "all"}}, ["policy.scope"]),
    ({"policy": {"bucket_ids": "inbox"}}, ["policy.bucket_ids"]),
    ({"policy": {"bucket_ids": ["inbox", "nowhere", "gone"]}}, ["policy.bucket_ids.1", "policy.bucket_ids.2"]),
    ({"policy": {"source_ids": ["src_missing"]}}, ["policy.source_ids.0"]),
    ({"policy": {"scope": "sources", "bucket_ids": ["inbox"]}}, ["policy.bucket_ids", "policy.source_ids"]),
    ({"policy": {"top_k": 0}}, ["policy.top_k"]),
    ({"policy": {"top_k": 1.5}}, ["policy.top_k"]),
    ({"policy": {"top_k": 51}}, ["policy.top_k"]),
    ({"policy": {"score_threshold": 1.01}}, ["policy.score_threshold"]),
    ({"policy": {"filters": []}}, ["policy.filters"]),
    ({"policy": {"shelves": ["inbox"]}}, ["policy"]),
    ({"policy": {"vector_store_ids": ["inbox"], "top_k": 3}}, ["policy.vector_store_ids"]),
    ({"policy": {"buckets": ["inbox"], "bucketIds": ["inbox"]}}, ["policy.bucketIds"]),
    ({"buckets": ["inbox"], "bucket_ids": ["inbox"]}, ["buckets", "bucket_ids"]),
    (
        {"scope": "team", "source_ids": [], "filters": {}, "score_threshold": 1},
        ["scope", "source_ids", "filters", "score_threshold"],
    ),
    ({"policy": {"filters": {"type": "like", "key": "a", "value": 1}}}, ["policy.filters.type"]),
    ({"name": " ", "policy": {"bucket_ids": ["nowhere"]}}, ["name", "policy.bucket_ids.0"]),
]


def test_a_profile_that_is_not_valid_names_every_fault(shared: Daemon) -> None:
    for body, paths in BAD:
        assert faults(make(shared, "bad", **body)) == paths
        before = show(shared, "default")
        assert faults(change(shared, "default", **body)) == paths
        assert {**show(shared, "default"), "request_id": ""} == {**before, "request_id": ""}


def test_an_id_stands_in_paths_and_model_ids(shared: Daemon) -> None:
    cases: list[Any] = ["", "a b", "a/b", "a:b", "-a", ".a", "x" * 64, "ä", 7]
    for agent_id in cases:
        assert faults(make(shared, agent_id)) == ["agent_id"]


def test_no_agent_is_called_as_models_spell_the_default_one(shared: Daemon) -> None:
    for agent_id in ["svc-agent", "svc-rag-agent", "SVC-agent"]:
        for dry_run in (False, True):
            assert faults(make(shared, agent_id, dry_run=dry_run)) == ["agent_id"]


def test_a_bucket_that_is_gone_may_stay_in_a_policy(daemon: Daemon) -> None:
    gone, left = daemon.make_bucket("gone"), daemon.make_bucket("left")
    body_of(make(daemon, "both", policy={"bucket_ids": ["gone", "left"]}), 201)
    body_of(daemon.ask("DELETE", "/v1/buckets/gone", params={"force": "true"}))
    policy = show(daemon, "both")["policy"]
    assert policy["bucket_ids"] == [gone, left]
    assert body_of(change(daemon, "both", policy=policy, role="x"))["policy"] == policy
    assert faults(make(daemon, "other", policy=policy)) == ["policy.bucket_ids.0"]


def test_deleting_an_agent_ends_its_model_until_it_is_made_again(working: Daemon) -> None:
    working.add_ready()
    body_of(make(working, "brief"), 201)
    assert working.found("umber", agent="svc-rag-agent:brief")
    told = body_of(working.ask("DELETE", "/v1/agents/brief"))
    assert (told["id"], told["agent_id"], told["object"], told["deleted"]) == ("brief", "brief", "agent", True)
    details_of(working.search("umber", agent="svc-rag-agent:brief"), "agent_not_found")
    details_of(working.ask("DELETE", "/v1/agents/brief"), "agent_not_found")
    body_of(make(working, "brief"), 201)
    assert working.found("umber", agent="svc-agent:brief")


def test_an_agent_that_is_bound_goes_only_by_force(shared: Daemon) -> None:
    body_of(make(shared, "bound", bound_surface="widget"), 201)
    assert details_of(shared.ask("DELETE", "/v1/agents/bound"), "delete_blocked") == {"bound_surface": "widget"}
    assert "bound" in listed(shared)
    body_of(shared.ask("DELETE", "/v1/agents/bound", params={"force": "true"}))
    assert "bound" not in listed(shared)


def test_the_default_agent_stays(shared: Daemon) -> None:
    for force in ("false", "true"):
        assert refused_field(shared.ask("DELETE", "/v1/agents/default", params={"force": force})) == "agent_id"


def test_a_source_that_an_agent_names_goes_only_by_force(daemon: Daemon) -> None:
    source_id, other = daemon.add_source(), daemon.add_source(filename="other.md")
    body_of(make(daemon, "picked", policy={"source_ids": [source_id, other]}), 201)
    assert details_of(daemon.ask("DELETE", f"/v1/sources/{source_id}"), "delete_blocked") == {"agents": ["picked"]}
    daemon.source(source_id)
    body_of(daemon.ask("DELETE", f"/v1/sources/{source_id}", params={"force": "true"}))
    details_of(daemon.ask("GET", f"/v1/sources/{source_id}"), "source_not_found")
    body_of(change(daemon, "picked", policy={"bucket_ids": ["*"]}))
    body_of(daemon.ask("DELETE", f"/v1/sources/{other}"))


def test_an_agent_follows_a_source_to_its_successor(working: Daemon) -> None:
    source_id = working.add_ready()
    body_of(make(working, "picked", policy={"source_ids": [source_id], "top_k": 4}), 201)
    successor = working.add_ready(b"The umber quay, told anew.\n", replaces=source_id)
    assert working.found("umber", agent="svc-agent:picked") == [successor]
    assert show(working, "picked")["policy"]["source_ids"] == [successor]
    assert show(working, "picked")["policy"]["top_k"] == 4


def test_a_broken_policy_is_told_and_stays_broken_until_a_new_one_is_written(working: Daemon) -> None:
    working.add_ready()
    working.write(lambda connection: connection.execute("UPDATE agents SET policy = '{' WHERE id = 'default'"))
    assert show(working, "default")["policy_error"] == "The stored policy is no JSON."
    assert body_of(change(working, "default", role="x"))["policy_error"]
    assert working.found("umber") == []
    limited = working.add_key(buckets=(working.make_bucket(),))
    answer = change(working, "default", key=limited, policy={"bucket_ids": ["inbox"]})
    assert details_of(answer, "forbidden_project_key") == OUT_OF_REACH
    assert body_of(change(working, "default", policy={"bucket_ids": ["*"]}))["policy_error"] is None
    assert working.found("umber")


def test_a_default_agent_that_was_taken_away_can_be_written_anew(working: Daemon) -> None:
    working.add_ready()
    working.write(lambda connection: connection.execute("DELETE FROM agents"))
    assert listed(working) == ["default"]
    assert show(working, "default")["policy_error"] == "The stored policy is missing."
    assert body_of(change(working, "default", role="x"))["policy_error"]
    assert working.found("umber") == []
    assert body_of(change(working, "default", policy={"bucket_ids": ["*"]}))["policy_error"] is None
    assert working.found("umber")
