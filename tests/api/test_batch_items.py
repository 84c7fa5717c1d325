"""The files of a batch: where their fields may be, and what a batch reports if some are missing or gone."""

from typing import Any

import pytest

from tests.api import aliases, sessions
from tests.api.answers import body_of, refused_field
from tests.api.daemons import Daemon
from tests.api.sessions import ask_batch, batch_body, batch_status, finalize_batch, open_batch, put

A, B = ("a", b"The umber quay.\n"), ("b", b"The grey mole.\n")

#: Fields of a file that are taken in both of its places.
DESCRIBED: dict[str, Any] = {
    "title": "Quay",
    "tags": ["stone"],
    "metadata": {"n": 1},
    "sha256": sessions.sha256_of(A[1]),
    "mapping": "docs",
}


@pytest.mark.rule("batch.manifest")
@pytest.mark.parametrize("door", ["/v1/buckets/inbox/batches", aliases.BATCH])
def test_a_file_is_described_in_either_place_and_both_are_the_same_request(shared: Daemon, door: str) -> None:
    answers = []
    for places in (("files",), ("items",), ("files", "items")):
        body = batch_body([B, A], batch_idempotency_key=door.replace("/", "-"), bucket="inbox")
        listed = {"files": body["files"], "items": body["manifest"]["items"]}
        del listed["items"][1]["title"]
        for place in places:
            listed[place][1] |= DESCRIBED
        answers.append(shared.ask("POST", door, json=body))
    made, *replays = (body_of(answer, 200 if place else 201) for place, answer in enumerate(answers))
    assert {replay["batch_id"] for replay in replays} == {made["batch_id"]}
    body_of(put(shared, made["items"][1], A[1]))
    source = shared.source(finalize_batch(shared, made)["finalized"][0]["knowledge_id"])
    assert {name: source[name] for name in DESCRIBED} == DESCRIBED


@pytest.mark.parametrize(
    ("name", "other"),
    [("title", ""), ("tags", []), ("metadata", {}), ("sha256", "0" * 64), ("replaces", "src_other"), ("mapping", "b")],
)
def test_a_file_that_is_described_differently_in_both_places_is_refused(shared: Daemon, name: str, other: Any) -> None:
    body, value = batch_body([A, B]), DESCRIBED.get(name, "src_missing")
    body["manifest"]["items"][1][name], body["files"][1][name] = value, other
    assert refused_field(ask_batch(shared, body)) == f"files.1.{name}"


@pytest.mark.rule("batch.partial", "finalize.pending")
@pytest.mark.parametrize("end", ["arrives", "is given up", "expires"])
def test_a_batch_that_lacked_files_when_finalized_is_partial_until_each_is_settled(daemon: Daemon, end: str) -> None:
    batch = open_batch(daemon, [A, B])
    body_of(sessions.ask_finalize(daemon, batch, json={"dry_run": True}))
    assert batch_status(daemon, batch)["status"] == "open"
    for _ in range(2):
        assert finalize_batch(daemon, batch)["status"] == batch_status(daemon, batch)["status"] == "partial"
    assert body_of(ask_batch(daemon, batch_body([A, B])), 201)["status"] == "open"
    assert finalize_batch(daemon, batch)["status"] == "partial"
    if end == "expires":
        daemon.advance(86_500)
        assert batch_status(daemon, batch)["status"] == "expired"
        return
    body_of(put(daemon, batch["by_id"]["a"], A[1]))
    if end == "arrives":
        body_of(put(daemon, batch["by_id"]["b"], B[1]))
    assert batch_status(daemon, batch)["status"] == "partial"
    mode = "finalize_uploaded" if end == "arrives" else "abandon_pending"
    assert finalize_batch(daemon, batch, mode=mode)["status"] == batch_status(daemon, batch)["status"] == "processing"
