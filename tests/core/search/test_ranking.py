"""Weights of words, the share of a query that a chunk covers, and two orders made one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.search import ranking
from svc_daemon.core.search.ranking import BEST, coverage, fuse, hybrid_score, idf, semantic_score, weigh_feedback

WEIGHTS = {"quick": 1.0, "fox": 3.0}


def test_coverage_is_the_share_of_the_weight() -> None:
    shares = {"": 0.0, "quick": 0.25, "fox": 0.75, "quick fox": 1.0, "no": 0.0, "fox no": 0.75}
    for matched, share in shares.items():
        assert coverage(WEIGHTS, matched.split()) == pytest.approx(share), matched
    assert coverage({}, ()) == 0


def test_idf_by_hand() -> None:
    assert [idf(9, 0), idf(9, 9)] == pytest.approx([math.log(20), math.log(1 + 0.5 / 9.5)])


@given(total=st.integers(2, 10**6), having=st.integers(0, 10**6))
def test_a_rarer_word_weighs_more(total: int, having: int) -> None:
    having = min(having, total - 1)
    assert idf(total, having) > idf(total, having + 1)


@given(st.dictionaries(st.text(min_size=1), st.floats(1e-9, 1e3), min_size=1))
def test_all_words_are_the_whole_query(weights: dict[str, float]) -> None:
    assert coverage(weights, weights) == pytest.approx(1)


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


#: BM25, whether it has every word, feedback; then the order.
ORDERS: list[tuple[list[tuple[float, bool, float]], list[int]]] = [
    *(([], []), ([(3.0, False, 0.0)], [0]), ([(3.0, False, 0.0), (2.0, False, 0.0), (1.0, False, 0.0)], [0, 1, 2])),
    # A gain of half the best BM25, 2, for all of the feedback.
    ([(4.0, False, 0.5), (3.0, False, 0.9), (2.4, False, 1.0)], [0, 1, 2]),
    ([(4.0, False, 0.1), (3.0, False, 0.9), (2.4, False, 1.0)], [1, 2, 0]),
    # Whole ones first, whatever the others have.
    ([(4.0, False, 1.0), (1.0, True, 0.0), (0.5, True, 1.0)], [2, 1, 0]),
    # Equal ones stay as they were.
    ([(2.0, False, 0.3), (2.0, False, 0.3), (2.0, False, 0.3)], [0, 1, 2]),
]


def test_the_new_order() -> None:
    for rows, order in ORDERS:
        candidates = [ranking.Candidate(bm25=bm25, is_whole=whole, feedback=feedback) for bm25, whole, feedback in rows]
        assert ranking.reorder(candidates) == order, rows


def test_words_weigh_by_how_good_and_how_rare_they_are() -> None:
    texts = ["rope Anchor", "rope", "wood", "anchor wood", "rope 7", "nothing", "rope, wood", "tide"]
    scores = [5.0, 4.0, 3.0, 2.0, 1.0]
    rope, anchor, wood = (5.0 + 4.0 + 1.0) * idf(8, 4), (5.0 + 2.0) * idf(8, 2), (3.0 + 2.0) * idf(8, 3)
    sums = [rope + anchor, rope, wood, anchor + wood, rope, 0.0, rope + wood, 0.0]
    assert len(scores) == BEST
    assert weigh_feedback(scores, texts) == pytest.approx([each / max(sums) for each in sums])


def test_without_words_there_is_no_feedback() -> None:
    for texts in [[], ["", ""], ["42", "7 7"]]:
        assert weigh_feedback([1.0] * len(texts), texts) == [0.0] * len(texts)
