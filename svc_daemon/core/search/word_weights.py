"""The weight of each query word, and the share of a query that a chunk covers."""

import math
from collections.abc import Collection, Mapping


def idf(total: int, having: int) -> float:
    """Compute the inverse document frequency of a word that occurs in `having` of `total` chunks.

    The formula is Robertson and Zaragoza's, with 1 added so that the result is above 0. A larger `having` is limited to
    `total`.
    """
    having = min(having, total)
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


def coverage(weights: Mapping[str, float], matched: Collection[str]) -> float:
    """Compute which share of a query's total weight the matched words have, 0 to 1.

    `weights` gives the idf of each word of the query.
    """
    total = math.fsum(weights.values())
    covered = math.fsum(weight for word, weight in weights.items() if word in matched)
    return min(1.0, covered / total) if total else 0.0
