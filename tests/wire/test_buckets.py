"""Buckets on the wire: what a slug is, how documents may be cut, and what a body may hold."""

import re
from typing import Any

import pytest
from pydantic import ValidationError

from svc_daemon.wire.buckets import SLUG_PATTERN, BucketCreate, BucketFields, BucketUpdate, Chunking

SLUGS: dict[str, bool] = {
    "a": True,
    "0": True,
    "a-b": True,
    "a--b": True,
    "x" * 63: True,
    "2026-handbook": True,
    "": False,
    "x" * 64: False,
    "-a": False,
    "a-": False,
    "-": False,
    "A": False,
    "a_b": False,
    "bkt_1": False,
    "a b": False,
    "a.b": False,
    "ü": False,
    "a\n": False,
    "\u0661": False,
    "../a": False,
}


@pytest.mark.parametrize("slug", SLUGS)
def test_a_slug_is_judged_alike_in_paths_and_in_bodies(slug: str) -> None:
    assert (re.fullmatch(SLUG_PATTERN, slug) is not None) is SLUGS[slug]
    if SLUGS[slug]:
        assert BucketCreate(slug=slug).slug == slug
    else:
        with pytest.raises(ValidationError):
            BucketCreate(slug=slug)


#: min, target, max, overlap.
CHUNKINGS: dict[tuple[int, int, int, int], bool] = {
    (800, 1000, 1100, 0): True,
    (800, 800, 800, 0): True,
    (100, 100, 8000, 50): True,
    (800, 1000, 1100, 400): True,
    (800, 1000, 1100, 401): False,
    (101, 101, 101, 51): False,
    (801, 800, 1100, 0): False,
    (800, 1101, 1100, 0): False,
    (99, 1000, 1100, 0): False,
    (800, 1000, 8001, 0): False,
    (800, 1000, 1100, -1): False,
}


@pytest.mark.parametrize("given", CHUNKINGS)
def test_chunking_is_in_order_and_overlaps_by_half_at_most(given: tuple[int, int, int, int]) -> None:
    options = dict(zip(("min", "target", "max", "overlap"), given, strict=True))
    if CHUNKINGS[given]:
        assert Chunking(**options).model_dump() == options
    else:
        with pytest.raises(ValidationError):
            Chunking(**options)


def test_chunking_by_default_is_the_designs() -> None:
    assert Chunking() == Chunking(target=1000, min=800, max=1100, overlap=0)


@pytest.mark.parametrize(
    "body",
    [
        {"name": ""},
        {"name": "x" * 201},
        {"name": 1},
        {"description": "x" * 2001},
        {"metadata": []},
        {"metadata": "{}"},
        {"chunking": {"target": "1000"}},
        {"chunking": {"target": 1000.5}},
        {"chunking": []},
        {"dry_run": "true"},
        {"dry_run": 1},
    ],
)
def test_a_body_of_the_wrong_type_or_size_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        BucketFields.model_validate(body)


def test_unknown_fields_are_ignored() -> None:
    assert BucketFields.model_validate({"colour": "red"}) == BucketFields()


@pytest.mark.parametrize("status", ["deleting", "Active", "", 1])
def test_an_update_takes_no_other_status(status: Any) -> None:
    with pytest.raises(ValidationError):
        BucketUpdate.model_validate({"status": status})


def test_an_update_holds_only_what_was_sent() -> None:
    update = BucketUpdate.model_validate({"description": "", "metadata": {}, "status": "archived"})
    assert update.model_dump(exclude_unset=True) == {"description": "", "metadata": {}, "status": "archived"}
