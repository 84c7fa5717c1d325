"""The scores of searches against values that were worked out by hand."""

import pytest

from svc_cli.evals.evaluations import ndcg, score_ranks

#: Ranks of what was expected, k; recall, MRR, nDCG. log2(3) is 1.5850, so a hit at rank 2 gains 0.6309, at 3 0.5.
RANKS: list[tuple[list[int | None], int, float, float, float]] = [
    ([None], 10, 0.0, 0.0, 0.0),
    ([1], 10, 1.0, 1.0, 1.0),
    ([2], 10, 1.0, 0.5, 0.6309),
    ([3], 10, 1.0, 1 / 3, 0.5),
    ([10], 10, 1.0, 0.1, 0.2891),
    ([3], 2, 0.0, 0.0, 0.0),
    ([11], 10, 0.0, 0.0, 0.0),
    # Two wanted, at 1 and 3: 1.5 of 1.6309.
    ([3, 1], 10, 1.0, 1.0, 0.9197),
    ([1, None], 10, 0.5, 1.0, 0.6131),
    ([2, 3], 10, 1.0, 0.5, 0.6934),
    # More wanted than there are places.
    ([1, 2, None, None], 2, 0.5, 1.0, 1.0),
    # One hit that is both is as good as it gets; with a third one missing, 2 of 2 + 0.6309.
    ([1, 1], 10, 1.0, 1.0, 1.0),
    ([1, 1, None], 10, 2 / 3, 1.0, 0.7602),
]


@pytest.mark.parametrize(("ranks", "k", "recall", "mrr", "gain"), RANKS)
def test_ranks_have_their_scores(ranks: list[int | None], k: int, recall: float, mrr: float, gain: float) -> None:
    assert score_ranks(ranks, k) == pytest.approx({"recall": recall, "mrr": mrr, "ndcg": gain}, abs=5e-5)


@pytest.mark.parametrize(
    ("order", "ideal", "gain"),
    [
        ([], [], 0.0),
        ([0, 0], [], 0.0),
        # Relevances of more than one kind: 1 + 3 x 0.6309 of 3 + 0.6309.
        ([1, 3], [3, 1], 0.7967),
    ],
)
def test_relevance_by_grades_has_its_ndcg(order: list[int], ideal: list[int], gain: float) -> None:
    assert ndcg(order, ideal, 10) == pytest.approx(gain, abs=5e-5)
