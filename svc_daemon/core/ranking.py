"""What a word of a query weighs, and how much of a query a chunk covers."""

import math
from collections.abc import Collection, Mapping


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
