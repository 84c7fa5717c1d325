"""A search on the wire: what a question may hold."""

from typing import Any

import pytest
from pydantic import ValidationError

from svc_daemon.wire.searches import SearchRequest


def test_a_query_is_all_that_is_needed() -> None:
    request = SearchRequest.model_validate({"query": "q"})
    assert (request.max_num_results, request.mode, request.buckets, request.score_threshold) == (
        10,
        "hybrid",
        None,
        None,
    )


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": ""},
        {"query": None},
        {"query": 1},
        {"query": "q", "buckets": "docs"},
        {"query": "q", "buckets": [1]},
        {"query": "q", "source_ids": {}},
        {"query": "q", "filters": []},
        {"query": "q", "tags": "a,b"},
        {"query": "q", "max_num_results": 0},
        {"query": "q", "max_num_results": "10"},
        {"query": "q", "max_num_results": 1.5},
        {"query": "q", "max_num_results": True},
        {"query": "q", "mode": "fuzzy"},
        {"query": "q", "score_threshold": -0.1},
        {"query": "q", "score_threshold": 1.1},
        {"query": "q", "score_threshold": "0.5"},
        {"query": "q", "explain": "yes"},
    ],
)
def test_a_question_of_the_wrong_form_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SearchRequest.model_validate(body)


@pytest.mark.parametrize("threshold", [0, 1, 0.5])
def test_a_threshold_is_any_number_from_0_to_1(threshold: float) -> None:
    assert SearchRequest.model_validate({"query": "q", "score_threshold": threshold}).score_threshold == threshold
