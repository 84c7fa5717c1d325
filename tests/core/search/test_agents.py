"""Tests policies of agents, and filters: their grammar, and each comparison with each type of value."""

import json
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.search import agents
from svc_daemon.core.search.agents import (
    EVERYTHING,
    MAX_DEPTH,
    NOTHING,
    RetrievalPolicy,
    check_filter,
    passes,
    policy_text,
    read_policy,
)
from svc_daemon.errors import ServiceError
from tests.core.refusals import field_of, refusal

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


KINDS = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin")
FILTER: dict[str, Any] = {"type": "eq", "key": "a", "value": 1}
SCALARS = st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
JSON = st.recursive(
    st.none() | SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["year", "lang", "type"])
ATTRIBUTES = st.dictionaries(KEYS, JSON)
ANY_KIND = st.sampled_from([*KINDS, "and", "or", "xor"]) | JSON
#: Filters that are mostly valid, but wrong in some part.
COMPARISONS = st.fixed_dictionaries({"type": ANY_KIND, "key": KEYS | JSON, "value": SCALARS | st.lists(SCALARS) | JSON})
NODES = st.recursive(
    COMPARISONS,
    lambda inner: st.fixed_dictionaries({"type": ANY_KIND, "filters": st.lists(inner, max_size=3) | JSON}),
    max_leaves=6,
)


def _is_refused(node: Any) -> bool:
    try:
        check_filter(node)
    except ServiceError as error:
        assert error.code == "invalid_request"
        assert error.details["errors"][0]["path"].startswith("filters")
        return True
    return False


#: The comparisons that are true, by attribute and value; None is a missing attribute.
TABLE: dict[str, list[tuple[Any, Any]]] = {
    "eq gte lte": [(2, 2), (2, 2.0), ("b", "b")],
    "ne lt lte": [(1, 2), ("a", "b"), ("B", "b")],
    "ne gt gte": [(3, 2), (2.5, 2)],
    "eq": [(True, True)],
    "ne": [("2", 2), (2, "2"), (True, False), (True, 1), (1, True), (False, 0), (0, False), (True, "true"), (None, 2)],
}


def true_kinds(have: Any, want: Any) -> set[str]:
    """Return the comparisons with `want` that are true if `year` is `have`; None means that it is missing."""
    attributes = {} if have is None else {"year": have}
    nodes = {kind: {"type": kind, "key": "year", "value": want} for kind in KINDS[:6]}
    for node in nodes.values():
        check_filter(node)
    return {kind for kind, node in nodes.items() if passes(node, attributes)}


@pytest.mark.parametrize(
    ("true", "have", "want"), [(true.split(), *pair) for true, pairs in TABLE.items() for pair in pairs]
)
def test_each_comparison_of_each_pair_of_types_has_its_result(
    true: list[str], have: Any, want: bool | float | str
) -> None:
    assert true_kinds(have, want) == set(true)
    attributes = {} if have is None else {"year": have}
    for kind, is_so in [("in", "eq" in true), ("nin", "eq" not in true)]:
        assert passes({"type": kind, "key": "year", "value": ["other", want]}, attributes) is is_so


def test_an_attribute_that_is_not_a_scalar_only_differs_from_values() -> None:
    for have in ([1, 2], {"a": 1}, []):
        assert true_kinds(have, 1) == {"ne"}, have
    assert not passes({"type": "in", "key": "year", "value": []}, {"year": 1})
    assert passes({"type": "nin", "key": "year", "value": []}, {"year": 1})


@pytest.mark.parametrize(("one", "other"), [*product((True, False), repeat=2)])
def test_and_needs_all_filters_and_or_needs_one(one: bool, other: bool) -> None:
    parts = [{"type": "eq", "key": "year", "value": int(value)} for value in (one, other)]
    hits = [{"type": "or", "filters": [part]} for part in parts]
    assert passes({"type": "and", "filters": hits}, {"year": 1}) is (one and other)
    assert passes({"type": "or", "filters": hits}, {"year": 1}) is (one or other)


#: Invalid filters by the path of their wrong part.
WRONG: dict[str, list[Any]] = {
    "filters": [[], None, "eq"],
    "filters.type": [{}, *(FILTER | {"type": kind} for kind in ("xor", "EQ", ["eq"], {"eq": 1}))],
    "filters.key": [{"type": "eq", "value": 1}, FILTER | {"key": ""}, FILTER | {"key": 1}],
    "filters.value": [
        *({"type": "eq", "key": "a"}, FILTER | {"value": None}, FILTER | {"value": [1]}, FILTER | {"type": "in"}),
        *({"type": "in", "key": "a", "value": "abc"}, {"type": "nin", "key": "a", "value": [[1]]}),
    ],
    "filters.filters": [{"type": "and"}, {"type": "or", "filters": []}, {"type": "or", "filters": {}}],
    "filters.filters[1].value": [{"type": "and", "filters": [FILTER, {"type": "eq", "key": "a"}]}],
}


@pytest.mark.parametrize(("path", "node"), [(path, node) for path, nodes in WRONG.items() for node in nodes])
def test_the_error_about_a_wrong_filter_names_the_wrong_part(path: str, node: Any) -> None:
    assert field_of(refusal(check_filter, node)) == ("invalid_request", path)


def test_filters_may_be_nested_up_to_the_limit() -> None:
    node = FILTER
    for _ in range(MAX_DEPTH):
        node = {"type": "and", "filters": [node]}
    check_filter(node)
    assert _is_refused({"type": "and", "filters": [node]})


@given(NODES | JSON, ATTRIBUTES)
def test_a_filter_that_passed_the_check_never_raises(node: Any, attributes: dict[str, Any]) -> None:
    if not _is_refused(node):
        assert passes(node, attributes) in (True, False)
