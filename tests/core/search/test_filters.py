"""Filters: the whole grammar, every comparison with every kind of value, and no filter that fails after its check."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.search.filters import MAX_DEPTH, check_filter, passes
from svc_daemon.errors import ServiceError

KINDS = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin")
SCALARS = st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
JSON = st.recursive(
    st.none() | SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["year", "lang", "type"])
ATTRIBUTES = st.dictionaries(KEYS, JSON)
ANY_KIND = st.sampled_from([*KINDS, "and", "or", "xor"]) | JSON
#: Nodes that mean to be filters: most are right, some are wrong somewhere.
COMPARISONS = st.fixed_dictionaries({"type": ANY_KIND, "key": KEYS | JSON, "value": SCALARS | st.lists(SCALARS) | JSON})
NODES = st.recursive(
    COMPARISONS,
    lambda inner: st.fixed_dictionaries({"type": ANY_KIND, "filters": st.lists(inner, max_size=3) | JSON}),
    max_leaves=6,
)
RIGHT = st.recursive(
    st.fixed_dictionaries({"type": st.sampled_from(KINDS[:6]), "key": KEYS, "value": SCALARS})
    | st.fixed_dictionaries({"type": st.sampled_from(KINDS[6:]), "key": KEYS, "value": st.lists(SCALARS, max_size=3)}),
    lambda inner: st.fixed_dictionaries(
        {"type": st.sampled_from(["and", "or"]), "filters": st.lists(inner, min_size=1, max_size=3)}
    ),
    max_leaves=8,
)


def _is_refused(node: Any) -> bool:
    try:
        check_filter(node)
    except ServiceError as error:
        assert error.code == "invalid_request"
        assert error.details["errors"][0]["path"].startswith("filters")
        return True
    return False


#: What each comparison says of an attribute and a value; None stands for an attribute that is missing.
TABLE: list[tuple[Any, Any, set[str]]] = [
    (2, 2, {"eq", "gte", "lte"}),
    (1, 2, {"ne", "lt", "lte"}),
    (3, 2, {"ne", "gt", "gte"}),
    (2, 2.0, {"eq", "gte", "lte"}),
    (2.5, 2, {"ne", "gt", "gte"}),
    ("b", "b", {"eq", "gte", "lte"}),
    ("a", "b", {"ne", "lt", "lte"}),
    ("B", "b", {"ne", "lt", "lte"}),
    ("2", 2, {"ne"}),
    (2, "2", {"ne"}),
    (True, True, {"eq"}),
    (True, False, {"ne"}),
    (True, 1, {"ne"}),
    (1, True, {"ne"}),
    (False, 0, {"ne"}),
    (0, False, {"ne"}),
    (True, "true", {"ne"}),
    (None, 2, {"ne"}),
    (None, "", {"ne"}),
    (None, False, {"ne"}),
]


def test_each_comparison_of_each_pair_of_types() -> None:
    for have, want, true in TABLE:
        attributes = {} if have is None else {"year": have}
        said = {kind for kind in KINDS[:6] if passes({"type": kind, "key": "year", "value": want}, attributes)}
        assert said == true


def test_in_is_eq_to_any_and_nin_is_eq_to_none() -> None:
    for have, want, true in TABLE:
        attributes = {} if have is None else {"year": have}
        is_in = "eq" in true
        assert passes({"type": "in", "key": "year", "value": ["other", want]}, attributes) is is_in
        assert passes({"type": "nin", "key": "year", "value": ["other", want]}, attributes) is not is_in


def test_an_attribute_that_is_no_scalar_equals_and_orders_with_nothing() -> None:
    for have in [[1, 2], {"a": 1}, []]:
        said = {kind for kind in KINDS[:6] if passes({"type": kind, "key": "year", "value": 1}, {"year": have})}
        assert said == {"ne"}


def test_an_empty_list_holds_nothing() -> None:
    assert not passes({"type": "in", "key": "year", "value": []}, {"year": 1})
    assert passes({"type": "nin", "key": "year", "value": []}, {"year": 1})


@pytest.mark.parametrize("one", [True, False])
@pytest.mark.parametrize("other", [True, False])
def test_and_needs_all_and_or_needs_one(one: bool, other: bool) -> None:
    parts = [{"type": "eq", "key": "year", "value": value} for value in (int(one), int(other))]
    hits = [{"type": "or", "filters": [parts[0]]}, {"type": "or", "filters": [parts[1]]}]
    assert passes({"type": "and", "filters": hits}, {"year": 1}) is (one and other)
    assert passes({"type": "or", "filters": hits}, {"year": 1}) is (one or other)


WRONG: dict[str, tuple[Any, str]] = {
    "no object": ([], "filters"),
    "nothing": (None, "filters"),
    "a text": ("eq", "filters"),
    "no type": ({}, "filters.type"),
    "a strange type": ({"type": "xor"}, "filters.type"),
    "a type that is a list": ({"type": ["eq"]}, "filters.type"),
    "a type that is an object": ({"type": {"eq": 1}}, "filters.type"),
    "a type in capitals": ({"type": "EQ", "key": "a", "value": 1}, "filters.type"),
    "no key": ({"type": "eq", "value": 1}, "filters.key"),
    "an empty key": ({"type": "eq", "key": "", "value": 1}, "filters.key"),
    "a key that is a number": ({"type": "eq", "key": 1, "value": 1}, "filters.key"),
    "no value": ({"type": "eq", "key": "a"}, "filters.value"),
    "a null": ({"type": "eq", "key": "a", "value": None}, "filters.value"),
    "a list for eq": ({"type": "eq", "key": "a", "value": [1]}, "filters.value"),
    "a scalar for in": ({"type": "in", "key": "a", "value": 1}, "filters.value"),
    "a text for in": ({"type": "in", "key": "a", "value": "abc"}, "filters.value"),
    "a list in a list": ({"type": "nin", "key": "a", "value": [[1]]}, "filters.value"),
    "a join without parts": ({"type": "and"}, "filters.filters"),
    "a join of nothing": ({"type": "or", "filters": []}, "filters.filters"),
    "a join of an object": ({"type": "or", "filters": {}}, "filters.filters"),
    "a wrong part": (
        {"type": "and", "filters": [{"type": "eq", "key": "a", "value": 1}, {"type": "eq", "key": "a"}]},
        "filters.filters[1].value",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_filter_is_refused_and_its_wrong_part_named(name: str) -> None:
    node, path = WRONG[name]
    with pytest.raises(ServiceError) as refused:
        check_filter(node)
    assert refused.value.code == "invalid_request"
    assert refused.value.details["errors"][0]["path"] == path


def test_joins_nest_as_deep_as_the_limit_and_no_deeper() -> None:
    node: dict[str, Any] = {"type": "eq", "key": "a", "value": 1}
    for _ in range(MAX_DEPTH):
        node = {"type": "and", "filters": [node]}
    check_filter(node)
    assert _is_refused({"type": "and", "filters": [node]})


@given(RIGHT, ATTRIBUTES)
def test_a_right_filter_is_let_through_and_answers_yes_or_no(node: dict[str, Any], attributes: dict[str, Any]) -> None:
    if not _is_refused(node):
        assert passes(node, attributes) in (True, False)
    else:
        assert _depth(node) > MAX_DEPTH


@given(NODES | JSON, ATTRIBUTES)
def test_no_filter_fails_after_its_check(node: Any, attributes: dict[str, Any]) -> None:
    if not _is_refused(node):
        assert passes(node, attributes) in (True, False)


def _depth(node: dict[str, Any]) -> int:
    return 1 + max((_depth(part) for part in node.get("filters", [])), default=-1)
