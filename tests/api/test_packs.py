"""Packs over HTTP: all files of a batch in one PUT, including partial, damaged and repeated uploads."""

from itertools import pairwise

import pytest

from svc_daemon.store.files import syncing
from tests.api import sessions
from tests.api.answers import body_of, details_of, refused_field, without_id
from tests.api.daemons import Daemon
from tests.api.fixtures import LimitDaemon
from tests.api.puts import CUTS, DATA, HALF, PIECES, SIZE, in_state, received
from tests.api.sessions import (
    ask_batch,
    batch_body,
    finalize_batch,
    open_pack,
    outcomes,
    pack_body,
    part_kept,
    put,
    put_part,
)
from tests.store.folders import watch_syncs

NAMES = [name for name, _ in PIECES]


@pytest.mark.rule("pack.fields")
def test_pack_response_has_the_offset_and_size_of_each_item(shared: Daemon) -> None:
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


@pytest.mark.rule("pack.checksums")
def test_pack_needs_a_checksum_for_each_item(shared: Daemon) -> None:
    body = pack_body(PIECES)
    for number in (1, 3):
        del body["manifest"]["items"][number]["sha256"]
    errors = details_of(ask_batch(shared, body), "invalid_request")["errors"]
    assert [error["path"] for error in errors] == ["manifest.items.1.sha256", "manifest.items.3.sha256"]
    assert refused_field(ask_batch(shared, pack_body(PIECES) | {"pack": "yes"})) == "pack"


@pytest.mark.rule("pack.checksums")
def test_rejected_item_takes_no_bytes_of_the_pack(shared: Daemon) -> None:
    body = pack_body(PIECES)
    body["files"][1]["filename"] = "../x"
    batch = body_of(ask_batch(shared, body), 201)
    assert ([item["offset"] for item in batch["items"]], batch["pack"]["size_bytes"]) == (
        [0, 1, HALF - 299],
        SIZE - 299,
    )


@pytest.mark.rule("pack.size")
def test_batch_larger_than_the_pack_limit_gets_no_pack(limited: LimitDaemon) -> None:
    daemon = limited(pack_bytes=SIZE)
    for files, pack in ((PIECES, {"size_bytes": SIZE}), ([*PIECES, ("more", b"x")], None)):
        batch = body_of(ask_batch(daemon, pack_body(files)), 201)
        dry = body_of(ask_batch(daemon, pack_body(files) | {"dry_run": True}))["would_create"]
        assert ("pack" in batch, "offset" in batch["items"][0], dry.get("pack")) == (bool(pack), bool(pack), pack)
        assert all(body_of(put(daemon, item, data)) for item, (_, data) in zip(batch["items"], files, strict=True))
    assert daemon.show("/v1/limits")["limits"]["pack_bytes"]["value"] == SIZE


@pytest.mark.rule("pack.replay")
def test_replay_returns_the_pack_if_requested_and_new_urls_after_expiry(daemon: Daemon) -> None:
    batch = body_of(ask_batch(daemon, pack_body(PIECES), repeat_key="k"), 201)
    assert without_id(body_of(ask_batch(daemon, pack_body(PIECES), repeat_key="k"))) == without_id(batch)
    plain = body_of(ask_batch(daemon, pack_body(PIECES) | {"pack": False}, repeat_key="k"))
    assert (plain["batch_id"], "pack" in plain) == (batch["batch_id"], False)
    daemon.advance(86_500)
    again = body_of(ask_batch(daemon, pack_body(PIECES), repeat_key="k"))
    assert again["batch_id"] == batch["batch_id"]
    assert again["items"][0]["session_id"] == batch["items"][0]["session_id"]
    places = [(each["items"][0], each["pack"]) for each in (batch, again)]
    for old, new, data in zip(*places, (DATA[:1], DATA), strict=True):
        assert old["expires_at"] < new["expires_at"]
        details_of(put(daemon, old, data), "session_not_found")
        body_of(put(daemon, new, data))


@pytest.mark.rule("pack.replay")
def test_pack_is_not_found_with_a_wrong_token(shared: Daemon) -> None:
    batch, other = in_state(shared, "pending", "pack"), in_state(shared, "pending", "pack")
    token = sessions.path_of(batch).rpartition("/")[2]
    single = sessions.path_of(batch["items"][0]).rpartition("/")[2]
    wrong = (f"{batch['batch_id']}/{'0' * 64}", f"{other['batch_id']}/{token}", f"bat_missing/{token}")
    for path in (*wrong, f"{batch['batch_id']}/{single}", f"{batch['items'][0]['session_id']}/{token}"):
        details_of(shared.ask("PUT", f"/v1/storage/{path}", key="", content=DATA), "session_not_found")
    assert (received(shared, batch), received(shared, other)) == (0, 0)


@pytest.mark.rule("pack.damaged")
def test_damaged_item_stays_pending_and_can_be_sent_again_alone_or_in_the_pack(daemon: Daemon) -> None:
    damaged = bytearray(DATA)
    for offset in (CUTS[1] + 5, CUTS[3] + 5):
        damaged[offset] ^= 1
    batch = open_pack(daemon, PIECES)
    assert body_of(put(daemon, batch, bytes(damaged)))["status"] == "uploaded"
    first = finalize_batch(daemon, batch)
    assert outcomes(first) == {"p0": "finalized", "p1": "pending", "p2": "finalized", "p3": "pending"}
    assert {item["reason"] for item in first["pending"]} == {"checksum_mismatch"}
    body_of(put(daemon, batch["by_id"]["p1"], dict(PIECES)["p1"]))
    assert part_kept(put(daemon, batch, b"", "bytes */*")) == f"bytes=0-{CUTS[3] - 1}"
    body_of(put_part(daemon, batch, DATA, CUTS[3] - 20, SIZE - 1))
    last = finalize_batch(daemon, batch)
    assert outcomes(last) == {"p0": "replayed", "p1": "finalized", "p2": "replayed", "p3": "finalized"}
    for item in last["finalized"]:
        assert sessions.stored_bytes(daemon, item["knowledge_id"]) == dict(PIECES)[item["client_file_id"]]


@pytest.mark.rule("pack.single")
def test_item_uploaded_on_its_own_is_used_instead_of_its_bytes_in_the_pack(daemon: Daemon) -> None:
    batch = open_pack(daemon, PIECES)
    items, pieces = batch["by_id"], dict(PIECES)
    # Before the pack: the pack's bytes of the item are ignored, even if they differ.
    body_of(put(daemon, items["p1"], pieces["p1"]))
    body_of(put(daemon, items["p3"], pieces["p3"]))
    assert part_kept(put(daemon, batch, b"", "bytes */*")) is None
    other = DATA[:1] + b"x" * 299
    assert part_kept(put(daemon, batch, other, f"bytes 0-299/{SIZE}")) == "bytes=0-299"
    # During the pack: part of the item; the pack continues after it.
    assert part_kept(put_part(daemon, items["p2"], pieces["p2"], 0, 49)) == "bytes=0-49"
    assert part_kept(put(daemon, batch, b"", "bytes */*")) == "bytes=0-349"
    assert body_of(put_part(daemon, batch, DATA, 300, HALF - 1))["status"] == "uploaded"
    # After the pack.
    assert body_of(put(daemon, items["p0"], b"?"))["sha256"] == sessions.sha256_of(pieces["p0"])
    made = finalize_batch(daemon, batch)["finalized"]
    stored = {item["client_file_id"]: sessions.stored_bytes(daemon, item["knowledge_id"]) for item in made}
    assert stored == pieces


@pytest.mark.rule("pack.half")
def test_half_a_pack_can_be_finalized_before_the_rest_is_sent(daemon: Daemon) -> None:
    batch = open_pack(daemon, PIECES)
    assert part_kept(put_part(daemon, batch, DATA, 0, HALF + 9)) == f"bytes=0-{HALF + 9}"
    half = finalize_batch(daemon, batch)
    assert outcomes(half) == {"p0": "finalized", "p1": "finalized", "p2": "finalized", "p3": "pending"}
    assert (half["status"], half["pending"][0]["reason"]) == ("partial", "blob_not_uploaded")
    assert part_kept(put(daemon, batch, b"", f"bytes */{SIZE}")) == f"bytes=0-{HALF + 9}"
    assert body_of(put_part(daemon, batch, DATA, HALF, SIZE - 1))["status"] == "uploaded"
    assert set(outcomes(finalize_batch(daemon, batch)).values()) == {"finalized", "replayed"}
    assert body_of(put(daemon, batch, b"", f"bytes */{SIZE}"))["status"] == "finalized"


@pytest.mark.rule("pack.replay")
def test_canceled_item_fails_and_the_other_items_of_the_pack_are_finalized(daemon: Daemon) -> None:
    batch = open_pack(daemon, PIECES)
    daemon.delete(f"/v1/buckets/inbox/uploads/{batch['by_id']['p1']['session_id']}")
    body_of(put(daemon, batch, DATA))
    assert outcomes(finalize_batch(daemon, batch)) == dict.fromkeys(NAMES, "finalized") | {"p1": "failed"}
    given_up = in_state(daemon, "uploading", "pack")
    finalize_batch(daemon, given_up, mode="abandon_pending")
    assert body_of(put(daemon, given_up, b"", "bytes */*"))["status"] == "finalized"
    assert daemon.part_ids() == []


@pytest.mark.rule("pack.replay")
def test_pack_whose_items_all_failed_is_canceled(daemon: Daemon) -> None:
    body, replaced = pack_body(PIECES), daemon.add_source()
    for item in body["manifest"]["items"]:
        item["replaces"] = replaced
    batch = body_of(ask_batch(daemon, body), 201)
    body_of(put(daemon, batch["pack"], DATA))
    daemon.delete(f"/v1/sources/{replaced}")
    assert outcomes(finalize_batch(daemon, batch)) == dict.fromkeys(NAMES, "failed")
    details_of(put(daemon, batch["pack"], b"", "bytes */*"), "session_canceled")


@pytest.mark.folders
def test_put_and_finalize_of_a_pack_of_100_files_take_one_sync_and_one_commit_each(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [(f"f{number}", b"Crane number %d stands on the quay.\n" % number) for number in range(100)]
    whole = b"".join(data for _, data in files)
    body_of(put(daemon, open_pack(daemon, files), whole))
    synced = watch_syncs(monkeypatch)
    commits = daemon.context.database.commits
    batch = open_pack(daemon, files)
    body_of(put(daemon, batch, whole))
    assert outcomes(finalize_batch(daemon, batch)) == dict.fromkeys(dict(files), "finalized")
    assert (daemon.context.database.commits - commits, synced[-1]) == (2, "blobs")
    assert len(synced) == (2 if syncing.is_syncable(daemon.files.parts) else 102)


@pytest.mark.folders
def test_bytes_left_by_a_kill_are_synced_before_they_are_acknowledged(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = open_pack(daemon, PIECES)
    left = [item["session_id"] for item in batch["items"][:2]]
    for session_id, size_bytes in zip(left, (1, 50), strict=True):
        (daemon.files.parts / session_id).write_bytes(DATA[:1] + DATA[1:size_bytes])
    synced = watch_syncs(monkeypatch)
    assert part_kept(put(daemon, batch, b"", "bytes */*")) == "bytes=0-50"
    assert set(left) <= set(synced)
