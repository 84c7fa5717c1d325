"""Tests the weights of words, and the share of a query that a chunk covers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.search.word_weights import coverage, idf

WEIGHTS = {"quick": 1.0, "fox": 3.0}


def test_coverage_is_the_share_of_the_total_weight() -> None:
    shares = {"": 0.0, "quick": 0.25, "fox": 0.75, "quick fox": 1.0, "no": 0.0, "fox no": 0.75}
    for matched, share in shares.items():
        assert coverage(WEIGHTS, matched.split()) == pytest.approx(share), matched
    assert coverage({}, ()) == 0


def test_idf_matches_values_computed_by_hand() -> None:
    assert [idf(9, 0), idf(9, 9)] == pytest.approx([math.log(20), math.log(1 + 0.5 / 9.5)])


@given(total=st.integers(2, 10**6), having=st.integers(0, 10**6))
def test_a_rarer_word_has_a_larger_idf(total: int, having: int) -> None:
    having = min(having, total - 1)
    assert idf(total, having) > idf(total, having + 1)


@given(st.dictionaries(st.text(min_size=1), st.floats(1e-9, 1e3), min_size=1))
def test_all_words_together_cover_the_whole_query(weights: dict[str, float]) -> None:
    assert coverage(weights, weights) == pytest.approx(1)
