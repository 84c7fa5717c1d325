"""Decides which search results meet an expectation, and computes scores."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from svc_cli.evals.golden import Expectation
from svc_cli.evals.metrics import ndcg, recall, reciprocal_rank

#: A hit as the API returns it.
Hit = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The scores of one query, or the means of many, from 0 to 1."""

    recall: float
    mrr: float
    ndcg: float


def is_expected(expectation: Expectation, hit: Hit) -> bool:
    """Whether the hit meets every part of the expectation."""
    return (
        (expectation.source is None or is_source(expectation.source, hit))
        and (expectation.heading is None or has_heading(expectation.heading, hit["location"]))
        and (expectation.text is None or has_text(expectation.text, hit["text"]))
    )


def is_source(name: str, source: Mapping[str, Any]) -> bool:
    """Whether a hit or a source has this id, title or file name."""
    return name in (source.get("source_id"), source.get("id"), source["title"], source["filename"])


def has_heading(heading: str, location: Mapping[str, Any]) -> bool:
    return _plain(heading) in {_plain(each) for each in location.get("headings") or ()}


def has_text(text: str, passage: str) -> bool:
    """Whether the passage contains the text, ignoring case and differences in white space."""
    return _plain(text) in _plain(passage)


def find_rank(expectation: Expectation, hits: Sequence[Hit]) -> int | None:
    """Return the rank, from 1, of the first hit that meets the expectation; None if no hit does."""
    return next((rank for rank, hit in enumerate(hits, start=1) if is_expected(expectation, hit)), None)


def score_ranks(ranks: Sequence[int | None], k: int) -> Scores:
    """Compute the scores from the rank of each expected passage; a rank is None if the passage was not found.

    Several expected passages can have the same rank, because one hit can match all of them.
    """
    at = Counter(rank for rank in ranks if rank is not None and rank <= k)
    order = [at[rank] for rank in range(1, k + 1)]
    # The ideal ranking: the hits that meet expectations, plus one hit for each expectation that was not found.
    ideal = [*at.values(), *[1] * (len(ranks) - sum(at.values()))]
    return Scores(
        recall=recall(order, ideal, k),
        mrr=reciprocal_rank(order, k),
        ndcg=ndcg(order, ideal, k),
    )


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
