"""How good an order is, where it is known what had to be found: pure arithmetic on relevances.

A relevance is 0 for what was not asked for and the more the better else; those of an order stand as it was answered,
best first. Ideal ones are those of everything that had to be found.
"""

import math
from collections.abc import Sequence


def recall(order: Sequence[int], ideal: Sequence[int], k: int) -> float:
    """The share of what was wanted that is among the first k, 0 to 1; 0 where nothing was wanted."""
    wanted = sum(ideal)
    return sum(order[:k]) / wanted if wanted else 0.0


def reciprocal_rank(order: Sequence[int], k: int) -> float:
    """1 / rank of the first that was wanted, 0 where none is among the first k. Its mean over queries is the MRR."""
    return next((1 / rank for rank, relevance in enumerate(order[:k], start=1) if relevance > 0), 0.0)


def ndcg(order: Sequence[int], ideal: Sequence[int], k: int) -> float:
    """Normalised discounted cumulative gain of the first k, 0 to 1; 0 where nothing was wanted."""
    best = _gain(sorted(ideal, reverse=True)[:k])
    return _gain(order[:k]) / best if best else 0.0


def mean(values: Sequence[float]) -> float:
    """0 of none."""
    return math.fsum(values) / len(values) if values else 0.0


def _gain(relevances: Sequence[int]) -> float:
    return math.fsum(relevance / math.log2(rank + 1) for rank, relevance in enumerate(relevances, start=1))
