"""What a sent profile makes of a policy: what isn't sent stays, and what contradicts itself is named."""

from typing import Any

import pytest

from svc_daemon.core.agents import EVERYTHING, Policy
from svc_daemon.core.profiles import change_policy, find_faults
from svc_daemon.errors import ServiceError

FILTERS = {"type": "eq", "key": "lang", "value": "en"}
FULL = Policy(bucket_ids=("bkt_a",), filters=FILTERS, top_k=3, score_threshold=0.5)
PICKED = Policy(scope="sources", source_ids=("src_a",), top_k=3)
TEAM = Policy(scope="team")


@pytest.mark.parametrize(
    ("policy", "sent", "changed"),
    [
        (FULL, {}, FULL),
        (FULL, {"top_k": 9}, Policy(bucket_ids=("bkt_a",), filters=FILTERS, top_k=9, score_threshold=0.5)),
        (FULL, {"filters": {}}, Policy(bucket_ids=("bkt_a",), top_k=3, score_threshold=0.5)),
        (FULL, {"score_threshold": 0.0}, Policy(bucket_ids=("bkt_a",), filters=FILTERS, top_k=3, score_threshold=0.0)),
        (FULL, {"top_k": None, "score_threshold": None}, Policy(bucket_ids=("bkt_a",), filters=FILTERS)),
        (EVERYTHING, {"bucket_ids": ["bkt_b"]}, Policy(bucket_ids=("bkt_b",))),
        (EVERYTHING, {"bucket_ids": []}, Policy()),
        (EVERYTHING, {"scope": "buckets"}, EVERYTHING),
        (EVERYTHING, {"source_ids": ["src_a"]}, Policy(scope="sources", source_ids=("src_a",))),
        (EVERYTHING, {"scope": "sources", "source_ids": [], "bucket_ids": []}, Policy(scope="sources")),
        (EVERYTHING, {"scope": "team"}, TEAM),
        (PICKED, {"bucket_ids": ["*"]}, Policy(bucket_ids=("*",), top_k=3)),
        (PICKED, {"bucket_ids": [], "source_ids": ["src_b"]}, Policy(scope="sources", source_ids=("src_b",), top_k=3)),
        (PICKED, {"scope": "sources"}, PICKED),
        (TEAM, {"top_k": 1}, Policy(scope="team", top_k=1)),
    ],
)
def test_what_is_not_sent_stays(policy: Policy, sent: dict[str, Any], changed: Policy) -> None:
    assert change_policy(policy, sent) == changed


@pytest.mark.parametrize(
    ("policy", "sent", "paths"),
    [
        (EVERYTHING, {"bucket_ids": ["bkt_a"], "source_ids": ["src_a"]}, ["policy.source_ids"]),
        (EVERYTHING, {"scope": "sources", "bucket_ids": ["bkt_a"]}, ["policy.bucket_ids", "policy.source_ids"]),
        (EVERYTHING, {"scope": "sources"}, ["policy.source_ids"]),
        (TEAM, {"scope": "buckets"}, ["policy.bucket_ids"]),
        (PICKED, {"scope": "buckets"}, ["policy.bucket_ids"]),
        (FULL, {"scope": "team", "bucket_ids": ["bkt_a"]}, ["policy.bucket_ids"]),
        (FULL, {"scope": "team", "source_ids": ["src_a"]}, ["policy.source_ids"]),
    ],
)
def test_a_policy_that_contradicts_itself_is_refused(policy: Policy, sent: dict[str, Any], paths: list[str]) -> None:
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
