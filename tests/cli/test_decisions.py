"""What is done with a file, given what the bucket holds: every cell of the table."""

from typing import Any

import pytest

from svc_cli.uploads.decisions import OnConflict, decide

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
    ("known", "on_conflict", "action", "about"),
    [
        (EMPTY, "ask", "created", None),
        (EMPTY, "replace", "created", None),
        (EMPTY, "as_new", "created", None),
        (READY, "ask", "unchanged", "a"),
        (READY, "replace", "unchanged", "a"),
        (READY, "as_new", "unchanged", "a"),
        (PENDING, "ask", "unchanged", "a"),
        (FAILED, "ask", "retried", "a"),
        (FAILED, "replace", "retried", "a"),
        (OTHER, "ask", "conflict", "a"),
        (OTHER, "replace", "replaced", "a"),
        (OTHER, "as_new", "created", None),
        (OTHER_FAILED, "ask", "conflict", "a"),
        (OTHER_FAILED, "replace", "replaced", "a"),
        (TWICE, "ask", "unchanged", "b"),
        (BESIDE, "ask", "unchanged", "b"),
        (SWAPPING_IN, "ask", "unchanged", "b"),
        (SWAPPING_IN, "replace", "unchanged", "b"),
        (SWAPPING_OUT, "ask", "conflict", "b"),
        (SWAPPING_OUT, "replace", "replaced", "a"),
        (SWAP_FAILED, "ask", "retried", "b"),
        (SWAP_TO_OTHER_FAILED, "ask", "unchanged", "a"),
    ],
)
def test_each_case_has_its_action(
    known: list[dict[str, Any]], on_conflict: OnConflict, action: str, about: str | None
) -> None:
    decision = decide(known, NEW, on_conflict)
    assert (decision.action, decision.source and decision.source["id"]) == (action, about)
