"""An agent's policy: what it covers, and that only a whole one is read."""

import json
from dataclasses import replace
from typing import Any

import pytest

from svc_daemon.core.search.agents import (
    EVERYTHING,
    NOTHING,
    PolicyFault,
    RetrievalPolicy,
    change_policy,
    find_faults,
    policy_text,
    read_policy,
)
from svc_daemon.errors import ServiceError

FULL = RetrievalPolicy(
    scope="sources",
    bucket_ids=("bkt_a",),
    source_ids=("src_a", "src_b"),
    filters={"type": "eq", "key": "year", "value": 1880},
    top_k=3,
    score_threshold=0.5,
)


def test_a_policy_is_read_as_it_was_written() -> None:
    for policy in [EVERYTHING, NOTHING, FULL, RetrievalPolicy(scope="team", score_threshold=1)]:
        assert read_policy(policy_text(policy)) == policy


def test_a_policy_covers_its_buckets() -> None:
    for policy, covered in [
        (EVERYTHING, True),
        (NOTHING, False),
        (RetrievalPolicy(bucket_ids=("bkt_a", "bkt_b")), True),
        (RetrievalPolicy(bucket_ids=("bkt_b",)), False),
        (RetrievalPolicy(scope="sources", bucket_ids=("bkt_b",)), True),
        (RetrievalPolicy(scope="team"), True),
    ]:
        assert policy.covers("bkt_a") is covered


YEAR, LANG = ({"type": "eq", "key": key, "value": 1} for key in ("year", "lang"))
WITHIN: list[tuple[RetrievalPolicy, RetrievalPolicy, bool]] = [
    (EVERYTHING, EVERYTHING, True),
    (EVERYTHING, RetrievalPolicy(scope="team"), True),
    (RetrievalPolicy(scope="team"), EVERYTHING, False),
    (RetrievalPolicy(bucket_ids=("bkt_a",)), EVERYTHING, True),
    (EVERYTHING, RetrievalPolicy(bucket_ids=("bkt_a",)), False),
    (RetrievalPolicy(bucket_ids=("bkt_a", "bkt_b")), RetrievalPolicy(bucket_ids=("bkt_a",)), False),
    (RetrievalPolicy(bucket_ids=("bkt_b",)), RetrievalPolicy(bucket_ids=("bkt_a", "bkt_b")), True),
    (RetrievalPolicy(scope="sources", source_ids=("src_a",)), EVERYTHING, False),
    (RetrievalPolicy(scope="sources", source_ids=("src_a",)), FULL, False),
    (replace(FULL, source_ids=("src_a",)), FULL, True),
    (replace(FULL, source_ids=("src_a", "src_c")), FULL, False),
    (replace(FULL, score_threshold=0.6, top_k=50), FULL, True),
    (replace(FULL, score_threshold=None), FULL, False),
    (replace(FULL, filters=None), FULL, False),
    (NOTHING, FULL, True),
    (RetrievalPolicy(bucket_ids=("bkt_a",)), NOTHING, False),
    (replace(EVERYTHING, filters=YEAR), EVERYTHING, True),
    (replace(EVERYTHING, filters=YEAR), replace(EVERYTHING, filters=LANG), False),
    (replace(EVERYTHING, filters={"type": "and", "filters": [YEAR, LANG]}), replace(EVERYTHING, filters=LANG), True),
    (replace(EVERYTHING, filters={"type": "or", "filters": [YEAR, LANG]}), replace(EVERYTHING, filters=LANG), False),
]


def test_a_policy_is_within_one_that_retrieves_all_it_does() -> None:
    for policy, other, is_within in WITHIN:
        assert policy.is_within(other) is is_within


def test_what_is_no_whole_policy_is_none() -> None:
    for text in ["", "null", "[]", "{}", '{"scope": "team"}', "{" * 9999, "7", '"team"', "{'scope'"]:
        with pytest.raises(PolicyFault):
            read_policy(text)


BROKEN: list[tuple[str, Any]] = [
    ("scope", "everything"),
    ("scope", None),
    ("scope", ["team"]),
    ("scope", "Team"),
    ("bucket_ids", None),
    ("bucket_ids", "*"),
    ("bucket_ids", {"*": 1}),
    ("bucket_ids", ["docs"]),
    ("bucket_ids", ["bkt_a", 7]),
    ("bucket_ids", ["src_a"]),
    ("source_ids", ["*"]),
    ("source_ids", None),
    ("filters", []),
    ("filters", {}),
    ("filters", {"type": "like", "key": "a", "value": "b"}),
    ("top_k", 0),
    ("top_k", True),
    ("top_k", "3"),
    ("top_k", 2.0),
    ("score_threshold", -0.1),
    ("score_threshold", 1.1),
    ("score_threshold", float("nan")),
    ("score_threshold", True),
    ("score_threshold", "0.5"),
    ("colour", "red"),
]


def test_one_broken_field_makes_the_policy_none() -> None:
    for name, value in BROKEN:
        fields = json.loads(policy_text(FULL))
        with pytest.raises(PolicyFault):
            read_policy(json.dumps(fields | {name: value}))


def test_a_missing_field_makes_the_policy_none() -> None:
    for name in ["scope", "bucket_ids", "source_ids", "filters", "top_k", "score_threshold"]:
        fields = json.loads(policy_text(FULL))
        del fields[name]
        with pytest.raises(PolicyFault):
            read_policy(json.dumps(fields))


FILTERS = {"type": "eq", "key": "lang", "value": "en"}
FULL_PROFILES = RetrievalPolicy(bucket_ids=("bkt_a",), filters=FILTERS, top_k=3, score_threshold=0.5)
PICKED = RetrievalPolicy(scope="sources", source_ids=("src_a",), top_k=3)
TEAM = RetrievalPolicy(scope="team")


@pytest.mark.parametrize(
    ("policy", "sent", "changed"),
    [
        (FULL_PROFILES, {}, FULL_PROFILES),
        (
            FULL_PROFILES,
            {"top_k": 9},
            RetrievalPolicy(bucket_ids=("bkt_a",), filters=FILTERS, top_k=9, score_threshold=0.5),
        ),
        (FULL_PROFILES, {"filters": {}}, RetrievalPolicy(bucket_ids=("bkt_a",), top_k=3, score_threshold=0.5)),
        (
            FULL_PROFILES,
            {"score_threshold": 0.0},
            RetrievalPolicy(bucket_ids=("bkt_a",), filters=FILTERS, top_k=3, score_threshold=0.0),
        ),
        (
            FULL_PROFILES,
            {"top_k": None, "score_threshold": None},
            RetrievalPolicy(bucket_ids=("bkt_a",), filters=FILTERS),
        ),
        (EVERYTHING, {"bucket_ids": ["bkt_b"]}, RetrievalPolicy(bucket_ids=("bkt_b",))),
        (EVERYTHING, {"bucket_ids": []}, RetrievalPolicy()),
        (EVERYTHING, {"scope": "buckets"}, EVERYTHING),
        (EVERYTHING, {"source_ids": ["src_a"]}, RetrievalPolicy(scope="sources", source_ids=("src_a",))),
        (EVERYTHING, {"scope": "sources", "source_ids": [], "bucket_ids": []}, RetrievalPolicy(scope="sources")),
        (EVERYTHING, {"scope": "team"}, TEAM),
        (PICKED, {"bucket_ids": ["*"]}, RetrievalPolicy(bucket_ids=("*",), top_k=3)),
        (
            PICKED,
            {"bucket_ids": [], "source_ids": ["src_b"]},
            RetrievalPolicy(scope="sources", source_ids=("src_b",), top_k=3),
        ),
        (PICKED, {"scope": "sources"}, PICKED),
        (TEAM, {"top_k": 1}, RetrievalPolicy(scope="team", top_k=1)),
    ],
)
def test_what_is_not_sent_stays(policy: RetrievalPolicy, sent: dict[str, Any], changed: RetrievalPolicy) -> None:
    assert change_policy(policy, sent) == changed


@pytest.mark.parametrize(
    ("policy", "sent", "paths"),
    [
        (EVERYTHING, {"bucket_ids": ["bkt_a"], "source_ids": ["src_a"]}, ["policy.source_ids"]),
        (EVERYTHING, {"scope": "sources", "bucket_ids": ["bkt_a"]}, ["policy.bucket_ids", "policy.source_ids"]),
        (EVERYTHING, {"scope": "sources"}, ["policy.source_ids"]),
        (TEAM, {"scope": "buckets"}, ["policy.bucket_ids"]),
        (PICKED, {"scope": "buckets"}, ["policy.bucket_ids"]),
        (FULL_PROFILES, {"scope": "team", "bucket_ids": ["bkt_a"]}, ["policy.bucket_ids"]),
        (FULL_PROFILES, {"scope": "team", "source_ids": ["src_a"]}, ["policy.source_ids"]),
    ],
)
def test_a_policy_that_contradicts_itself_is_refused(
    policy: RetrievalPolicy, sent: dict[str, Any], paths: list[str]
) -> None:
    with pytest.raises(ServiceError) as refused:
        change_policy(policy, sent)
    assert refused.value.code == "invalid_agent_profile"
    assert [each["path"] for each in refused.value.details["errors"]] == paths


@pytest.mark.parametrize(
    ("sent", "paths"),
    [
        ({}, []),
        ({"name": "Sales", "bound_surface": "", "policy": {"filters": {}}}, []),
        ({"name": " "}, ["name"]),
        ({"name": "a\nb", "bound_surface": "x\x07"}, ["name", "bound_surface"]),
        ({"instructions": "a\nb"}, []),
        ({"policy": {"filters": {"type": "like"}}}, ["policy.filters.type"]),
        ({"policy": {"filters": {"type": "and", "filters": [FILTERS, {}]}}}, ["policy.filters.filters[1].type"]),
    ],
)
def test_every_fault_is_named(sent: dict[str, Any], paths: list[str]) -> None:
    assert [path for path, _ in find_faults(sent, 50)] == paths
