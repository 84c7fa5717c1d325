"""Metrics for ranked results, computed from their relevances.

The relevance of a result is 0 if it was not expected, and higher the better it is. `order` holds the relevances of the
results, best first; `ideal` those of everything that was expected.
"""

import math
from collections.abc import Sequence


def recall(order: Sequence[int], ideal: Sequence[int], k: int) -> float:
    """The share of what was expected that is among the first k, 0 to 1; 0 if nothing was expected."""
    wanted = sum(ideal)
    return sum(order[:k]) / wanted if wanted else 0.0


def reciprocal_rank(order: Sequence[int], k: int) -> float:
    """1 / rank of the first relevant result, 0 if none is among the first k. Its mean over queries is the MRR."""
    return next((1 / rank for rank, relevance in enumerate(order[:k], start=1) if relevance > 0), 0.0)


def ndcg(order: Sequence[int], ideal: Sequence[int], k: int) -> float:
    """Normalised discounted cumulative gain of the first k, 0 to 1; 0 if nothing was expected."""
    best = _gain(sorted(ideal, reverse=True)[:k])
    return _gain(order[:k]) / best if best else 0.0


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean; 0 for no values."""
    return math.fsum(values) / len(values) if values else 0.0


def _gain(relevances: Sequence[int]) -> float:
    return math.fsum(relevance / math.log2(rank + 1) for rank, relevance in enumerate(relevances, start=1))
