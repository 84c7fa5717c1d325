"""Request bodies: validation of slugs, chunking and other fields."""

import re
from typing import Any

from pydantic import BaseModel, ValidationError

from svc_daemon.wire.buckets import SLUG_PATTERN, BucketCreate, BucketFields, BucketUpdate, Chunking
from svc_daemon.wire.searches import SearchRequest


def is_valid(model: type[BaseModel], body: Any) -> bool:
    try:
        model.model_validate(body)
    except ValidationError:
        return False
    return True


def test_slugs_are_validated_alike_in_paths_and_bodies() -> None:
    right = ("a", "0", "a-b", "a--b", "x" * 63, "2026-handbook")
    wrong = ("", "x" * 64, "-a", "a-", "-", "A", "a_b", "bkt_1", "a b", "a.b", "ü", "../a", "a\n", "\u0661")
    slugs = dict.fromkeys(right, True) | dict.fromkeys(wrong, False)
    assert {slug: re.fullmatch(SLUG_PATTERN, slug) is not None for slug in slugs} == slugs
    assert {slug: is_valid(BucketCreate, {"slug": slug}) for slug in slugs} == slugs


def test_chunking_requires_ordered_sizes_and_an_overlap_of_at_most_half() -> None:
    right = [(800, 1000, 1100, 0), (800, 800, 800, 0), (100, 100, 8000, 50), (800, 1000, 1100, 400)]
    wrong = [(800, 1000, 1100, 401), (101, 101, 101, 51), (801, 800, 1100, 0), (800, 1101, 1100, 0)]
    wrong += [(99, 1000, 1100, 0), (800, 1000, 8001, 0), (800, 1000, 1100, -1)]
    names = ("min", "target", "max", "overlap")
    for given in right:
        options = dict(zip(names, given, strict=True))
        assert Chunking(**options).model_dump() == options
    assert [given for given in wrong if is_valid(Chunking, dict(zip(names, given, strict=True)))] == []
    assert Chunking() == Chunking(target=1000, min=800, max=1100, overlap=0)


def test_bucket_fields_reject_wrong_types_and_sizes_and_ignore_unknown_fields() -> None:
    wrong: list[dict[str, Any]] = [{"name": ""}, {"name": "x" * 201}, {"name": 1}, {"description": "x" * 2001}]
    wrong += [{"metadata": []}, {"metadata": "{}"}, {"dry_run": "true"}, {"dry_run": 1}]
    wrong += [{"chunking": {"target": "1000"}}, {"chunking": {"target": 1000.5}}, {"chunking": []}]
    assert [body for body in wrong if is_valid(BucketFields, body)] == []
    assert BucketFields.model_validate({"colour": "red"}) == BucketFields(), "an unknown field was not ignored"


def test_bucket_update_has_only_the_sent_fields_and_rejects_unknown_statuses() -> None:
    assert [status for status in ("deleting", "Active", "", 1) if is_valid(BucketUpdate, {"status": status})] == []
    sent = {"description": "", "metadata": {}, "status": "archived"}
    assert BucketUpdate.model_validate(sent).model_dump(exclude_unset=True) == sent


def test_search_requires_a_query_and_rejects_invalid_fields() -> None:
    request = SearchRequest.model_validate({"query": "q"})
    defaults = (request.max_num_results, request.mode, request.buckets, request.score_threshold)
    assert defaults == (10, "hybrid", None, None)
    wrong: list[dict[str, Any]] = [{"query": each} for each in ("", None, 1)]
    fields: list[dict[str, Any]] = [{"buckets": "docs"}, {"buckets": [1]}, {"source_ids": {}}, {"filters": []}]
    fields += [{"tags": "a,b"}, {"mode": "fuzzy"}, {"explain": "yes"}]
    fields += [{"max_num_results": each} for each in (0, "10", 1.5, True)]
    fields += [{"score_threshold": each} for each in (-0.1, 1.1, "0.5")]
    wrong += [{}, *({"query": "q", **each} for each in fields)]
    assert [body for body in wrong if is_valid(SearchRequest, body)] == []
    assert all(is_valid(SearchRequest, {"query": "q", "score_threshold": each}) for each in (0, 1, 0.5))
