"""No question brings an agent's text from outside its scope: random ones, over buckets that overlap, of two teams."""

import random
from dataclasses import dataclass

import pytest

from tests.api.agents import made
from tests.api.answers import body_of
from tests.api.daemons import Daemon

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
    policies = {bucket: {"bucket_ids": [bucket]} for bucket in BUCKETS} | {"picked": {"source_ids": picked}}
    for agent_id, policy in policies.items():
        made(daemon, agent_id, key=key, policy=policy)
    return Team(key, words, {**reach, "picked": set(picked)})


def search(daemon: Daemon, team: Team, model: str, question: str) -> set[str]:
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
        found = ask if number % 5 == 0 else search
        source_ids = found(shared, team, model, " ".join(question))
        expected = {source_id for source_id in team.reach[agent_id] if team.words[source_id] & set(question)}
        assert source_ids <= expected if found is ask else source_ids == expected, question
        found_nothing += not source_ids
    # A question that finds nothing proves nothing.
    assert found_nothing < count / 3
