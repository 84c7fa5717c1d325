"""Weights of words, and the share of a query that a chunk covers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.ranking import coverage, idf

WEIGHTS = {"quick": 1.0, "fox": 3.0}

COVERAGES = [
    ((), 0.0),
    (("quick",), 0.25),
    (("fox",), 0.75),
    (("quick", "fox"), 1.0),
    (("unicorn",), 0.0),
    (("fox", "unicorn"), 0.75),
]


@pytest.mark.parametrize(("matched", "share"), COVERAGES)
def test_coverage_is_the_share_of_the_weight(matched: tuple[str, ...], share: float) -> None:
    assert coverage(WEIGHTS, matched) == pytest.approx(share)


def test_a_query_without_words_is_covered_by_nothing() -> None:
    assert coverage({}, ()) == 0


def test_idf_by_hand() -> None:
    assert idf(9, 0) == pytest.approx(math.log(20))
    assert idf(9, 9) == pytest.approx(math.log(1 + 0.5 / 9.5))


@given(total=st.integers(1, 10**9), having=st.integers(0, 10**9))
def test_every_word_weighs_something(total: int, having: int) -> None:
    assert 0 < idf(total, having) < math.inf


@given(total=st.integers(2, 10**6), having=st.integers(0, 10**6))
def test_a_rarer_word_weighs_more(total: int, having: int) -> None:
    having = min(having, total - 1)
    assert idf(total, having) > idf(total, having + 1)


@given(st.dictionaries(st.text(min_size=1), st.floats(1e-9, 1e3), min_size=1))
def test_all_words_are_the_whole_query(weights: dict[str, float]) -> None:
    assert coverage(weights, weights) == pytest.approx(1)
