"""Which hit is what was expected, and what its rank is worth."""

from typing import Any

import pytest

from svc_cli.evals.golden import Expectation
from svc_cli.evals.scores import find_rank, is_expected, score_ranks

HIT: dict[str, Any] = {
    "source_id": "src_1",
    "title": "staff/handbook.md",
    "filename": "handbook.md",
    "text": "Full-time employees get\n30 days  of vacation.",
    "location": {"headings": ["Handbook", "Vacation and leave"]},
}

MATCHES: list[tuple[dict[str, str], bool]] = [
    *(({"source": "src_1"}, True), ({"source": "staff/handbook.md"}, True), ({"source": "handbook.md"}, True)),
    *(({"source": "handbook"}, False), ({"source": "Handbook.md"}, False), ({"heading": "vacation  and LEAVE"}, True)),
    *(({"heading": "Vacation"}, False), ({"text": "get 30 days of VACATION"}, True)),
    ({"text": "30 days of sick leave"}, False),
    ({"source": "handbook.md", "heading": "Handbook", "text": "30 days"}, True),
    ({"source": "handbook.md", "heading": "Prices", "text": "30 days"}, False),
    ({"source": "pricing.md", "text": "30 days"}, False),
]


def test_a_hit_must_meet_the_whole_expectation() -> None:
    for fields, expected in MATCHES:
        assert is_expected(Expectation(**fields), HIT) is expected, fields
    assert not is_expected(Expectation(heading="Vacation"), {**HIT, "location": {"headings": None}})


def test_the_rank_is_that_of_the_first_hit() -> None:
    other = {**HIT, "filename": "other.md", "title": "other.md", "source_id": "src_2"}
    assert find_rank(Expectation(source="src_1"), [other, HIT, HIT]) == 2
    assert find_rank(Expectation(source="src_3"), [other, HIT]) is None


#: Ranks of what was expected, k; recall, MRR, nDCG.
RANKS: list[tuple[list[int | None], int, float, float, float]] = [
    ([11], 10, 0.0, 0.0, 0.0),
    ([3, 1], 10, 1.0, 1.0, 0.9197),
    # One hit that is both is as good as it gets; with a third one missing, 2 of 2 + 0.6309.
    ([1, 1], 10, 1.0, 1.0, 1.0),
    ([1, 1, None], 10, 2 / 3, 1.0, 0.7602),
]


def test_ranks_have_their_scores() -> None:
    for ranks, k, *expected in RANKS:
        scores = score_ranks(ranks, k)
        assert [scores.recall, scores.mrr, scores.ndcg] == pytest.approx(expected, abs=5e-5), ranks
