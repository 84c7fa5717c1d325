"""Ranking: the weight of a query's word, the share of a query that a chunk covers, and the fusion of two rankings.

Feedback: passages on one subject share words that are not in the query. So the words of the best few are weighed, each
by how good the passages are that have it and how rare it is among all that were found, and the first passages are put
in order once more by their BM25 and by how much of these words they have. A passage with every word of the query always
comes before those that lack one, so that exact queries find their target.

This adds and removes no passages, and counts words in their own texts, so it takes the same time in an index of any
size. It is only used with many passages.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
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
    """The cosine, but not below 0: opposite meanings count as unrelated."""
    return min(1.0, max(0.0, cosine))


def hybrid_score(covered: float, cosine: float | None) -> float:
    """The mean of both scores; for a chunk without a vector, the score of its words."""
    return covered if cosine is None else (covered + semantic_score(cosine)) / 2


#: How many of the first passages are reordered; with fewer nothing is.
POOL = 50
#: How many of the best passages give the words for feedback.
BEST = 5
#: How many of the words with the highest weight are used.
MOST_WORDS = 100
#: What a passage that has most of them gains, as a share of the best passage's BM25.
WEIGHT = 0.5

#: Every byte of a text, or a space for what separates words. This is three times as fast as a regular expression, for
#: which a dash or a quotation mark outside of ASCII stays with its word.
_WORD_BYTES = bytes(byte if byte > 127 or chr(byte).isalnum() else 32 for byte in range(256))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A passage that was found by its words."""

    #: Above 0, the more the better.
    bm25: float
    #: Whether it has every word of the query.
    is_whole: bool
    #: The share of the feedback words that it has, 0 to 1.
    feedback: float = 0.0


def weigh_feedback(scores: Sequence[float], texts: Sequence[str]) -> list[float]:
    """For each text, 0 to 1, how much it has of what the first few have. `scores` are their BM25, best first."""
    word_sets = [frozenset(text.lower().encode(errors="replace").translate(_WORD_BYTES).split()) for text in texts]
    having = Counter(chain.from_iterable(word_sets))
    weights: defaultdict[bytes, float] = defaultdict(float)
    for score, words in zip(scores[:BEST], word_sets, strict=False):
        for word in words:
            # Numbers mean little for the subject.
            if not word[:1].isdigit():
                weights[word] += score
    for word in weights:
        weights[word] *= idf(len(word_sets), having[word])
    # Of equal ones the first by the alphabet: the order of a set of words is another in each process.
    heaviest = dict(sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:MOST_WORDS])
    sums = [math.fsum(heaviest[word] for word in words & heaviest.keys()) for words in word_sets]
    most = max(sums, default=0.0)
    return [each / most if most else 0.0 for each in sums]


def reorder(candidates: Sequence[Candidate]) -> list[int]:
    """The positions of the candidates, which come in the order of their BM25, in their new order."""
    best = candidates[0].bm25 if candidates else 0.0
    ranks = [(not each.is_whole, -(each.bm25 + WEIGHT * best * each.feedback)) for each in candidates]
    return sorted(range(len(candidates)), key=ranks.__getitem__)
