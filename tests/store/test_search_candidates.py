"""Tests the candidates of a search: SQL evaluates tags and filters as Python does."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc_daemon.core.search.filters import passes
from svc_daemon.databases.contract import Connection
from svc_daemon.store.rows.sources.search_candidates import Wanted, list_candidates
from svc_daemon.store.rows.sources.sources import update_description
from tests.store.rows import OURS, THEIRS, add_bucket, add_source, make_source

#: Values that are easily confused, and values that only Python distinguishes.
TEXTS = ["", "a", "b", "ü", "1", "true", "a\u0000b"]
NUMBERS = [True, False, 0, 1, -1, 2, 1.0, 1.5, -0.0, 1e300, 2**53, 2**53 + 1, 2**70]
SCALARS = st.sampled_from([*TEXTS, *NUMBERS])
#: The API accepts no metadata with NUL, which ends a text in SQLite.
STORED = SCALARS.filter(lambda value: value != "a\u0000b") | st.none() | st.just([1]) | st.just({"a": 1})
KEYS = st.sampled_from(["year", "a.b", "with space", 'with "quotes"', "ü", "type", "filename", "source_url"])
METADATA = st.dictionaries(KEYS, STORED, max_size=4)
COMPARISONS = st.fixed_dictionaries(
    {"type": st.sampled_from(["eq", "ne", "gt", "gte", "lt", "lte"]), "key": KEYS, "value": SCALARS}
) | st.fixed_dictionaries({"type": st.sampled_from(["in", "nin"]), "key": KEYS, "value": st.lists(SCALARS, max_size=3)})
GROUPS = st.sampled_from(["and", "or"])
FILTERS = st.recursive(
    COMPARISONS,
    lambda inner: st.fixed_dictionaries({"type": GROUPS, "filters": st.lists(inner, min_size=1, max_size=3)}),
    max_leaves=4,
)


def candidates(db: Connection, *buckets: str, **wanted: Any) -> list[str]:
    bucket_ids = [f"bkt_{OURS}_{bucket}" for bucket in buckets] or None
    return sorted(list_candidates(db, OURS, Wanted(bucket_ids=bucket_ids, **wanted)))


@given(st.lists(METADATA, min_size=1, max_size=3), FILTERS)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_sql_and_python_filter_alike(db: Connection, stored: list[dict[str, Any]], node: dict[str, Any]) -> None:
    expected = []
    for number in range(3):
        metadata = stored[number % len(stored)]
        source = make_source(str(number), status="active", metadata=metadata)
        if not candidates(db, source_ids=[source.id]):
            add_source(db, str(number), status="active")
        update_description(db, source)
        own = {name: getattr(source, name) for name in ("type", "filename", "title", "content_type", "source_url")}
        if passes(node, {**metadata, **own}):
            expected.append(source.id)
    assert candidates(db, filters=node) == expected


def test_a_filter_may_have_thousands_of_values(db: Connection) -> None:
    for name, value in (("1", 1), ("2", -1)):
        add_source(db, name, status="active", metadata={"n": value})
    equals = [{"type": "eq", "key": "n", "value": number} for number in range(5000)]
    for node in ({"type": "in", "key": "n", "value": [1, *range(5000, 10_000)]}, {"type": "or", "filters": equals}):
        assert candidates(db, filters=node) == ["src_1"]


def test_a_candidate_has_every_tag_and_is_one_of_the_given_sources(db: Connection) -> None:
    for name, tags in (("1", ("a", "b")), ("2", ("a",)), ("3", ("b", 'q"')), ("4", ())):
        add_source(db, name, status="active", tags=tags)
    assert candidates(db) == ["src_1", "src_2", "src_3", "src_4"]
    thousands = [f"{number}" for number in range(5000)]
    for wanted, names in ((["a"], "12"), (["b", "a"], "1"), (['q"'], "3"), (thousands, "")):
        assert candidates(db, tags=wanted) == [f"src_{name}" for name in names], wanted
    assert candidates(db, tags=["a"], source_ids=["src_2", "src_3", "src_9"]) == ["src_2"]


def test_a_candidate_is_an_active_member_of_a_bucket_of_the_team(db: Connection) -> None:
    first, second = add_bucket(db, "first"), add_bucket(db, "second")
    add_source(db, "both", first, second, sync="active", status="active")
    add_source(db, "one", first, sync="active", status="active")
    add_source(db, "waiting", first, status="active")
    add_source(db, "unread", first, sync="active")
    add_source(db, "loose", status="active")
    theirs = add_bucket(db, "first", THEIRS)
    add_source(db, "theirs", theirs, team_id=THEIRS, sync="active", status="active")
    assert (candidates(db, "first", "second"), candidates(db, "second")) == (["src_both", "src_one"], ["src_both"])
    assert candidates(db) == ["src_both", "src_loose", "src_one", "src_waiting"]
    for bucket_ids in ([], [theirs.id]):
        assert list_candidates(db, OURS, Wanted(bucket_ids=bucket_ids)) == []
