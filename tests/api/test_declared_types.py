"""The declared type of an upload: kept where nothing contradicts it, and part of the fingerprint."""

import hashlib
from typing import Any

import httpx
import pytest

from svc_daemon.core.uploads.idempotency import fingerprint
from tests.api.answers import body_of, details_of
from tests.api.daemons import NOTES, Daemon


def declaring(daemon: Daemon, declared: str, filename: str = "notes.md", repeat_key: str = "k") -> httpx.Response:
    """An upload whose file has this type, as its sender says."""
    files = {"file": (filename, NOTES, declared)}
    return daemon.ask("POST", "/v1/buckets/inbox/files", headers={"Idempotency-Key": repeat_key}, files=files)


def test_the_type_counts_as_it_was_declared(daemon: Daemon) -> None:
    source = body_of(declaring(daemon, "text/plain"), 201)
    assert source["content_type"] == "text/markdown"
    assert body_of(declaring(daemon, "text/plain"))["id"] == source["id"]
    for other in ("text/markdown", "application/octet-stream", "text/plain; charset=utf-8"):
        details_of(declaring(daemon, other), "idempotency_key_conflict")
        details_of(declaring(daemon, other + "x"), "idempotency_key_conflict")


def test_a_key_of_an_earlier_release_is_replayed(daemon: Daemon) -> None:
    """It compared the type that was detected."""
    source = body_of(declaring(daemon, "application/octet-stream"), 201)
    fields: tuple[Any, ...] = ("notes.md", "text/markdown", "notes.md", (), {}, None, None)
    former = fingerprint(source["bucket_ids"][0], hashlib.sha256(NOTES).hexdigest(), *fields)
    daemon.write(lambda connection: connection.execute("UPDATE idempotency SET fingerprint = ?", (former,)))
    assert body_of(declaring(daemon, "application/octet-stream"))["id"] == source["id"]
    details_of(declaring(daemon, "text/csv"), "idempotency_key_conflict")


@pytest.mark.parametrize("declared", ["application/x-own", "text/x-own", "text/csv"])
def test_a_declared_type_is_kept_and_the_text_is_read(working: Daemon, declared: str) -> None:
    source_id = body_of(declaring(working, declared), 201)["id"]
    working.wait_ready(source_id)
    assert working.source(source_id)["content_type"] == declared
    assert working.found("umber quay") == [source_id]
    assert working.ask("GET", f"/v1/sources/{source_id}/content").headers["Content-Type"].startswith(declared)
