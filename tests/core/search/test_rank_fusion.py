"""Two orders made one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.search.rank_fusion import fuse, hybrid_score, semantic_score


def test_what_is_in_both_orders_comes_before_what_is_in_one() -> None:
    fused = fuse(["a", "b", "c"], ["c", "d"])
    assert [item for item, _ in fused] == ["c", "a", "b", "d"]
    assert (dict(fused)["c"], dict(fused)["d"]) == pytest.approx((1 / 63 + 1 / 61, 1 / 62))
    # Of equal ones, those of the first order.
    assert [item for first, second in ("ab", "ba") for item, _ in fuse([first], [second])] == ["a", "b", "b", "a"]
    assert fuse([], []) == []


@given(st.lists(st.integers(), unique=True), st.lists(st.integers(), unique=True))
def test_a_fusion_loses_nothing_and_doubles_nothing(first: list[int], second: list[int]) -> None:
    fused = fuse(first, second)
    assert {item for item, _ in fused} == {*first, *second}
    assert len(fused) == len({*first, *second})
    assert all(0 < score <= 2 / 61 for _, score in fused)


def test_a_hybrid_score_is_the_mean_or_that_of_the_words() -> None:
    scores = {(1.0, 1.0): 1.0, (1.0, 0.0): 0.5, (0.5, -1.0): 0.25, (0.0, 0.6): 0.3, (0.7, None): 0.7, (0.0, 1.1): 0.5}
    assert {each: hybrid_score(*each) for each in scores} == pytest.approx(scores)


def test_a_semantic_score_keeps_to_0_and_1() -> None:
    assert [semantic_score(cosine) for cosine in (-0.2, 0.0, 0.4, 1.0000001)] == [0.0, 0.0, 0.4, 1.0]
