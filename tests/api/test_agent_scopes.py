"""What an agent's policy lets a search find, and that it finds nothing else."""

from typing import Any

import pytest

from svc_daemon.core.search.agents import RetrievalPolicy
from svc_daemon.core.uploads.questions import FILE_NAME as QUESTION
from tests.api.agents import agent_of, bucket_id, changed_default, store_agent
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon

TEXT = b"# Notes\n\nThe umber quay was built of grey stone, writes %s.\n"
FIRST, SECOND = {"first.md", "both.md"}, {"second.md", "both.md"}
EVERYWHERE = FIRST | SECOND


@pytest.fixture(scope="module")
def filled(shared: Daemon) -> Daemon:
    """Sources in the buckets `first` and `second`, in both, in an archived one, in none, and a Q and A in `first`."""
    shared.start()
    for bucket in ("first", "second", "old"):
        shared.make_bucket(bucket)
        metadata = f'{{"in": "{bucket}"}}'
        shared.add_ready(TEXT % bucket.encode(), bucket=bucket, filename=f"{bucket}.md", metadata=metadata)
    both = shared.add_ready(TEXT % b"both", bucket="first", filename="both.md", tags="shared")
    shared.post("/v1/buckets/second/sources", json={"source_id": both})
    asked = {"question": "What of the umber quay?", "answer": "Grey stone."}
    shared.wait_ready(both, shared.post("/v1/buckets/first/qa", 201, json=asked)["id"])
    loose = shared.add_ready(TEXT % b"loose", bucket="first", filename="loose.md", metadata='{"in": "none"}')
    shared.delete(f"/v1/buckets/first/sources/{loose}")
    shared.patch("/v1/buckets/old", status="archived")
    shared.stop()
    return shared


def search(daemon: Daemon, **body: Any) -> dict[str, Any]:
    return body_of(daemon.search("grey stone", **body))


def names(daemon: Daemon, **body: Any) -> set[str]:
    return {result["filename"] for result in search(daemon, **body)["data"]}


def ids(daemon: Daemon, *filenames: str) -> tuple[str, ...]:
    """Ids of the sources with these file names, wherever they are."""
    rows = daemon.read(lambda connection: connection.execute("SELECT id, filename FROM sources").fetchall())
    known = {row["filename"]: row["id"] for row in rows}
    return tuple(known[name] for name in filenames)


@pytest.mark.rule("service.agents", "model.echo", "agents.agent")
def test_an_agent_of_some_buckets_finds_their_members_only(filled: Daemon) -> None:
    first, old = bucket_id(filled, "first"), bucket_id(filled, "old")
    page = search(filled, agent=agent_of(filled, "first"))
    assert {result["filename"] for result in page["data"]} == FIRST
    assert {bucket for result in page["data"] for bucket in result["bucket_ids"]} == {first}
    assert names(filled, agent=store_agent(filled, "old", bucket_ids=(old, first))) == FIRST
    assert names(filled, agent=store_agent(filled, "every", bucket_ids=("*",))) == EVERYWHERE
    for spelling in ("svc-agent:only-first", "svc-rag-agent:only-first"):
        assert search(filled, agent=spelling)["agent"] == spelling
        assert names(filled, agent=spelling) == FIRST


@pytest.mark.rule("service.agents", "model.default")
def test_without_agent_and_buckets_the_default_agent_decides(filled: Daemon) -> None:
    assert names(filled) == EVERYWHERE
    with changed_default(filled, RetrievalPolicy(bucket_ids=(bucket_id(filled, "second"),))):
        assert names(filled) == names(filled, agent="svc-rag-agent") == SECOND
        assert names(filled, buckets=["first"]) == FIRST
        assert names(filled, buckets=["first"], agent="svc-agent") == set()
    assert names(filled) == EVERYWHERE


@pytest.mark.rule("source.qa")
def test_the_scope_of_the_team_finds_questions_and_what_is_in_no_bucket(filled: Daemon) -> None:
    agent = store_agent(filled, "team", scope="team")
    found = {result["filename"]: result["bucket_ids"] for result in search(filled, agent=agent)["data"]}
    assert found.keys() == EVERYWHERE | {QUESTION, "loose.md"}
    assert (found["loose.md"], found[QUESTION]) == ([], [bucket_id(filled, "first")])
    assert names(filled, agent=agent, buckets=["first"]) == FIRST
    assert names(filled, agent=agent, tags=["shared"]) == {"both.md"}


def test_a_key_and_an_agent_are_intersected(filled: Daemon) -> None:
    first, second = (filled.add_key(buckets=(bucket_id(filled, slug),)) for slug in ("first", "second"))
    team = store_agent(filled, "team", scope="team")
    assert names(filled, agent=team, key=first) == FIRST | {QUESTION}
    assert names(filled, agent=team, key=second) == SECOND
    loose = store_agent(filled, "loose", scope="sources", source_ids=ids(filled, "loose.md"))
    assert (names(filled, agent=loose), names(filled, agent=loose, key=first)) == ({"loose.md"}, set())
    agent = agent_of(filled, "first")
    assert (names(filled, agent=agent, key=first), names(filled, agent=agent, key=second)) == (FIRST, set())


def test_named_sources_are_found_wherever_they_are_active(filled: Daemon) -> None:
    wanted = ids(filled, "second.md", "loose.md", "old.md")
    agent = store_agent(filled, "picked", scope="sources", source_ids=wanted)
    assert names(filled, agent=agent) == {"second.md", "loose.md"}
    assert names(filled, agent=agent, buckets=["second"]) == {"second.md"}
    assert names(filled, agent=agent, source_ids=[wanted[1], *ids(filled, "first.md")]) == {"loose.md"}
    assert names(filled, agent=store_agent(filled, "none", scope="sources")) == set()


@pytest.mark.rule("metadata_filter_too_large")
def test_over_200_sources_of_a_policy_are_too_many(filled: Daemon) -> None:
    agent = store_agent(filled, "wide", scope="sources", source_ids=tuple(f"src_{number}" for number in range(201)))
    answer = filled.search("grey", agent=agent)
    assert details_of(answer, "metadata_filter_too_large") == {"max_source_ids": 200}
    assert "bucket" in answer.json()["error"]["message"]


def test_filters_of_policy_and_request_both_hold(filled: Daemon) -> None:
    def metadata(kind: str, value: Any) -> dict[str, Any]:
        return {"type": kind, "key": "in", "value": value}

    agent = store_agent(filled, "filtered", bucket_ids=("*",), filters=metadata("ne", "second"))
    assert names(filled, agent=agent) == FIRST
    assert names(filled, agent=agent, filters=metadata("eq", "first")) == {"first.md"}
    assert names(filled, agent=agent, filters=metadata("eq", "second")) == set()
    team = store_agent(filled, "of-team", scope="team", filters=metadata("in", ["none", "old"]))
    assert names(filled, agent=team) == {"loose.md"}


def test_the_policy_limits_the_results_unless_the_caller_does(filled: Daemon) -> None:
    few, many = (store_agent(filled, f"top-{top_k}", bucket_ids=("*",), top_k=top_k) for top_k in (1, 5000))
    for body, count in (({"agent": few}, 1), ({"agent": few, "max_num_results": 10}, 3), ({"agent": many}, 3)):
        assert len(search(filled, **body)["data"]) == count, body


def test_the_higher_threshold_holds(filled: Daemon) -> None:
    agent = store_agent(filled, "strict", bucket_ids=("*",), score_threshold=0.6)
    assert len(body_of(filled.search("grey second"))["data"]) == 3
    for lower in ({}, {"score_threshold": 0.1}):
        (result,) = body_of(filled.search("grey second", agent=agent, **lower))["data"]
        assert result["filename"] == "second.md"


def test_a_bucket_that_the_agent_does_not_search_is_left_out_with_a_warning(filled: Daemon) -> None:
    agent = agent_of(filled, "first")
    page = search(filled, agent=agent, buckets=["second", "first"])
    assert {result["filename"] for result in page["data"]} == FIRST
    assert page["warnings"] == ["The agent does not search the bucket 'second'; it was left out."]
    page = search(filled, agent=agent, buckets=["second"])
    assert (page["data"], len(page["warnings"])) == ([], 1)
    details_of(filled.search("grey stone", agent=agent, buckets=["missing"]), "bucket_not_found")


def test_of_two_named_buckets_one_that_is_left_out_makes_no_single_one(filled: Daemon) -> None:
    filled.make_bucket("void")
    agent = agent_of(filled, "void")
    for buckets in (["void"], ["void", "void"]):
        details_of(filled.search("grey", agent=agent, buckets=buckets), "bucket_store_indexing_pending")
    page = search(filled, agent=agent, buckets=["void", "first"])
    assert (page["data"], len(page["warnings"])) == ([], 1)


def test_an_agent_that_can_find_nothing_is_named_in_a_warning(filled: Daemon) -> None:
    old = bucket_id(filled, "old")
    for agent_id, policy, why in (
        ("bare", {"bucket_ids": ()}, "its policy names no buckets."),
        ("sourceless", {"scope": "sources"}, "its policy names no sources."),
        ("outdated", {"bucket_ids": (old,)}, "its buckets were deleted or archived, or this key reaches none."),
    ):
        page = search(filled, agent=store_agent(filled, agent_id, **policy))
        (warning,) = page["warnings"]
        assert (page["data"], warning.startswith(f"The agent {agent_id!r} finds nothing: {why}")) == ([], True)
        assert f"`svc agent set {agent_id}`" in warning
        assert old not in warning
    assert body_of(filled.search("zebra", agent=agent_of(filled, "first")))["warnings"] == []


@pytest.mark.rule("service.agents")
def test_a_default_agent_with_a_broken_policy_finds_nothing(filled: Daemon) -> None:
    breaking = "UPDATE agents SET policy = :policy WHERE team_id = :team AND id = 'default'"
    for policy in ("", "{broken", "null", "{}", '{"scope": "team"}', '{"bucket_ids": ["*"]}', b"\xff\xfe", 7):
        with changed_default(filled):
            filled.write(lambda connection: connection.execute(breaking, {"policy": policy, "team": filled.team_id}))  # noqa: B023
            asked: list[dict[str, Any]] = [{"agent": "svc-agent", "buckets": ["first"]}, {"agent": "svc-rag-agent"}]
            for body in ({}, {"agent": "svc-agent"}, *asked):
                page = search(filled, **body)
                assert page["data"] == [], (policy, body)
                assert page["warnings"][0].startswith("The agent 'default' finds nothing: its stored policy is broken.")


def test_no_scope_finds_what_is_in_a_bucket_that_is_being_deleted(daemon: Daemon) -> None:
    daemon.start("indexing", "syncing")
    agents = (store_agent(daemon, "team", scope="team"), agent_of(daemon, "inbox"))
    daemon.add_ready()
    assert all(daemon.found("umber", agent=agent) for agent in agents)
    daemon.delete("/v1/buckets/inbox", force="true")
    assert [daemon.found("umber", agent=agent) for agent in agents] == [[], []]
