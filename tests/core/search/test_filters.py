"""Tests filters: their grammar, and each comparison with each type of value."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.search.filters import MAX_DEPTH, check_filter, passes, warn_of_keys
from svc_daemon.errors import ServiceError
from tests.core.refusals import field_of, refusal

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


def test_key_that_is_meant_for_a_field_of_the_search_is_warned_of() -> None:
    """`ne` finds every source if none has the attribute, so that nothing is left out."""
    secret = {"type": "ne", "key": "tags", "value": "secret"}
    assert [warning.count("`tags` chooses") for warning in warn_of_keys(secret)] == [1]
    nested = {
        "type": "and",
        "filters": [FILTER, {"type": "or", "filters": [FILTER | {"key": "metadata.year"}, secret]}],
    }
    assert [("'tags'" in each, "'year'" in each) for each in warn_of_keys(nested)] == [(True, False), (False, True)]
    assert [warn_of_keys(each) for each in (None, FILTER, FILTER | {"key": "source"})] == [[], [], []]


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
