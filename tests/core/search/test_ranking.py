"""Tests ranking: the weights of words, the order of the best passages, and the fusion of two rankings."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.search.ranking import (
    BEST,
    Candidate,
    coverage,
    fuse,
    hybrid_score,
    idf,
    reorder,
    semantic_score,
    weigh_feedback,
)


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


#: For each candidate: BM25, whether it has every word, and its feedback. Then the order.
ORDERS: list[tuple[list[tuple[float, bool, float]], list[int]]] = [
    *(([], []), ([(3.0, False, 0.0)], [0]), ([(3.0, False, 0.0), (2.0, False, 0.0), (1.0, False, 0.0)], [0, 1, 2])),
    # Full feedback adds half of the best BM25, which is 2 here.
    ([(4.0, False, 0.5), (3.0, False, 0.9), (2.4, False, 1.0)], [0, 1, 2]),
    ([(4.0, False, 0.1), (3.0, False, 0.9), (2.4, False, 1.0)], [1, 2, 0]),
    # Candidates with every word come first.
    ([(4.0, False, 1.0), (1.0, True, 0.0), (0.5, True, 1.0)], [2, 1, 0]),
    # Equal candidates keep their order.
    ([(2.0, False, 0.3), (2.0, False, 0.3), (2.0, False, 0.3)], [0, 1, 2]),
]


@pytest.mark.parametrize(("rows", "order"), ORDERS)
def test_candidates_are_reordered_by_score_completeness_and_feedback(
    rows: list[tuple[float, bool, float]], order: list[int]
) -> None:
    candidates = [Candidate(bm25=bm25, is_whole=whole, feedback=feedback) for bm25, whole, feedback in rows]
    assert reorder(candidates) == order


def test_feedback_words_are_weighted_by_score_and_rarity() -> None:
    texts = ["rope Anchor", "rope", "wood", "anchor wood", "rope 7", "nothing", "rope, wood", "tide"]
    scores = [5.0, 4.0, 3.0, 2.0, 1.0]
    rope, anchor, wood = (5.0 + 4.0 + 1.0) * idf(8, 4), (5.0 + 2.0) * idf(8, 2), (3.0 + 2.0) * idf(8, 3)
    sums = [rope + anchor, rope, wood, anchor + wood, rope, 0.0, rope + wood, 0.0]
    assert len(scores) == BEST
    assert weigh_feedback(scores, texts) == pytest.approx([each / max(sums) for each in sums])


@pytest.mark.parametrize("texts", [[], ["", ""], ["42", "7 7"]])
def test_without_words_there_is_no_feedback(texts: list[str]) -> None:
    assert weigh_feedback([1.0] * len(texts), texts) == [0.0] * len(texts)
