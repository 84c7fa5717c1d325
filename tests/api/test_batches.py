"""Batches over HTTP: create, parallel uploads, finalize again and again, status."""

from typing import Any

import pytest

from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import NOTES, Daemon
from tests.api.sessions import (
    ask_batch,
    ask_finalize,
    batch_body,
    batch_status,
    finalize,
    finalize_batch,
    open_batch,
    outcomes,
    put,
    put_part,
    stored_bytes,
    wait_swept,
)

A, B, C = ("a", b"The umber quay.\n"), ("b", b"The grey mole.\n"), ("c", b"The tall crane.\n")
THREE = (A, B, C)
BYTES = dict(THREE)


def send(daemon: Daemon, batch: dict[str, Any], *names: str) -> None:
    for name in names:
        body_of(put(daemon, batch["by_id"][name], BYTES[name]))


def test_a_batch_is_answered_as_the_specification_has_it(shared: Daemon) -> None:
    answer = ask_batch(shared, batch_body(THREE))
    told = body_of(answer, 201)
    assert told["batch_id"].startswith("bat_")
    assert (told["status"], told["upload_strategy"], told["rejected"]) == ("open", "storage_resumable", [])
    assert [item["client_file_id"] for item in told["items"]] == ["a", "b", "c"]
    assert all(item["upload_url"].startswith("http://127.0.0.1/v1/storage/") for item in told["items"])
    assert {item["expires_at"] for item in told["items"]} == {told["expires_at"]}
    assert answer.headers["Cache-Control"] == "no-store"


def test_finalizing_accumulates_until_the_batch_is_ready(working: Daemon) -> None:
    batch = open_batch(working, THREE)
    told = finalize_batch(working, batch, mode="finalize_uploaded")
    assert (told["status"], outcomes(told)) == ("partial", dict.fromkeys("abc", "pending"))
    assert {item["reason"] for item in told["pending"]} == {"blob_not_uploaded"}
    send(working, batch, "b")
    put_part(working, batch["by_id"]["c"], BYTES["c"], 0, 4)
    told = finalize_batch(working, batch)
    assert (told["status"], outcomes(told)) == ("partial", {"a": "pending", "b": "finalized", "c": "pending"})
    (made,) = told["finalized"]
    assert set(made) == {"client_file_id", "session_id", "knowledge_id", "task_id"}
    send(working, batch, "a", "c")
    told = finalize_batch(working, batch)
    assert outcomes(told) == {"a": "finalized", "b": "replayed", "c": "finalized"}
    assert told["status"] == "processing"
    again = finalize_batch(working, batch)
    assert outcomes(again) == dict.fromkeys("abc", "replayed")
    assert [item["client_file_id"] for item in again["replayed"]] == ["a", "b", "c"]
    assert {item["client_file_id"]: item["knowledge_id"] for item in again["replayed"]}["b"] == made["knowledge_id"]
    working.wait_ready(*(item["knowledge_id"] for item in again["replayed"]))
    status = batch_status(working, batch)
    assert (status["status"], status["terminal"], status["ready"]) == ("completed", True, True)
    assert status["counters"] == {"queued": 0, "indexing": 0, "active": 3, "failed": 0, "pending": 0, "total": 3}
    assert {(item["status"], item["ready"]) for item in finalize_batch(working, batch)["replayed"]} == {
        ("active", True)
    }
    assert {stored_bytes(working, item["knowledge_id"]) for item in again["replayed"]} == set(BYTES.values())
    assert list(working.files.parts.iterdir()) == []


def test_items_come_with_the_status_when_asked_for(daemon: Daemon) -> None:
    batch = open_batch(daemon, THREE)
    send(daemon, batch, "a")
    finalize_batch(daemon, batch)
    assert "items" not in batch_status(daemon, batch)
    assert "items" not in batch_status(daemon, batch, include_items="false")
    status = batch_status(daemon, batch, include_items="true")
    first, second, _ = status["items"]
    assert (first["client_file_id"], first["status"], first["ready"], first["error"]) == ("a", "queued", False, None)
    assert first["knowledge_id"].startswith("src_")
    assert first["task_id"] == daemon.source(first["knowledge_id"])["task"]["id"]
    assert first["bucket_ids"] == status["bucket_ids"] == [daemon.make_bucket()]
    assert (second["status"], second["knowledge_id"], second["task_id"]) == ("pending", None, None)
    assert (status["status"], status["terminal"]) == ("partial", False)
    assert status["counters"] == {"queued": 1, "indexing": 0, "active": 0, "failed": 0, "pending": 2, "total": 3}
    refused = daemon.ask("GET", f"/v1/knowledge/batches/{batch['batch_id']}", params={"include_items": "maybe"})
    assert refused_field(refused) == "include_items"


def without(body: dict[str, Any], part: str, index: int) -> dict[str, Any]:
    listed = body["manifest"]["items"] if part == "items" else body["files"]
    del listed[index]
    return body


def test_a_request_that_makes_no_sense_is_refused_whole(shared: Daemon) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        (batch_body([]), "files"),
        (batch_body([(str(number), b"x") for number in range(101)]), "files"),
        (batch_body([A, A]), "manifest.items"),
        (without(batch_body([A, B, A]), "items", 2), "files"),
        (without(batch_body(THREE), "items", 0), "files"),
        (without(batch_body(THREE), "files", 2), "files"),
        (batch_body(THREE, version=2), "manifest.version"),
        (batch_body(THREE, version="1"), "manifest.version"),
        (batch_body(THREE, version=True), "manifest.version"),
        ({"files": []}, "manifest"),
        ({"manifest": {"version": 1, "items": []}}, "files"),
        (batch_body([("", b"x")]), "manifest.items.0.client_file_id"),
        (batch_body(THREE) | {"webhook": {"url": "http://x.example"}}, "webhook"),
        (batch_body(THREE) | {"team_id": "x"}, "team_id"),
        (batch_body([("a", b""), ("b", b"")]), "files"),
    ]
    for body, path in cases:
        before = shared.count("batches"), shared.count("uploads")
        answer = ask_batch(shared, body, repeat_key=f"refused-{path}")
        errors = details_of(answer, "invalid_request")["errors"]
        assert path in [error["path"] for error in errors]
        assert (shared.count("batches"), shared.count("uploads")) == before


def test_a_webhook_on_a_file_is_refused(shared: Daemon) -> None:
    for part in ["items", "files"]:
        body = batch_body(THREE)
        (body["files"] if part == "files" else body["manifest"]["items"])[1]["webhook"] = {"url": "http://x.example"}
        assert refused_field(ask_batch(shared, body)) == "webhook"


def test_a_bad_file_is_rejected_and_the_others_are_taken(daemon: Daemon) -> None:
    body = batch_body([(name, b"x") for name in ("good", "large", "empty", "name", "tags", "meta", "sum", "old")])
    items = {item["client_file_id"]: item for item in body["manifest"]["items"]}
    files = {file["client_file_id"]: file for file in body["files"]}
    files["large"]["size_bytes"] = 26_214_401
    files["empty"]["size_bytes"] = 0
    files["name"]["filename"] = "../x"
    items["tags"]["tags"] = [str(number) for number in range(21)]
    items["meta"]["metadata"] = {"x": "y" * 8192}
    items["sum"]["sha256"] = "abc"
    items["old"]["replaces"] = "src_missing"
    told = body_of(ask_batch(daemon, body), 201)
    assert [item["client_file_id"] for item in told["items"]] == ["good"]
    assert {item["client_file_id"]: item["error"]["code"] for item in told["rejected"]} == {
        "large": "file_too_large",
        "empty": "empty_file",
        "name": "invalid_request",
        "tags": "too_many_tags",
        "meta": "metadata_too_large",
        "sum": "invalid_request",
        "old": "source_not_found",
    }
    assert told["rejected"][0]["error"]["details"]["max_bytes"] == 26_214_400
    assert batch_status(daemon, told)["counters"]["total"] == 1


def test_fields_of_the_manifest_reach_the_source(daemon: Daemon) -> None:
    body = batch_body([A])
    body["manifest"]["items"][0] |= {"title": "Quay", "tags": ["stone"], "metadata": {"n": 1}}
    batch = body_of(ask_batch(daemon, body), 201)
    body_of(put(daemon, batch["items"][0], A[1]))
    source = daemon.source(finalize_batch(daemon, batch)["finalized"][0]["knowledge_id"])
    assert (source["title"], source["tags"], source["metadata"]) == ("Quay", ["stone"], {"n": 1})
    assert (source["filename"], source["content_type"]) == ("a.md", "text/markdown")


@pytest.mark.parametrize("by_header", [True, False])
def test_a_replay_gives_the_same_batch(daemon: Daemon, by_header: bool) -> None:
    body = batch_body(THREE, **({} if by_header else {"batch_idempotency_key": "k"}))
    repeat_key = "k" if by_header else None
    first = body_of(ask_batch(daemon, body, repeat_key=repeat_key), 201)
    answer = ask_batch(daemon, body, repeat_key=repeat_key)
    again = body_of(answer)
    assert answer.headers["Idempotent-Replayed"] == "true"
    del first["request_id"], again["request_id"]
    assert again == first
    changed = batch_body([A, B], **body["manifest"] | {"items": batch_body([A, B])["manifest"]["items"]})
    details_of(ask_batch(daemon, changed, repeat_key=repeat_key), "idempotency_key_conflict")
    assert (daemon.count("batches"), daemon.count("uploads")) == (1, 3)


def test_a_replay_is_answered_after_the_replacements_were_made(working: Daemon) -> None:
    old = working.add_ready()
    body = batch_body([A], batch_idempotency_key="k")
    body["manifest"]["items"][0]["replaces"] = old
    batch = body_of(ask_batch(working, body), 201)
    body_of(put(working, batch["items"][0], BYTES["a"]))
    working.wait_ready(finalize_batch(working, batch)["finalized"][0]["knowledge_id"])
    again = body_of(ask_batch(working, body))
    assert (again["batch_id"], again["status"]) == (batch["batch_id"], "completed")
    assert refused_field(ask_batch(working, body, repeat_key="other")) == "files"
    assert refused_field(ask_batch(working, body | {"dry_run": True}, repeat_key="other")) == "files"
    assert body_of(ask_batch(working, body | {"dry_run": True}))["would_create"] is None


def test_the_header_stands_above_the_key_of_the_batch(daemon: Daemon) -> None:
    body = batch_body(THREE, batch_idempotency_key="k")
    first = body_of(ask_batch(daemon, body, repeat_key="header"), 201)
    assert body_of(ask_batch(daemon, body), 201)["batch_id"] != first["batch_id"]
    assert body_of(ask_batch(daemon, body, repeat_key="header"))["batch_id"] == first["batch_id"]
    for bad in ("", "a b", "x" * 256):
        body = batch_body(THREE, batch_idempotency_key=bad)
        for repeat_key in (None, "header"):
            details_of(ask_batch(daemon, body, repeat_key=repeat_key), "invalid_idempotency_key")


def test_a_replay_of_an_expired_batch_gives_it_a_new_life(daemon: Daemon) -> None:
    first = open_batch(daemon, THREE, repeat_key="k")
    send(daemon, first, "a")
    finalize_batch(daemon, first)
    daemon.advance(86_500)
    again = body_of(ask_batch(daemon, batch_body(THREE), repeat_key="k"))
    assert again["batch_id"] == first["batch_id"]
    assert again["expires_at"] > first["expires_at"]
    urls = {item["client_file_id"]: (item["session_id"], item["upload_url"]) for item in again["items"]}
    for name in "bc":
        session_id, url = urls[name]
        assert session_id == first["by_id"][name]["session_id"]
        assert url != first["by_id"][name]["upload_url"]
        details_of(put(daemon, first["by_id"][name], BYTES[name]), "session_not_found")
        body_of(put(daemon, {"upload_url": url}, BYTES[name]))
    assert outcomes(finalize_batch(daemon, first)) == {"a": "replayed", "b": "finalized", "c": "finalized"}


def test_an_expired_batch_ends(daemon: Daemon) -> None:
    batch = open_batch(daemon, THREE)
    put_part(daemon, batch["by_id"]["a"], BYTES["a"], 0, 4)
    daemon.advance(86_500)
    for _ in range(2):
        told = finalize_batch(daemon, batch)
        assert outcomes(told) == dict.fromkeys("abc", "failed")
        assert {item["error"]["code"] for item in told["failed"]} == {"session_expired"}
        status = batch_status(daemon, batch, include_items="true")
        assert (told["status"], status["status"], status["terminal"]) == ("expired", "expired", True)
        assert {item["error"]["code"] for item in status["items"]} == {"session_expired"}
        assert status["counters"]["failed"] == 3
        wait_swept(daemon, lambda: daemon.count("uploads WHERE status = 'expired'") == 3, "the sessions are swept")


def test_what_is_missing_can_be_given_up(working: Daemon) -> None:
    batch = open_batch(working, THREE)
    send(working, batch, "a")
    put_part(working, batch["by_id"]["b"], BYTES["b"], 0, 4)
    told = finalize_batch(working, batch, mode="abandon_pending")
    assert outcomes(told) == {"a": "finalized", "b": "failed", "c": "failed"}
    assert {item["error"]["code"] for item in told["failed"]} == {"session_canceled"}
    details_of(put(working, batch["by_id"]["b"], BYTES["b"]), "session_canceled")
    working.wait_ready(told["finalized"][0]["knowledge_id"])
    status = batch_status(working, batch)
    assert (status["status"], status["terminal"], status["ready"]) == ("completed_with_failures", True, False)
    assert outcomes(finalize_batch(working, batch)) == {"a": "replayed", "b": "failed", "c": "failed"}
    assert list(working.files.parts.iterdir()) == []


def test_giving_up_everything_stays_failed_for_good(daemon: Daemon) -> None:
    batch = open_batch(daemon, THREE)
    assert finalize_batch(daemon, batch, mode="abandon_pending")["status"] == "failed"
    daemon.advance(90_000)
    assert batch_status(daemon, batch)["status"] == "failed"


def test_the_body_of_a_finalize_is_an_object_with_a_known_mode(shared: Daemon) -> None:
    cases: list[tuple[bytes, str]] = [
        (b"[]", "invalid_request"),
        (b'{"mode": "all"}', "invalid_request"),
        (b"{", "invalid_json"),
    ]
    for content, code in cases:
        batch = open_batch(shared, THREE)
        headers = {"Content-Type": "application/json"}
        details_of(ask_finalize(shared, batch, content=content, headers=headers), code)
        assert outcomes(body_of(ask_finalize(shared, batch))) == dict.fromkeys("abc", "pending")


def test_other_paths_do_not_lead_to_a_batch(shared: Daemon) -> None:
    batch = open_batch(shared, THREE)
    shared.make_bucket("other")
    stranger = shared.add_team()
    shared.make_bucket("inbox", key=stranger)
    kept_out = shared.add_key(buckets=(shared.make_bucket("other"),))
    details_of(ask_finalize(shared, batch, "other"), "batch_not_found")
    details_of(ask_finalize(shared, batch, "nowhere"), "bucket_not_found")
    details_of(ask_finalize(shared, {"batch_id": "bat_missing"}), "batch_not_found")
    details_of(ask_finalize(shared, batch, key=stranger), "batch_not_found")
    details_of(ask_finalize(shared, batch, key=kept_out), "bucket_not_found")
    path = f"/v1/knowledge/batches/{batch['batch_id']}"
    for key in (stranger, kept_out):
        details_of(shared.ask("GET", path, key=key), "batch_not_found")
    details_of(ask_finalize(shared, batch, key=shared.add_key("knowledge:read")), "forbidden_project_key")
    details_of(ask_batch(shared, batch_body(THREE), key=shared.add_key("knowledge:read")), "forbidden_project_key")


def test_a_batch_of_an_archived_bucket_waits_until_it_is_back(daemon: Daemon) -> None:
    batch = open_batch(daemon, THREE)
    send(daemon, batch, "a")
    body_of(daemon.ask("PATCH", "/v1/buckets/inbox", json={"status": "archived"}))
    details_of(ask_finalize(daemon, batch), "bucket_not_found")
    assert batch_status(daemon, batch)["status"] == "open"
    body_of(daemon.ask("PATCH", "/v1/buckets/inbox", json={"status": "active"}))
    assert outcomes(finalize_batch(daemon, batch))["a"] == "finalized"


def test_a_file_whose_predecessor_is_gone_fails_alone(daemon: Daemon) -> None:
    old = daemon.add_source()
    body = batch_body([A, B])
    body["manifest"]["items"][0]["replaces"] = old
    batch = body_of(ask_batch(daemon, body), 201)
    for item in batch["items"]:
        body_of(put(daemon, item, BYTES[item["client_file_id"]]))
    body_of(daemon.ask("DELETE", f"/v1/sources/{old}"))
    for expected in ("finalized", "replayed"):
        told = finalize_batch(daemon, batch)
        assert outcomes(told) == {"a": "failed", "b": expected}
        assert told["failed"][0]["error"]["code"] == "source_not_found"
    item = batch_status(daemon, batch, include_items="true")["items"][0]
    assert (item["status"], item["error"]["code"]) == ("failed", "source_not_found")
    assert list(daemon.files.parts.iterdir()) == []


def test_a_deleted_source_is_told_and_ends_its_file(working: Daemon) -> None:
    batch = open_batch(working, [A, B])
    send(working, batch, "a", "b")
    made = {item["client_file_id"]: item["knowledge_id"] for item in finalize_batch(working, batch)["finalized"]}
    working.wait_ready(*made.values())
    body_of(working.ask("DELETE", f"/v1/sources/{made['a']}"))
    status = batch_status(working, batch, include_items="true")
    assert (status["status"], status["terminal"]) == ("completed_with_failures", True)
    assert [(item["status"], item["ready"]) for item in status["items"]] == [("deleted", False), ("active", True)]
    assert outcomes(finalize_batch(working, batch)) == {"a": "failed", "b": "replayed"}
    body_of(working.ask("DELETE", f"/v1/sources/{made['b']}"))
    assert batch_status(working, batch)["status"] == "failed"


def test_a_source_that_has_left_its_last_bucket_ends_its_file(working: Daemon) -> None:
    second = working.make_bucket("second")
    batch = open_batch(working, [A, B])
    send(working, batch, "a", "b")
    made = {item["client_file_id"]: item["knowledge_id"] for item in finalize_batch(working, batch)["finalized"]}
    working.wait_ready(*made.values())
    body_of(working.ask("DELETE", f"/v1/buckets/inbox/sources/{made['a']}"))
    status = batch_status(working, batch, include_items="true")
    assert (status["status"], status["terminal"], status["ready"]) == ("completed_with_failures", True, False)
    assert [item["status"] for item in status["items"]] == ["detached", "active"]
    body_of(working.ask("POST", f"/v1/buckets/{second}/sources", json={"source_id": made["a"]}))
    working.wait_ready(made["a"])
    assert batch_status(working, batch)["status"] == "completed"


def test_a_file_that_cannot_be_read_fails_in_the_status(working: Daemon) -> None:
    batch = open_batch(working, [A, ("blank", b" \n")])
    send(working, batch, "a")
    body_of(put(working, batch["by_id"]["blank"], b" \n"))
    made = {item["client_file_id"]: item["knowledge_id"] for item in finalize_batch(working, batch)["finalized"]}
    working.wait_status(made["blank"], "failed")
    working.wait_ready(made["a"])
    status = batch_status(working, batch, include_items="true")
    assert status["counters"] == {"queued": 0, "indexing": 0, "active": 1, "failed": 1, "pending": 0, "total": 2}
    assert status["status"] == "completed_with_failures"
    assert status["items"][1]["error"]["code"] == "no_extractable_text"


def test_a_file_can_be_finalized_or_canceled_by_itself(daemon: Daemon) -> None:
    batch = open_batch(daemon, THREE)
    send(daemon, batch, "a", "b")
    body_of(finalize(daemon, batch["by_id"]["a"]), 201)
    body_of(daemon.ask("DELETE", f"/v1/buckets/inbox/uploads/{batch['by_id']['b']['session_id']}"))
    told = finalize_batch(daemon, batch)
    assert outcomes(told) == {"a": "replayed", "b": "failed", "c": "pending"}


def test_a_restricted_key_sees_the_batches_of_its_buckets(daemon: Daemon) -> None:
    key = daemon.add_key(buckets=(daemon.make_bucket(),))
    batch = open_batch(daemon, THREE, key=key)
    body_of(daemon.ask("GET", f"/v1/knowledge/batches/{batch['batch_id']}", key=key))
    body_of(ask_finalize(daemon, batch, key=key))


def test_one_file_of_the_most_bytes_is_taken(daemon: Daemon) -> None:
    data = NOTES * (26_214_400 // len(NOTES)) + b"x" * (26_214_400 % len(NOTES))
    batch = open_batch(daemon, [("a", data)])
    assert body_of(put(daemon, batch["by_id"]["a"], data))["received_bytes"] == 26_214_400
    (made,) = finalize_batch(daemon, batch)["finalized"]
    assert stored_bytes(daemon, made["knowledge_id"]) == data
