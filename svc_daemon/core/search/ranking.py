"""Ranking: the weight of each query word, the share of a query that a chunk covers, and the merging of two rankings.

Pseudo-relevance feedback: passages on one subject share words that are not in the query. So each word of the best few
passages gets a weight: the sum of the scores of those that contain it, times its rarity among all passages found. Then
the best `POOL` passages are reordered by their BM25 score and by how much of this weight they contain. Passages that
contain every word of the query always precede the others, so that exact queries find their target.

Feedback changes only the order of the passages found, and reads no other texts, so its cost does not depend on the size
of the index. It is used only if there are enough passages.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

T = TypeVar("T")

#: The constant of reciprocal rank fusion. The larger it is, the less the first ranks dominate. The paper that
#: introduced the method uses 60.
FUSION_K = 60


def idf(total: int, having: int) -> float:
    """Compute the inverse document frequency of a word that occurs in `having` of `total` chunks.

    This is Robertson and Zaragoza's formula with 1 added inside the logarithm, so the result is always above 0: even a
    word in every chunk has some weight. A word in no chunk has the highest weight. If `having` was counted after
    `total` and is larger, `total` is used.
    """
    having = min(having, total)
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


def coverage(weights: Mapping[str, float], matched: Collection[str]) -> float:
    """Compute the share, 0 to 1, of a query's total weight that the matched words have; 0 if there are no words.

    `weights` gives the idf of each word of the query.
    """
    total = math.fsum(weights.values())
    covered = math.fsum(weight for word, weight in weights.items() if word in matched)
    return min(1.0, covered / total) if total else 0.0


def fuse(*rankings: Sequence[T]) -> list[tuple[T, float]]:
    """Merge rankings into one, best first. The score of an item is the sum of 1 / (60 + rank) over the rankings.

    This is reciprocal rank fusion, by Cormack, Clarke and Büttcher: ranks can be added even if the scores are not
    comparable. Items with equal scores are in the order in which they first occur, from the first ranking to the last.
    """
    fused: dict[T, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            fused[item] = fused.get(item, 0.0) + 1 / (FUSION_K + rank)
    return sorted(fused.items(), key=lambda item: -item[1])


def semantic_score(cosine: float) -> float:
    """Limit a cosine similarity to 0 to 1, so that opposite meanings count as unrelated."""
    return min(1.0, max(0.0, cosine))


def hybrid_score(covered: float, cosine: float | None) -> float:
    """Return the mean of both scores; without a vector, the keyword score alone."""
    return covered if cosine is None else (covered + semantic_score(cosine)) / 2


#: Pseudo-relevance feedback reorders at most this many passages, the best ones. If fewer passages are found, it is not
#: used.
POOL = 50
#: Pseudo-relevance feedback uses the words of this many of the best passages.
BEST = 5
#: Maximum number of words for pseudo-relevance feedback: those with the highest weights.
MOST_WORDS = 100
#: The largest amount that pseudo-relevance feedback can add to a passage's score, as a fraction of the best passage's
#: BM25.
WEIGHT = 0.5

#: A table that replaces ASCII separators by spaces. This is three times as fast as a regular expression, but leaves
#: dashes and quotation marks outside ASCII attached to words.
_WORD_BYTES = bytes(byte if byte > 127 or chr(byte).isalnum() else 32 for byte in range(256))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A passage found by keyword search."""

    #: The BM25 score, above 0; higher is better.
    bm25: float
    #: Whether the passage contains every word of the query.
    is_whole: bool
    #: How much of the weight of pseudo-relevance feedback's words the passage contains, 0 to 1.
    feedback: float = 0.0


def weigh_feedback(scores: Sequence[float], texts: Sequence[str]) -> list[float]:
    """Score each text, 0 to 1, by the words that it shares with the first few texts.

    `scores` are the BM25 scores of the texts, best first.
    """
    word_sets = [frozenset(text.lower().encode(errors="replace").translate(_WORD_BYTES).split()) for text in texts]
    having = Counter(chain.from_iterable(word_sets))
    weights: defaultdict[bytes, float] = defaultdict(float)
    for score, words in zip(scores[:BEST], word_sets, strict=False):
        for word in words:
            # Ignore numbers, which say little about the subject of a passage.
            if not word[:1].isdigit():
                weights[word] += score
    for word in weights:
        weights[word] *= idf(len(word_sets), having[word])
    # Order equal weights alphabetically, since the iteration order of a set differs between processes.
    heaviest = dict(sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:MOST_WORDS])
    sums = [math.fsum(heaviest[word] for word in words & heaviest.keys()) for words in word_sets]
    most = max(sums, default=0.0)
    return [each / most if most else 0.0 for each in sums]


def reorder(candidates: Sequence[Candidate]) -> list[int]:
    """Return the candidates' positions in their new order; the candidates are ordered by BM25, best first."""
    best = candidates[0].bm25 if candidates else 0.0
    ranks = [(not each.is_whole, -(each.bm25 + WEIGHT * best * each.feedback)) for each in candidates]
    return sorted(range(len(candidates)), key=ranks.__getitem__)
