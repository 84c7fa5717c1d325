"""Metrics for ranked results, computed from relevance grades (0 means not expected).

`order` has the grades of the results in ranking order, `ideal` the grades of everything that was expected.
"""

import math
from collections.abc import Sequence


def recall(order: Sequence[int], ideal: Sequence[int], k: int) -> float:
    """Return the sum of the first k grades divided by the sum of the ideal grades; 0 if nothing was expected."""
    wanted = sum(ideal)
    return sum(order[:k]) / wanted if wanted else 0.0


def reciprocal_rank(order: Sequence[int], k: int) -> float:
    """Return 1 / rank of the first relevant result; 0 if none of the first k results is relevant."""
    return next((1 / rank for rank, relevance in enumerate(order[:k], start=1) if relevance > 0), 0.0)


def ndcg(order: Sequence[int], ideal: Sequence[int], k: int) -> float:
    """Return the nDCG of the first k results; 0 if nothing was expected."""
    best = _gain(sorted(ideal, reverse=True)[:k])
    return _gain(order[:k]) / best if best else 0.0


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean; 0 if there are no values."""
    return math.fsum(values) / len(values) if values else 0.0


def _gain(relevances: Sequence[int]) -> float:
    return math.fsum(relevance / math.log2(rank + 1) for rank, relevance in enumerate(relevances, start=1))
