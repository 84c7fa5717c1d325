"""Tests policies of agents."""

import json
from dataclasses import replace
from typing import Any

import pytest

from svc_daemon.core.search import agents
from svc_daemon.core.search.agents import (
    EVERYTHING,
    NOTHING,
    RetrievalPolicy,
    policy_text,
    read_policy,
)
from tests.core.refusals import refusal

TEAM = RetrievalPolicy(scope="team")


def of_buckets(*names: str, **fields: Any) -> RetrievalPolicy:
    return RetrievalPolicy(bucket_ids=tuple(f"bkt_{name}" for name in names), **fields)


def of_sources(*names: str, **fields: Any) -> RetrievalPolicy:
    return RetrievalPolicy(scope="sources", source_ids=tuple(f"src_{name}" for name in names), **fields)


BUILT_1880 = {"type": "eq", "key": "year", "value": 1880}
FULL = of_sources("a", "b", bucket_ids=("bkt_a",), filters=BUILT_1880, top_k=3, score_threshold=0.5)


@pytest.mark.parametrize("policy", [EVERYTHING, NOTHING, FULL, replace(TEAM, score_threshold=1)])
def test_a_policy_survives_writing_and_reading(policy: RetrievalPolicy) -> None:
    assert read_policy(policy_text(policy)) == policy


YEAR, LANG = ({"type": "eq", "key": key, "value": 1} for key in ("year", "lang"))
BOTH, EITHER = ({"type": join, "filters": [YEAR, LANG]} for join in ("and", "or"))
WITHIN: list[tuple[RetrievalPolicy, RetrievalPolicy, bool]] = [
    *((EVERYTHING, EVERYTHING, True), (EVERYTHING, TEAM, True), (TEAM, EVERYTHING, False)),
    *((of_buckets("a"), EVERYTHING, True), (EVERYTHING, of_buckets("a"), False)),
    *((of_buckets("a", "b"), of_buckets("a"), False), (of_buckets("b"), of_buckets("a", "b"), True)),
    *((of_sources("a"), EVERYTHING, False), (of_sources("a"), FULL, False)),
    *((replace(FULL, source_ids=("src_a",)), FULL, True), (replace(FULL, source_ids=("src_a", "src_c")), FULL, False)),
    *((replace(FULL, score_threshold=0.6, top_k=50), FULL, True), (replace(FULL, score_threshold=None), FULL, False)),
    *((replace(FULL, filters=None), FULL, False), (NOTHING, FULL, True), (of_buckets("a"), NOTHING, False)),
    (replace(EVERYTHING, filters=YEAR), EVERYTHING, True),
    (replace(EVERYTHING, filters=YEAR), replace(EVERYTHING, filters=LANG), False),
    (replace(EVERYTHING, filters=BOTH), replace(EVERYTHING, filters=LANG), True),
    (replace(EVERYTHING, filters=EITHER), replace(EVERYTHING, filters=LANG), False),
]


@pytest.mark.parametrize(("policy", "other", "is_within"), WITHIN)
def test_a_policy_is_within_another_that_retrieves_at_least_as_much(
    policy: RetrievalPolicy, other: RetrievalPolicy, is_within: bool
) -> None:
    assert policy.is_within(other) is is_within


#: Invalid values of each field.
BROKEN: dict[str, list[Any]] = {
    "scope": ["everything", None, ["team"], "Team"],
    "bucket_ids": [None, "*", {"*": 1}, ["docs"], ["bkt_a", 7], ["src_a"]],
    "source_ids": [["*"], None],
    "filters": [[], {}, {"type": "like", "key": "a", "value": "b"}],
    "top_k": [0, True, "3", 2.0],
    "score_threshold": [-0.1, 1.1, float("nan"), True, "0.5"],
    "colour": ["red"],
}


def test_an_incomplete_or_invalid_policy_is_refused() -> None:
    texts = ["", "null", "[]", "{}", '{"scope": "team"}', "{" * 9999, "7", '"team"', "{'scope'"]
    whole = json.loads(policy_text(FULL))
    broken = [whole | {name: value} for name, values in BROKEN.items() for value in values]
    missing = [{name: whole[name] for name in whole if name != left_out} for left_out in whole]
    assert len(missing) == 6
    for text in texts + [json.dumps(fields) for fields in broken + missing]:
        with pytest.raises(agents.PolicyFault):
            pytest.fail(f"{text} is read as {read_policy(text)}")


FILTERS = {"type": "eq", "key": "lang", "value": "en"}
PROFILE = of_buckets("a", filters=FILTERS, top_k=3, score_threshold=0.5)
PICKED = of_sources("a", top_k=3)
CHANGES: list[tuple[RetrievalPolicy, dict[str, Any], RetrievalPolicy]] = [
    *((PROFILE, {}, PROFILE), (PROFILE, {"top_k": 9}, replace(PROFILE, top_k=9))),
    (PROFILE, {"filters": {}}, replace(PROFILE, filters=None)),
    (PROFILE, {"score_threshold": 0.0}, replace(PROFILE, score_threshold=0.0)),
    (PROFILE, {"top_k": None, "score_threshold": None}, of_buckets("a", filters=FILTERS)),
    *((EVERYTHING, {"bucket_ids": ["bkt_b"]}, of_buckets("b")), (EVERYTHING, {"bucket_ids": []}, RetrievalPolicy())),
    *((EVERYTHING, {"scope": "buckets"}, EVERYTHING), (EVERYTHING, {"source_ids": ["src_a"]}, of_sources("a"))),
    (EVERYTHING, {"scope": "sources", "source_ids": [], "bucket_ids": []}, of_sources()),
    (EVERYTHING, {"scope": "team"}, TEAM),
    (PICKED, {"bucket_ids": ["*"]}, RetrievalPolicy(bucket_ids=("*",), top_k=3)),
    (PICKED, {"bucket_ids": [], "source_ids": ["src_b"]}, of_sources("b", top_k=3)),
    *((PICKED, {"scope": "sources"}, PICKED), (TEAM, {"top_k": 1}, replace(TEAM, top_k=1))),
]
CONTRADICTIONS: list[tuple[RetrievalPolicy, dict[str, Any], list[str]]] = [
    (EVERYTHING, {"bucket_ids": ["bkt_a"], "source_ids": ["src_a"]}, ["policy.source_ids"]),
    (EVERYTHING, {"scope": "sources", "bucket_ids": ["bkt_a"]}, ["policy.bucket_ids", "policy.source_ids"]),
    (EVERYTHING, {"scope": "sources"}, ["policy.source_ids"]),
    (TEAM, {"scope": "buckets"}, ["policy.bucket_ids"]),
    (PICKED, {"scope": "buckets"}, ["policy.bucket_ids"]),
    (PROFILE, {"scope": "team", "bucket_ids": ["bkt_a"]}, ["policy.bucket_ids"]),
    (PROFILE, {"scope": "team", "source_ids": ["src_a"]}, ["policy.source_ids"]),
]


@pytest.mark.parametrize(("policy", "sent", "changed"), CHANGES)
def test_a_change_keeps_the_fields_that_it_does_not_name(
    policy: RetrievalPolicy, sent: dict[str, Any], changed: RetrievalPolicy
) -> None:
    assert agents.change_policy(policy, sent) == changed


@pytest.mark.parametrize(("policy", "sent", "paths"), CONTRADICTIONS)
def test_a_policy_that_contradicts_itself_is_refused(
    policy: RetrievalPolicy, sent: dict[str, Any], paths: list[str]
) -> None:
    refused = refusal(agents.change_policy, policy, sent)
    assert refused.code == "invalid_agent_profile"
    assert [each["path"] for each in refused.details["errors"]] == paths
