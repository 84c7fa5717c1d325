"""Tests merging two rankings and their scores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.search.rank_fusion import fuse, hybrid_score, semantic_score


def test_items_in_both_rankings_come_before_items_in_one() -> None:
    fused = fuse(["a", "b", "c"], ["c", "d"])
    assert [item for item, _ in fused] == ["c", "a", "b", "d"]
    assert (dict(fused)["c"], dict(fused)["d"]) == pytest.approx((1 / 63 + 1 / 61, 1 / 62))
    # Of items with equal scores, those of the first ranking come first.
    assert [item for first, second in ("ab", "ba") for item, _ in fuse([first], [second])] == ["a", "b", "b", "a"]
    assert fuse([], []) == []


@given(st.lists(st.integers(), unique=True), st.lists(st.integers(), unique=True))
def test_a_merged_ranking_has_each_item_once(first: list[int], second: list[int]) -> None:
    fused = fuse(first, second)
    assert {item for item, _ in fused} == {*first, *second}
    assert len(fused) == len({*first, *second})
    assert all(0 < score <= 2 / 61 for _, score in fused)


def test_a_hybrid_score_is_the_mean_or_without_a_vector_the_keyword_score() -> None:
    scores = {(1.0, 1.0): 1.0, (1.0, 0.0): 0.5, (0.5, -1.0): 0.25, (0.0, 0.6): 0.3, (0.7, None): 0.7, (0.0, 1.1): 0.5}
    assert {each: hybrid_score(*each) for each in scores} == pytest.approx(scores)


def test_a_semantic_score_is_between_0_and_1() -> None:
    assert [semantic_score(cosine) for cosine in (-0.2, 0.0, 0.4, 1.0000001)] == [0.0, 0.0, 0.4, 1.0]
