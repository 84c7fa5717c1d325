"""What is done with a file, given what the bucket holds: every cell of the table."""

from typing import Any

import pytest

from svc_cli.uploads.decisions import OnConflict, Verb, decide

OLD, NEW = "0" * 64, "1" * 64


def _source(id: str, sha256: str, status: str = "active", replaces: str | None = None) -> dict[str, Any]:
    return {"id": id, "sha256": sha256, "status": status, "ready": status == "active", "replaces": replaces}


EMPTY: list[dict[str, Any]] = []
READY = [_source("a", NEW)]
PENDING = [_source("a", NEW, "indexing")]
FAILED = [_source("a", NEW, "failed")]
OTHER = [_source("a", OLD)]
OTHER_FAILED = [_source("a", OLD, "failed")]
TWICE = [_source("a", NEW, "failed"), _source("b", NEW)]
BESIDE = [_source("a", OLD), _source("b", NEW)]
SWAPPING_IN = [_source("a", OLD), _source("b", NEW, "indexing", replaces="a")]
SWAPPING_OUT = [_source("a", NEW), _source("b", OLD, "indexing", replaces="a")]
SWAP_FAILED = [_source("a", OLD), _source("b", NEW, "failed", replaces="a")]
SWAP_TO_OTHER_FAILED = [_source("a", NEW), _source("b", OLD, "failed", replaces="a")]


@pytest.mark.parametrize(
    ("known", "on_conflict", "verb", "about"),
    [
        (EMPTY, "ask", Verb.CREATE, None),
        (EMPTY, "replace", Verb.CREATE, None),
        (EMPTY, "as_new", Verb.CREATE, None),
        (READY, "ask", Verb.UNCHANGED, "a"),
        (READY, "replace", Verb.UNCHANGED, "a"),
        (READY, "as_new", Verb.UNCHANGED, "a"),
        (PENDING, "ask", Verb.UNCHANGED, "a"),
        (FAILED, "ask", Verb.RETRY, "a"),
        (FAILED, "replace", Verb.RETRY, "a"),
        (OTHER, "ask", Verb.CONFLICT, "a"),
        (OTHER, "replace", Verb.REPLACE, "a"),
        (OTHER, "as_new", Verb.CREATE, None),
        (OTHER_FAILED, "ask", Verb.CONFLICT, "a"),
        (OTHER_FAILED, "replace", Verb.REPLACE, "a"),
        (TWICE, "ask", Verb.UNCHANGED, "b"),
        (BESIDE, "ask", Verb.UNCHANGED, "b"),
        (SWAPPING_IN, "ask", Verb.UNCHANGED, "b"),
        (SWAPPING_IN, "replace", Verb.UNCHANGED, "b"),
        (SWAPPING_OUT, "ask", Verb.CONFLICT, "b"),
        (SWAPPING_OUT, "replace", Verb.REPLACE, "a"),
        (SWAP_FAILED, "ask", Verb.RETRY, "b"),
        (SWAP_TO_OTHER_FAILED, "ask", Verb.UNCHANGED, "a"),
    ],
)
def test_each_case_has_its_verb(
    known: list[dict[str, Any]], on_conflict: OnConflict, verb: Verb, about: str | None
) -> None:
    decision = decide(known, NEW, on_conflict)
    assert (decision.verb, decision.source and decision.source["id"]) == (verb, about)
