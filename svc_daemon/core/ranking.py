"""What a word of a query weighs, how much of a query a chunk covers, and how two orders become one."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

#: How much the first ranks count for more than those behind them; the value that its authors found to do well.
FUSION_K = 60


def idf(total: int, having: int) -> float:
    """Inverse document frequency of a word that `having` of `total` chunks have.

    Never 0 or below, as in Robertson and Zaragoza's formula with 1 added inside the logarithm: a word that every
    chunk has still weighs a little. A word that no chunk has weighs the most. Where `having` was counted a moment
    after `total` and is larger, it is taken as `total`.
    """
    having = min(having, total)
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


def coverage(weights: Mapping[str, float], matched: Collection[str]) -> float:
    """The share, 0 to 1, of a query's weight that the matched words carry. 0 where the query has no words.

    `weights` gives the idf of each word of the query.
    """
    total = math.fsum(weights.values())
    covered = math.fsum(weight for word, weight in weights.items() if word in matched)
    return min(1.0, covered / total) if total else 0.0


def fuse(*rankings: Sequence[T]) -> list[tuple[T, float]]:
    """One order of several, best first, each item with what it is ordered by: the sum of 1 / (60 + rank).

    Reciprocal rank fusion, after Cormack, Clarke and Büttcher: ranks can be added up where scores of different kinds
    can't. Of equal ones the first ranking's come first.
    """
    fused: dict[T, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            fused[item] = fused.get(item, 0.0) + 1 / (FUSION_K + rank)
    return sorted(fused.items(), key=lambda item: -item[1])


def semantic_score(cosine: float) -> float:
    """0 to 1: what points away from the query is no nearer than what has nothing to do with it."""
    return min(1.0, max(0.0, cosine))


def hybrid_score(covered: float, cosine: float | None) -> float:
    """The mean of both scores; of a chunk that has no vector, that of its words: nothing is known against it."""
    return covered if cosine is None else (covered + semantic_score(cosine)) / 2
