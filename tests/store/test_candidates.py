"""Candidates of a search: SQL judges tags and filters as Python does, whatever is stored and asked for."""

from sqlite3 import Connection
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc_daemon.core.search.filters import passes
from svc_daemon.store.candidates import Wanted, list_candidates
from svc_daemon.store.sources import update_description
from tests.store.rows import OURS, THEIRS, add_bucket, add_source, make_source

#: Values that are easily taken for each other, and such as only Python tells apart.
SCALARS = st.sampled_from(
    [
        "",
        "a",
        "b",
        "ü",
        "1",
        "true",
        "a\u0000b",
        True,
        False,
        0,
        1,
        -1,
        2,
        1.0,
        1.5,
        -0.0,
        1e300,
        2**53,
        2**53 + 1,
        2**70,
    ]
)
STORED = SCALARS | st.none() | st.just([1]) | st.just({"a": 1})
KEYS = st.sampled_from(["year", "a.b", "with space", 'with "quotes"', "ü", "type", "filename", "source_url"])
METADATA = st.dictionaries(KEYS, STORED, max_size=4)
COMPARISONS = st.fixed_dictionaries(
    {"type": st.sampled_from(["eq", "ne", "gt", "gte", "lt", "lte"]), "key": KEYS, "value": SCALARS}
) | st.fixed_dictionaries({"type": st.sampled_from(["in", "nin"]), "key": KEYS, "value": st.lists(SCALARS, max_size=3)})
FILTERS = st.recursive(
    COMPARISONS,
    lambda inner: st.fixed_dictionaries(
        {"type": st.sampled_from(["and", "or"]), "filters": st.lists(inner, min_size=1, max_size=3)}
    ),
    max_leaves=4,
)


def candidates(connection: Connection, *buckets: str, **wanted: Any) -> list[str]:
    bucket_ids = [f"bkt_{OURS}_{bucket}" for bucket in buckets] or None
    return list_candidates(connection, OURS, Wanted(bucket_ids=bucket_ids, **wanted))


@given(st.lists(METADATA, min_size=1, max_size=3), FILTERS)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_sql_and_python_judge_a_filter_alike(
    connection: Connection, stored: list[dict[str, Any]], node: dict[str, Any]
) -> None:
    expected = []
    for number in range(3):
        metadata = stored[number % len(stored)]
        source = make_source(str(number), status="active", metadata=metadata)
        if not candidates(connection, source_ids=[source.id]):
            add_source(connection, str(number), status="active")
        update_description(connection, source)
        own = {name: getattr(source, name) for name in ("type", "filename", "title", "content_type", "source_url")}
        if passes(node, {**metadata, **own}):
            expected.append(source.id)
    assert sorted(candidates(connection, filters=node)) == expected


@pytest.mark.parametrize(
    "node",
    [
        {"type": "in", "key": "n", "value": [1, *range(5000, 10_000)]},
        {"type": "or", "filters": [{"type": "eq", "key": "n", "value": number} for number in range(5000)]},
    ],
)
def test_a_filter_of_thousands_of_values_is_judged(connection: Connection, node: dict[str, Any]) -> None:
    add_source(connection, "1", status="active", metadata={"n": 1})
    add_source(connection, "2", status="active", metadata={"n": -1})
    assert candidates(connection, filters=node) == ["src_1"]


def test_a_candidate_has_every_tag_and_is_one_of_those_that_are_named(connection: Connection) -> None:
    for name, tags in (("1", ("a", "b")), ("2", ("a",)), ("3", ("b", 'q"')), ("4", ())):
        add_source(connection, name, status="active", tags=tags)
    assert sorted(candidates(connection)) == ["src_1", "src_2", "src_3", "src_4"]
    assert sorted(candidates(connection, tags=["a"])) == ["src_1", "src_2"]
    assert candidates(connection, tags=["b", "a"]) == ["src_1"]
    assert candidates(connection, tags=['q"']) == ["src_3"]
    assert candidates(connection, tags=["a"], source_ids=["src_2", "src_3", "src_9"]) == ["src_2"]
    assert candidates(connection, tags=[f"{number}" for number in range(5000)]) == []


def test_a_candidate_is_an_active_member_of_a_bucket_of_the_team(connection: Connection) -> None:
    first, second = add_bucket(connection, "first"), add_bucket(connection, "second")
    add_source(connection, "both", first, second, sync="active", status="active")
    add_source(connection, "one", first, sync="active", status="active")
    add_source(connection, "waiting", first, status="active")
    add_source(connection, "unread", first, sync="active")
    add_source(connection, "loose", status="active")
    theirs = add_bucket(connection, "first", THEIRS)
    add_source(connection, "theirs", theirs, team_id=THEIRS, sync="active", status="active")
    assert sorted(candidates(connection, "first", "second")) == ["src_both", "src_one"]
    assert candidates(connection, "second") == ["src_both"]
    assert sorted(candidates(connection)) == ["src_both", "src_loose", "src_one", "src_waiting"]
    assert list_candidates(connection, OURS, Wanted(bucket_ids=[])) == []
    assert list_candidates(connection, OURS, Wanted(bucket_ids=[f"bkt_{THEIRS}_first"])) == []
