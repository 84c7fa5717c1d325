"""The metrics against values that were worked out by hand."""

import pytest

from svc_cli.evals.metrics import ndcg, recall, reciprocal_rank

#: Order, ideal, k; recall, reciprocal rank, nDCG. log2(3) is 1.5850, so a hit at rank 2 gains 0.6309, at 3 0.5.
TABLE: list[tuple[list[int], list[int], int, float, float, float]] = [
    *(([], [], 10, 0.0, 0.0, 0.0), ([0, 0], [], 10, 0.0, 0.0, 0.0), ([], [1], 10, 0.0, 0.0, 0.0)),
    *(([1], [1], 10, 1.0, 1.0, 1.0), ([0, 1], [1], 10, 1.0, 0.5, 0.6309), ([0, 0, 1], [1], 10, 1.0, 1 / 3, 0.5)),
    ([0, 0, 1], [1], 2, 0.0, 0.0, 0.0),
    # Two wanted, at 1 and 3: 1.5 of 1.6309.
    *(([1, 0, 1], [1, 1], 10, 1.0, 1.0, 0.9197), ([1, 0, 0], [1, 1], 10, 0.5, 1.0, 0.6131)),
    ([0, 1, 1], [1, 1], 10, 1.0, 0.5, 0.6934),
    # Relevances of more than one kind: 1 + 3 x 0.6309 of 3 + 0.6309.
    ([1, 3], [3, 1], 10, 1.0, 1.0, 0.7967),
    # More wanted than there are places.
    *(([1, 1], [1, 1, 1, 1], 2, 0.5, 1.0, 1.0), ([0, 0, 0, 0, 0, 0, 0, 0, 0, 1], [1], 10, 1.0, 0.1, 0.2891)),
]


def test_what_an_order_is_worth() -> None:
    for order, ideal, k, share, reciprocal, gain in TABLE:
        metrics = (recall(order, ideal, k), reciprocal_rank(order, k), ndcg(order, ideal, k))
        assert metrics == pytest.approx((share, reciprocal, gain), abs=5e-5), (order, ideal, k)
