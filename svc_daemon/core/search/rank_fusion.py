"""Merges the rankings of keyword and semantic search, and their scores."""

from collections.abc import Sequence
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
