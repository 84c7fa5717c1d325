"""Packs over HTTP: all files of a batch in one PUT, whatever is cut, damaged, sent twice or sent by itself."""

from itertools import pairwise
from typing import Any

import pytest

from tests.api import sessions
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.puts import DATA, HALF, PUTS, SIZE, STATES, expected_of
from tests.api.sessions import (
    ask_batch,
    batch_body,
    batch_status,
    finalize_batch,
    open_pack,
    outcomes,
    pack_body,
    part_kept,
    put,
    put_part,
)

#: The items of `DATA`: one of a single byte, and one that ends where HALF does.
CUTS = (0, 1, 300, HALF, SIZE)
PIECES = [(f"p{number}", DATA[first:end]) for number, (first, end) in enumerate(pairwise(CUTS))]
NAMES = [name for name, _ in PIECES]


def received(daemon: Daemon, batch: dict[str, Any]) -> int:
    """The bytes of all its sessions."""
    return sum(sessions.state_of(daemon, item)[1] for item in batch["items"])


def in_state(daemon: Daemon, state: str) -> dict[str, Any]:
    """A new pack of DATA in this state."""
    batch = open_pack(daemon, PIECES)
    if state == "uploading":
        assert part_kept(put_part(daemon, batch, DATA, 0, HALF - 1)) == f"bytes=0-{HALF - 1}"
    if state in ("uploaded", "finalized"):
        body_of(put(daemon, batch, DATA))
    if state == "finalized":
        assert outcomes(finalize_batch(daemon, batch)) == dict.fromkeys(NAMES, "finalized")
    if state == "canceled":
        finalize_batch(daemon, batch, mode="abandon_pending")
    return batch


def test_a_pack_is_answered_with_the_place_of_each_item(shared: Daemon) -> None:
    answer = ask_batch(shared, pack_body(PIECES))
    batch = body_of(answer, 201)
    assert [(item["offset"], item["size_bytes"]) for item in batch["items"]] == [
        (first, end - first) for first, end in pairwise(CUTS)
    ]
    assert (batch["pack"]["size_bytes"], batch["pack"]["expires_at"]) == (SIZE, batch["expires_at"])
    assert batch["pack"]["upload_url"].startswith(f"http://127.0.0.1/v1/storage/{batch['batch_id']}/")
    plain = body_of(ask_batch(shared, batch_body(PIECES)), 201)
    assert "pack" not in plain
    assert {"offset", "size_bytes"}.isdisjoint(plain["items"][0])


@pytest.mark.parametrize("state", STATES)
def test_every_put_to_a_pack_in_every_state(shared: Daemon, state: str) -> None:
    for kind, (body, content_range) in PUTS.items():
        expected, batch = expected_of(kind, state), in_state(shared, state)
        answer = put(shared, batch, body, content_range)
        if isinstance(expected, int):
            assert part_kept(answer) == (f"bytes=0-{expected - 1}" if expected else None), kind
            assert received(shared, batch) == expected, kind
        elif expected == "done":
            now = max(state, "uploaded", key=list(STATES).index)
            done = {"batch_id": batch["batch_id"], "object": "pack", "received_bytes": SIZE, "status": now}
            assert done.items() <= body_of(answer).items(), kind
            assert received(shared, batch) == SIZE, kind
        else:
            details_of(answer, expected)
            assert received(shared, batch) == STATES[state], kind


def test_a_pack_becomes_the_sources_of_its_items(working: Daemon) -> None:
    batch = open_pack(working, PIECES)
    body_of(put(working, batch, DATA))
    made = {item["client_file_id"]: item["knowledge_id"] for item in finalize_batch(working, batch)["finalized"]}
    assert list(made) == NAMES
    working.wait(lambda: bool(batch_status(working, batch)["terminal"]), "the batch ends")
    for name, data in PIECES:
        assert sessions.stored_bytes(working, made[name]) == data
        assert working.source(made[name])["sha256"] == sessions.sha256_of(data)
    assert list(working.files.parts.iterdir()) == []
