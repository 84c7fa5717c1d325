"""The metrics against values that were worked out by hand."""

import pytest

from svc_cli.evals.metrics import mean, ndcg, recall, reciprocal_rank

#: Order, ideal, k; recall, reciprocal rank, nDCG. log2(3) is 1.5850, so a hit at rank 2 gains 0.6309, at 3 0.5.
TABLE: list[tuple[list[int], list[int], int, float, float, float]] = [
    ([], [], 10, 0.0, 0.0, 0.0),
    ([0, 0], [], 10, 0.0, 0.0, 0.0),
    ([], [1], 10, 0.0, 0.0, 0.0),
    ([1], [1], 10, 1.0, 1.0, 1.0),
    ([0, 1], [1], 10, 1.0, 0.5, 0.6309),
    ([0, 0, 1], [1], 10, 1.0, 1 / 3, 0.5),
    ([0, 0, 1], [1], 2, 0.0, 0.0, 0.0),
    # Two wanted, at 1 and 3: 1.5 of 1.6309.
    ([1, 0, 1], [1, 1], 10, 1.0, 1.0, 0.9197),
    ([1, 0, 0], [1, 1], 10, 0.5, 1.0, 0.6131),
    ([0, 1, 1], [1, 1], 10, 1.0, 0.5, 0.6934),
    # Relevances of more than one kind: 1 + 3 x 0.6309 of 3 + 0.6309.
    ([1, 3], [3, 1], 10, 1.0, 1.0, 0.7967),
    # More wanted than there are places.
    ([1, 1], [1, 1, 1, 1], 2, 0.5, 1.0, 1.0),
    ([0, 0, 0, 0, 0, 0, 0, 0, 0, 1], [1], 10, 1.0, 0.1, 0.2891),
]


@pytest.mark.parametrize(("order", "ideal", "k", "share", "reciprocal", "gain"), TABLE)
def test_what_an_order_is_worth(
    order: list[int], ideal: list[int], k: int, share: float, reciprocal: float, gain: float
) -> None:
    assert recall(order, ideal, k) == pytest.approx(share)
    assert reciprocal_rank(order, k) == pytest.approx(reciprocal)
    assert ndcg(order, ideal, k) == pytest.approx(gain, abs=5e-5)


@pytest.mark.parametrize(("values", "expected"), [([], 0.0), ([0.5], 0.5), ([1.0, 0.0, 0.5], 0.5)])
def test_a_mean(values: list[float], expected: float) -> None:
    assert mean(values) == expected
