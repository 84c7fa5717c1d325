"""Ranking: the weights of words, feedback from the best passages, and the fusion of two rankings.

Passages on one subject share words that are not in the query. So the words of the best passages get weights, and the
best `POOL` passages are reordered by BM25 and these weights. Passages with every query word stay
first, and before them those that have the query as it is.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

T = TypeVar("T")

#: The constant of reciprocal rank fusion, 60 as in the paper about it. A larger constant favours the first ranks less.
FUSION_K = 60


def fuse(*rankings: Sequence[T]) -> list[tuple[T, float]]:
    """Merge rankings by reciprocal rank fusion, best first. An item's score is the sum of 1 / (60 + rank).

    Items with equal scores stay in the order in which they first occur.
    """
    fused: dict[T, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            fused[item] = fused.get(item, 0.0) + 1 / (FUSION_K + rank)
    return sorted(fused.items(), key=lambda item: -item[1])


def semantic_score(cosine: float) -> float:
    """Limit a cosine similarity to 0 to 1: opposite meanings count as unrelated."""
    return min(1.0, max(0.0, cosine))


def hybrid_score(covered: float, cosine: float | None) -> float:
    """Return the mean of the keyword score `covered` and the semantic score; without a vector, only `covered`."""
    return covered if cosine is None else (covered + semantic_score(cosine)) / 2


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


#: Pseudo-relevance feedback reorders this many of the best passages. With fewer passages, there is no feedback.
POOL = 30
#: Feedback takes words from this many of the best passages.
BEST = 5
#: Maximum number of words that feedback uses.
MOST_WORDS = 100
#: The most that feedback adds to a passage's BM25 score, as a fraction of the highest BM25 score.
WEIGHT = 0.5

#: Replaces ASCII separators by spaces, three times as fast as a regular expression.
_WORD_BYTES = bytes(byte if byte > 127 or chr(byte).isalnum() else 32 for byte in range(256))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A passage found by keyword search."""

    #: The BM25 score, above 0; higher is better.
    bm25: float
    #: Whether the passage contains every word of the query.
    is_whole: bool
    #: Whether it has them side by side, as the query does.
    is_in_order: bool = False
    #: How similar the passage's words are to those of the best passages, 0 to 1.
    feedback: float = 0.0


def weigh_feedback(scores: Sequence[float], texts: Sequence[str]) -> list[float]:
    """Score each text, 0 to 1, by the words that it shares with the first few texts.

    `scores` are the BM25 scores of the texts, best first.
    """
    listed = [text.lower().encode(errors="replace").translate(_WORD_BYTES).split() for text in texts]
    scored: defaultdict[bytes, float] = defaultdict(float)
    for score, words in zip(scores[:BEST], listed, strict=False):
        for word in {*words}:
            scored[word] += score
    # Intersections of sets, since this takes half the time of those of a dictionary's keys.
    known = frozenset(scored)
    shared = [known.intersection(words) for words in listed]
    having = Counter(chain.from_iterable(shared))
    idfs = [idf(len(listed), count) for count in range(len(listed) + 1)]
    # Numbers say little about the subject. Words of equal weight are in alphabetical order, since the order of a set
    # differs from process to process.
    ranked = sorted((-score * idfs[having[word]], word) for word, score in scored.items() if not word[:1].isdigit())
    weights = {word: -weight for weight, word in ranked[:MOST_WORDS]}
    heaviest = frozenset(weights)
    sums = [math.fsum(map(weights.__getitem__, heaviest & words)) for words in shared]
    most = max(sums, default=0.0)
    return [each / most if most else 0.0 for each in sums]


def reorder(candidates: Sequence[Candidate]) -> list[int]:
    """Return the indexes of the candidates in their new order. The candidates must be sorted by BM25 score."""
    best = candidates[0].bm25 if candidates else 0.0
    ranks = [
        (not each.is_in_order, not each.is_whole, -(each.bm25 + WEIGHT * best * each.feedback)) for each in candidates
    ]
    return sorted(range(len(candidates)), key=ranks.__getitem__)
