"""Which hit of a page is what was expected, and what that is worth."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from svc_cli.evals.golden import Expectation
from svc_cli.evals.metrics import ndcg, recall, reciprocal_rank

#: A hit, as the API gives it.
Hit = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """How good one page is, or the mean of many, each 0 to 1."""

    recall: float
    mrr: float
    ndcg: float


def is_expected(expectation: Expectation, hit: Hit) -> bool:
    """Whether the hit is all that was expected of one."""
    return (
        (expectation.source is None or is_source(expectation.source, hit))
        and (expectation.heading is None or has_heading(expectation.heading, hit["location"]))
        and (expectation.text is None or has_text(expectation.text, hit["text"]))
    )


def is_source(name: str, source: Mapping[str, Any]) -> bool:
    """Whether a hit or a source goes by this id, title or file name."""
    return name in (source.get("source_id"), source.get("id"), source["title"], source["filename"])


def has_heading(heading: str, location: Mapping[str, Any]) -> bool:
    return _plain(heading) in {_plain(each) for each in location.get("headings") or ()}


def has_text(text: str, passage: str) -> bool:
    """Whether the text stands in the passage, whatever its white space and case."""
    return _plain(text) in _plain(passage)


def find_rank(expectation: Expectation, hits: Sequence[Hit]) -> int | None:
    """The place, from 1, of the first hit that is it."""
    return next((rank for rank, hit in enumerate(hits, start=1) if is_expected(expectation, hit)), None)


def score_ranks(ranks: Sequence[int | None], k: int) -> Scores:
    """What a page is worth on which the expectations were found at these ranks; None: not at all.

    A further hit of what was found already counts for nothing. One hit may be several expectations at once.
    """
    at = Counter(rank for rank in ranks if rank is not None and rank <= k)
    order = [at[rank] for rank in range(1, k + 1)]
    # The best page has the same hits, and those that it lacks, one for each expectation.
    ideal = [*at.values(), *[1] * (len(ranks) - sum(at.values()))]
    return Scores(
        recall=recall(order, ideal, k),
        mrr=reciprocal_rank(order, k),
        ndcg=ndcg(order, ideal, k),
    )


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
