"""What an agent's policy lets a search find: scopes, what narrows them, and that nothing widens them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from svc_daemon.core.search.agents import EVERYTHING, RetrievalPolicy, TeamAgent
from svc_daemon.core.uploads.source_fields import FILE_NAME as QUESTION
from svc_daemon.store.agents import create_agent, find_agent, put_agent
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon

TEXT = b"# Notes\n\nThe umber quay was built of grey stone, says %s.\n"
EVERYWHERE = {"first.md", "both.md", "second.md"}


@pytest.fixture(scope="module")
def filled(shared: Daemon) -> Daemon:
    """Sources in the buckets `first` and `second`, in both, in an archived one, in none, and a Q and A in `first`."""
    shared.start()
    for bucket in ("first", "second", "old"):
        shared.make_bucket(bucket)
        shared.add_ready(
            TEXT % bucket.encode(), bucket=bucket, filename=f"{bucket}.md", metadata=f'{{"in": "{bucket}"}}'
        )
    both = shared.add_ready(TEXT % b"both", bucket="first", filename="both.md", tags="shared")
    body_of(shared.ask("POST", "/v1/buckets/second/sources", json={"source_id": both}))
    asked = {"question": "What of the umber quay?", "answer": "Grey stone."}
    question = body_of(shared.ask("POST", "/v1/buckets/first/qa", json=asked), 201)["id"]
    shared.wait_ready(both, question)
    loose = shared.add_ready(TEXT % b"loose", bucket="first", filename="loose.md", metadata='{"in": "none"}')
    body_of(shared.ask("DELETE", f"/v1/buckets/first/sources/{loose}"))
    body_of(shared.ask("PATCH", "/v1/buckets/old", json={"status": "archived"}))
    shared.stop()
    return shared


def bucket_id(daemon: Daemon, slug: str) -> str:
    return str(body_of(daemon.ask("GET", f"/v1/buckets/{slug}"))["id"])


def add_agent(daemon: Daemon, agent_id: str, **policy: Any) -> str:
    """A named agent with this policy; its model id."""
    now = daemon.context.clock.timestamp()
    agent = TeamAgent(
        id=agent_id,
        team_id=daemon.team_id,
        name=agent_id,
        policy=RetrievalPolicy(**policy),
        created_at=now,
        updated_at=now,
    )
    if not daemon.write(lambda connection: create_agent(connection, agent)):
        daemon.write(lambda connection: put_agent(connection, agent))
    return f"svc-agent:{agent_id}"


@contextmanager
def default_policy(daemon: Daemon, policy: RetrievalPolicy) -> Iterator[None]:
    """The default agent with another policy, for a while."""
    agent = daemon.read(lambda connection: find_agent(connection, daemon.team_id, "default"))
    assert agent is not None
    daemon.write(lambda connection: put_agent(connection, replace(agent, policy=policy)))
    yield
    daemon.write(lambda connection: put_agent(connection, replace(agent, policy=EVERYTHING)))


def names(daemon: Daemon, **body: Any) -> set[str]:
    return {result["filename"] for result in body_of(daemon.search("grey stone", **body))["data"]}


def ids(daemon: Daemon, *filenames: str) -> tuple[str, ...]:
    """Ids of the sources with these file names, wherever they are."""
    rows = daemon.read(lambda connection: connection.execute("SELECT id, filename FROM sources").fetchall())
    known = {row["filename"]: row["id"] for row in rows}
    return tuple(known[name] for name in filenames)


def test_an_agent_of_some_buckets_finds_their_members_only(filled: Daemon) -> None:
    first, old = bucket_id(filled, "first"), bucket_id(filled, "old")
    agent = add_agent(filled, "one", bucket_ids=(first,))
    page = body_of(filled.search("grey stone", agent=agent))
    assert {result["filename"] for result in page["data"]} == {"first.md", "both.md"}
    assert {bucket for result in page["data"] for bucket in result["bucket_ids"]} == {first}
    assert page["agent"] == agent
    assert names(filled, agent=add_agent(filled, "old", bucket_ids=(old, first))) == {"first.md", "both.md"}
    assert names(filled, agent=add_agent(filled, "every", bucket_ids=("*",))) == EVERYWHERE


def test_both_spellings_and_the_bare_one_go_by_the_policy(filled: Daemon) -> None:
    add_agent(filled, "one", bucket_ids=(bucket_id(filled, "first"),))
    for spelling in ("svc-agent", "svc-rag-agent"):
        page = body_of(filled.search("grey stone", agent=f"{spelling}:one"))
        assert page["agent"] == f"{spelling}:one"
        assert {result["filename"] for result in page["data"]} == {"first.md", "both.md"}


def test_without_agent_and_buckets_the_default_agent_decides(filled: Daemon) -> None:
    assert names(filled) == EVERYWHERE
    with default_policy(filled, RetrievalPolicy(bucket_ids=(bucket_id(filled, "second"),))):
        assert names(filled) == names(filled, agent="svc-rag-agent") == {"second.md", "both.md"}
        assert names(filled, buckets=["first"]) == {"first.md", "both.md"}
        assert names(filled, buckets=["first"], agent="svc-agent") == set()
    assert names(filled) == EVERYWHERE


def test_the_scope_of_the_team_finds_questions_and_what_is_in_no_bucket(filled: Daemon) -> None:
    agent = add_agent(filled, "team", scope="team")
    page = body_of(filled.search("grey stone", agent=agent))
    found = {result["filename"]: result["bucket_ids"] for result in page["data"]}
    assert found.keys() == EVERYWHERE | {QUESTION, "loose.md"}
    assert (found["loose.md"], found[QUESTION]) == ([], [bucket_id(filled, "first")])


def test_named_buckets_take_the_scope_of_the_team_back_to_their_members(filled: Daemon) -> None:
    agent = add_agent(filled, "team", scope="team")
    assert names(filled, agent=agent, buckets=["first"]) == {"first.md", "both.md"}


def test_a_limited_key_finds_the_questions_of_its_buckets_only(filled: Daemon) -> None:
    agent = add_agent(filled, "team", scope="team")
    first = filled.add_key(buckets=(bucket_id(filled, "first"),))
    second = filled.add_key(buckets=(bucket_id(filled, "second"),))
    assert names(filled, agent=agent, key=first) == {"first.md", "both.md", QUESTION}
    assert names(filled, agent=agent, key=second) == {"second.md", "both.md"}
    loose = add_agent(filled, "loose", scope="sources", source_ids=ids(filled, "loose.md"))
    assert names(filled, agent=loose) == {"loose.md"}
    assert names(filled, agent=loose, key=first) == set()


def test_named_sources_are_found_wherever_they_are_active(filled: Daemon) -> None:
    wanted = ids(filled, "second.md", "loose.md", "old.md")
    agent = add_agent(filled, "picked", scope="sources", source_ids=wanted)
    assert names(filled, agent=agent) == {"second.md", "loose.md"}
    assert names(filled, agent=agent, buckets=["second"]) == {"second.md"}
    assert names(filled, agent=agent, source_ids=[wanted[1], *ids(filled, "first.md")]) == {"loose.md"}
    assert names(filled, agent=add_agent(filled, "none", scope="sources")) == set()


def test_over_200_sources_of_a_policy_are_too_many(filled: Daemon) -> None:
    agent = add_agent(filled, "wide", scope="sources", source_ids=tuple(f"src_{number}" for number in range(201)))
    answer = filled.search("grey", agent=agent)
    assert details_of(answer, "metadata_filter_too_large") == {"max_source_ids": 200}
    assert "bucket" in answer.json()["error"]["message"]


def test_filters_of_policy_and_request_both_hold(filled: Daemon) -> None:
    outside_second: dict[str, Any] = {"type": "ne", "key": "in", "value": "second"}
    in_first: dict[str, Any] = {"type": "eq", "key": "in", "value": "first"}
    agent = add_agent(filled, "filtered", bucket_ids=("*",), filters=outside_second)
    assert names(filled, agent=agent) == {"first.md", "both.md"}
    assert names(filled, agent=agent, filters=in_first) == {"first.md"}
    assert names(filled, agent=agent, filters={"type": "eq", "key": "in", "value": "second"}) == set()
    team = add_agent(filled, "of-team", scope="team", filters={"type": "in", "key": "in", "value": ["none", "old"]})
    assert names(filled, agent=team) == {"loose.md"}
    assert names(filled, agent=add_agent(filled, "team", scope="team"), tags=["shared"]) == {"both.md"}


def test_the_policy_says_how_many_unless_the_caller_does(filled: Daemon) -> None:
    agent = add_agent(filled, "few", bucket_ids=("*",), top_k=1)
    assert len(body_of(filled.search("grey", agent=agent))["data"]) == 1
    assert len(body_of(filled.search("grey", agent=agent, max_num_results=10))["data"]) == 3
    many = add_agent(filled, "many", bucket_ids=("*",), top_k=5000)
    assert len(body_of(filled.search("grey", agent=many))["data"]) == 3


def test_the_higher_threshold_holds(filled: Daemon) -> None:
    agent = add_agent(filled, "strict", bucket_ids=("*",), score_threshold=0.6)
    page = body_of(filled.search("grey second", agent=agent))
    assert {result["filename"] for result in page["data"]} == {"second.md"}
    assert len(body_of(filled.search("grey second"))["data"]) == 3
    loose = body_of(filled.search("grey second", agent=agent, score_threshold=0.1))
    assert {result["filename"] for result in loose["data"]} == {"second.md"}


def test_a_bucket_that_the_agent_does_not_search_is_left_out_and_told(filled: Daemon) -> None:
    agent = add_agent(filled, "one", bucket_ids=(bucket_id(filled, "first"),))
    page = body_of(filled.search("grey stone", agent=agent, buckets=["second", "first"]))
    assert {result["filename"] for result in page["data"]} == {"first.md", "both.md"}
    assert page["warnings"] == ["The agent does not search the bucket 'second'; it was left out."]
    page = body_of(filled.search("grey stone", agent=agent, buckets=["second"]))
    assert (page["data"], len(page["warnings"])) == ([], 1)
    details_of(filled.search("grey stone", agent=agent, buckets=["missing"]), "bucket_not_found")


def test_of_two_buckets_that_are_named_one_that_is_left_out_makes_no_single_one(filled: Daemon) -> None:
    filled.make_bucket("void")
    agent = add_agent(filled, "hollow", bucket_ids=(bucket_id(filled, "void"),))
    details_of(filled.search("grey", agent=agent, buckets=["void"]), "bucket_store_indexing_pending")
    details_of(filled.search("grey", agent=agent, buckets=["void", "void"]), "bucket_store_indexing_pending")
    page = body_of(filled.search("grey", agent=agent, buckets=["void", "first"]))
    assert (page["data"], len(page["warnings"])) == ([], 1)


def test_an_agent_that_can_find_nothing_is_told_by_its_name(filled: Daemon) -> None:
    first, old = bucket_id(filled, "first"), bucket_id(filled, "old")
    for agent_id, policy, why in (
        ("bare", {"bucket_ids": ()}, "its policy names no buckets."),
        ("sourceless", {"scope": "sources"}, "its policy names no sources."),
        ("outdated", {"bucket_ids": (old,)}, "its buckets were deleted or archived, or this key reaches none."),
    ):
        page = body_of(filled.search("grey stone", agent=add_agent(filled, agent_id, **policy)))
        (warning,) = page["warnings"]
        assert (page["data"], warning.startswith(f"The agent {agent_id!r} finds nothing: {why}")) == ([], True)
        assert f"`svc agent set {agent_id}`" in warning
        assert old not in warning
    assert body_of(filled.search("zebra", agent=add_agent(filled, "one", bucket_ids=(first,))))["warnings"] == []


def test_a_key_and_an_agent_are_intersected(filled: Daemon) -> None:
    agent = add_agent(filled, "one", bucket_ids=(bucket_id(filled, "first"),))
    assert names(filled, agent=agent, key=filled.add_key(buckets=(bucket_id(filled, "second"),))) == set()
    assert names(filled, agent=agent, key=filled.add_key(buckets=(bucket_id(filled, "first"),))) == {
        "first.md",
        "both.md",
    }


def test_a_key_uses_only_the_models_that_it_may(filled: Daemon) -> None:
    add_agent(filled, "one", bucket_ids=(bucket_id(filled, "first"),))
    key = filled.add_key(models=("svc-rag-agent:one",))
    assert names(filled, key=key, agent="svc-agent:one") == {"first.md", "both.md"}
    for agent in (None, "svc-agent", "svc-agent:other"):
        details_of(filled.search("grey", key=key, agent=agent), "model_not_allowed")


@pytest.mark.parametrize("policy", ["", "{broken", "null", "{}", '{"scope": "team"}', '{"bucket_ids": ["*"]}'])
def test_a_default_agent_with_a_broken_policy_finds_nothing(filled: Daemon, policy: str) -> None:
    breaking = "UPDATE agents SET policy = ? WHERE team_id = ? AND id = 'default'"
    with default_policy(filled, EVERYTHING):
        filled.write(lambda connection: connection.execute(breaking, (policy, filled.team_id)))
        assert names(filled) == names(filled, agent="svc-agent") == names(filled, agent="svc-rag-agent") == set()
        assert names(filled, agent="svc-agent", buckets=["first"]) == set()
        for model in ("svc-agent", "svc-rag-agent"):
            told = body_of(
                filled.ask("POST", "/v1/responses", json={"model": model, "input": "What of the grey stone?"})
            )
            assert (told["model"], told["grounded"], told["sources"]) == (model, False, [])
    told = body_of(filled.ask("POST", "/v1/responses", json={"model": "svc-agent", "input": "What of the grey stone?"}))
    assert told["grounded"]


def test_a_default_agent_that_was_taken_away_finds_nothing(filled: Daemon) -> None:
    agent = filled.read(lambda connection: find_agent(connection, filled.team_id, "default"))
    assert agent is not None
    filled.write(lambda connection: connection.execute("DELETE FROM agents WHERE id = 'default'"))
    assert names(filled) == names(filled, agent="svc-agent") == set()
    filled.write(lambda connection: create_agent(connection, agent))


def test_a_policy_whose_last_bucket_is_gone_finds_nothing(filled: Daemon) -> None:
    gone = filled.make_bucket("gone")
    agent = add_agent(filled, "left", bucket_ids=(gone,))
    body_of(filled.ask("DELETE", "/v1/buckets/gone", params={"force": "true"}))
    assert names(filled, agent=agent) == set()


def test_no_scope_finds_what_is_in_a_bucket_that_is_being_deleted(make_daemon: Any) -> None:
    daemon = make_daemon()
    daemon.make_bucket()
    daemon.start("indexing", "syncing")
    agent = add_agent(daemon, "team", scope="team")
    daemon.add_ready(filename="notes.md")
    assert daemon.found("umber", agent=agent)
    body_of(daemon.ask("DELETE", "/v1/buckets/inbox", params={"force": "true"}))
    assert daemon.found("umber", agent=agent) == []
