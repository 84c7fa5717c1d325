"""What an agent's policy lets a search find, and that it finds nothing else."""

import random
from dataclasses import dataclass
from typing import Any

import pytest

from svc_daemon.core.search.agents import RetrievalPolicy
from svc_daemon.core.uploads.questions import FILE_NAME as QUESTION
from tests.api.agents import agent_of, bucket_id, changed_default, made, store_agent
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
                assert names(filled, **body) == set(), (policy, body)


def test_no_scope_finds_what_is_in_a_bucket_that_is_being_deleted(daemon: Daemon) -> None:
    daemon.start("indexing", "syncing")
    agents = (store_agent(daemon, "team", scope="team"), agent_of(daemon, "inbox"))
    daemon.add_ready()
    assert all(daemon.found("umber", agent=agent) for agent in agents)
    daemon.delete("/v1/buckets/inbox", force="true")
    assert [daemon.found("umber", agent=agent) for agent in agents] == [[], []]


BUCKETS = ("blue", "green", "red", "grey")
WORDS = [first + last for first in ("umber", "quay", "stone", "mill", "tide") for last in ("ra", "lo", "mi", "tu")]
#: In each team.
SOURCES = 20
#: Some of them take 4 ms each; a thousand with --large.
QUESTIONS, LARGE = 300, 1000


@dataclass(frozen=True, slots=True)
class Team:
    """One of two teams whose buckets, words and agents are called the same."""

    key: str
    #: The words of each source.
    words: dict[str, set[str]]
    #: The sources that each agent may find.
    reach: dict[str, set[str]]


@pytest.fixture(scope="module")
def teams(shared: Daemon) -> tuple[Team, Team]:
    chance = random.Random(20)
    shared.start("indexing", "syncing")
    both = fill(shared, shared.key, chance), fill(shared, shared.add_team(), chance)
    ids = [(source_id, team.key) for team in both for source_id in team.words]
    shared.wait(lambda: all(shared.source(*each)["ready"] for each in ids), "all of both teams is ready")
    shared.stop()
    return both


def fill(daemon: Daemon, key: str, chance: random.Random) -> Team:
    places: dict[str, set[str]] = {}
    words: dict[str, set[str]] = {}
    for bucket in BUCKETS:
        daemon.make_bucket(bucket, key=key)
    for number in range(SOURCES):
        chosen, (first, *others) = chance.sample(WORDS, 5), chance.sample(BUCKETS, chance.randint(1, 3))
        source_id = daemon.add_source(" ".join(chosen).encode(), bucket=first, filename=f"{number}.txt", key=key)
        for other in others:
            daemon.post(f"/v1/buckets/{other}/sources", key=key, json={"source_id": source_id})
        places[source_id], words[source_id] = {first, *others}, set(chosen)
    reach = {bucket: {source for source, at in places.items() if bucket in at} for bucket in BUCKETS}
    picked = chance.sample(sorted(places), 5)
    policies = {bucket: {"bucket_ids": [bucket]} for bucket in BUCKETS} | {"drawn": {"source_ids": picked}}
    for agent_id, policy in policies.items():
        made(daemon, agent_id, key=key, policy=policy)
    return Team(key, words, {**reach, "drawn": set(picked)})


def search_all(daemon: Daemon, team: Team, model: str, question: str) -> set[str]:
    """The sources that are found."""
    page = body_of(daemon.search(question, key=team.key, agent=model, max_num_results=50))
    return {result["source_id"] for result in page["data"]}


def ask(daemon: Daemon, team: Team, model: str, question: str) -> set[str]:
    """The sources that are quoted; the answer has the words of no other."""
    answer = daemon.post("/v1/responses", key=team.key, json={"model": model, "input": question})
    quoted = {source["source_id"] for source in answer["sources"]}
    written = {word for word in WORDS if answer["grounded"] and word in answer["output"][0]["content"][0]["text"]}
    assert written <= {word for source_id in quoted for word in team.words[source_id]}
    return quoted


@pytest.mark.rule("service.agents")
def test_an_agent_finds_all_of_its_scope_and_nothing_else(
    shared: Daemon, teams: tuple[Team, Team], large: bool
) -> None:
    chance, found_nothing, count = random.Random(21), 0, LARGE if large else QUESTIONS
    for number in range(count):
        team = chance.choice(teams)
        agent_id = chance.choice(sorted(team.reach))
        question = chance.sample(WORDS, chance.randint(1, 4))
        model = f"{chance.choice(('svc-agent', 'svc-rag-agent'))}:{agent_id}"
        found = ask if number % 5 == 0 else search_all
        source_ids = found(shared, team, model, " ".join(question))
        expected = {source_id for source_id in team.reach[agent_id] if team.words[source_id] & set(question)}
        assert source_ids <= expected if found is ask else source_ids == expected, question
        found_nothing += not source_ids
    # A question that finds nothing proves nothing.
    assert found_nothing < count / 3
