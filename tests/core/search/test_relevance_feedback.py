"""Tests reordering the best passages."""

import pytest

from svc_daemon.core.search.relevance_feedback import BEST, Candidate, reorder, weigh_feedback
from svc_daemon.core.search.word_weights import idf

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


def test_candidates_are_reordered_by_score_completeness_and_feedback() -> None:
    for rows, order in ORDERS:
        candidates = [Candidate(bm25=bm25, is_whole=whole, feedback=feedback) for bm25, whole, feedback in rows]
        assert reorder(candidates) == order, rows


def test_feedback_words_are_weighted_by_score_and_rarity() -> None:
    texts = ["rope Anchor", "rope", "wood", "anchor wood", "rope 7", "nothing", "rope, wood", "tide"]
    scores = [5.0, 4.0, 3.0, 2.0, 1.0]
    rope, anchor, wood = (5.0 + 4.0 + 1.0) * idf(8, 4), (5.0 + 2.0) * idf(8, 2), (3.0 + 2.0) * idf(8, 3)
    sums = [rope + anchor, rope, wood, anchor + wood, rope, 0.0, rope + wood, 0.0]
    assert len(scores) == BEST
    assert weigh_feedback(scores, texts) == pytest.approx([each / max(sums) for each in sums])


def test_without_words_there_is_no_feedback() -> None:
    for texts in [[], ["", ""], ["42", "7 7"]]:
        assert weigh_feedback([1.0] * len(texts), texts) == [0.0] * len(texts)
