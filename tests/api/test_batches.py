"""Batches over HTTP: create, fields of files, parallel uploads, finalize again and again, status, limits."""

from typing import Any

import pytest

from tests.api import aliases, sessions
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import Daemon
from tests.api.fixtures import LimitDaemon
from tests.api.sessions import ask_batch, batch_body, batch_status, finalize_batch, open_batch, outcomes, put

A, B, C = ("a", b"The umber quay.\n"), ("b", b"The grey mole.\n"), ("c", b"The tall crane.\n")
THREE = (A, B, C)
ODD = ("odd", "Words of a café.".encode("latin-1"))
BYTES = dict((*THREE, ODD)) | {"blank": b" \n"}
MOST_BYTES = 26_214_400


def send(daemon: Daemon, batch: dict[str, Any], *names: str) -> None:
    for name in names:
        body_of(put(daemon, batch["by_id"][name], BYTES[name]))


def sent(daemon: Daemon, *files: tuple[str, bytes]) -> tuple[dict[str, Any], dict[str, str]]:
    """A batch of files that were all sent and finalized, and the id of each one's source."""
    batch = open_batch(daemon, files)
    send(daemon, batch, *dict(files))
    return batch, {item["client_file_id"]: item["knowledge_id"] for item in finalize_batch(daemon, batch)["finalized"]}


def replacing(source_id: str, *files: tuple[str, bytes], **manifest: Any) -> dict[str, Any]:
    """A body whose first file replaces this source."""
    body = batch_body(files, **manifest)
    body["manifest"]["items"][0]["replaces"] = source_id
    return body


def state(batch: dict[str, Any]) -> tuple[str, bool, bool]:
    return batch["status"], batch["terminal"], batch["ready"]


def counters(**counts: int) -> dict[str, int]:
    return dict.fromkeys(("queued", "indexing", "active", "failed", "pending"), 0) | counts


def codes(items: list[dict[str, Any]]) -> dict[str, str]:
    return {item["client_file_id"]: item["error"]["code"] for item in items}


@pytest.mark.rule("upload.batch")
def test_a_batch_is_answered_as_the_specification_has_it(shared: Daemon) -> None:
    answer = ask_batch(shared, batch_body(THREE))
    batch = body_of(answer, 201)
    assert batch["batch_id"].startswith("bat_")
    assert (batch["status"], batch["upload_strategy"], batch["rejected"]) == ("open", "storage_resumable", [])
    items = [(item["client_file_id"], item["expires_at"]) for item in batch["items"]]
    assert items == [(name, batch["expires_at"]) for name in "abc"]
    assert all(item["upload_url"].startswith("http://127.0.0.1/v1/storage/") for item in batch["items"])
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.rule(
    "service.sources",
    "batch.outcomes",
    "batch.pending",
    "batch.partial",
    "batch.counters",
    "finalize.done",
    "finalize.pending",
    "upload.batch-finalize",
)
def test_finalizing_accumulates_until_the_batch_is_ready(working: Daemon) -> None:
    batch = open_batch(working, THREE)
    first = finalize_batch(working, batch, mode="finalize_uploaded")
    assert (first["status"], outcomes(first)) == ("partial", dict.fromkeys("abc", "pending"))
    assert batch_status(working, batch)["status"] == "partial"
    assert {item["reason"] for item in first["pending"]} == {"blob_not_uploaded"}
    send(working, batch, "b")
    sessions.put_part(working, batch["by_id"]["c"], BYTES["c"], 0, 4)
    second = finalize_batch(working, batch)
    assert (second["status"], outcomes(second)) == ("partial", {"a": "pending", "b": "finalized", "c": "pending"})
    (made,) = second["finalized"]
    assert set(made) == {"client_file_id", "session_id", "knowledge_id", "task_id"}
    send(working, batch, "a", "c")
    third = finalize_batch(working, batch)
    assert (third["status"], outcomes(third)) == ("processing", {"a": "finalized", "b": "replayed", "c": "finalized"})
    again = finalize_batch(working, batch)
    assert outcomes(again) == dict.fromkeys("abc", "replayed")
    sources = {item["client_file_id"]: item["knowledge_id"] for item in again["replayed"]}
    assert (list(sources), sources["b"]) == (["a", "b", "c"], made["knowledge_id"])
    working.wait_ready(*sources.values())
    status = batch_status(working, batch)
    assert (state(status), status["counters"]) == (("completed", True, True), counters(active=3, total=3))
    last = finalize_batch(working, batch)["replayed"]
    assert {(item["status"], item["ready"]) for item in last} == {("active", True)}
    assert {sessions.stored_bytes(working, source_id) for source_id in sources.values()} == set(dict(THREE).values())
    assert working.part_ids() == []


@pytest.mark.rule("batch.counters", "status.batch")
def test_items_come_with_the_status_when_asked_for(daemon: Daemon) -> None:
    batch = open_batch(daemon, THREE)
    send(daemon, batch, "a")
    finalize_batch(daemon, batch)
    assert "items" not in batch_status(daemon, batch)
    assert "items" not in batch_status(daemon, batch, include_items="false")
    status = batch_status(daemon, batch, include_items="true")
    first, second, _ = status["items"]
    assert (first["client_file_id"], first["status"], first["ready"], first["error"]) == ("a", "queued", False, None)
    assert first["task_id"] == daemon.source(first["knowledge_id"])["task"]["id"]
    assert first["bucket_ids"] == status["bucket_ids"] == [daemon.make_bucket()]
    assert (second["status"], second["knowledge_id"], second["task_id"]) == ("pending", None, None)
    assert (state(status), status["counters"]) == (("partial", False, False), counters(queued=1, pending=2, total=3))
    refused = daemon.ask("GET", f"/v1/knowledge/batches/{batch['batch_id']}", params={"include_items": "maybe"})
    assert refused_field(refused) == "include_items"


@pytest.mark.rule("batch.ids", "webhook.urls", "event.uploads", "limit.batch", "version.manifest")
def test_a_request_that_makes_no_sense_is_refused_whole(shared: Daemon) -> None:
    webhook = {"webhook": {"url": "http://x.example"}}
    on_item, on_file = batch_body(THREE), batch_body(THREE)
    on_item["manifest"]["items"][1] |= webhook
    on_file["files"][1] |= {"options": [webhook]}
    cases: list[tuple[dict[str, Any], str]] = [
        (batch_body([]), "files"),
        (batch_body([(str(number), b"x") for number in range(101)]), "files"),
        (batch_body([A, A]), "manifest.items"),
        *((batch_body(THREE) | {"files": batch_body(files)["files"]}, "files") for files in ([A, B], [A, B, C, A])),
        (batch_body([A, B]) | {"files": batch_body([A, B, A])["files"]}, "files"),
        *((batch_body(THREE, version=version), "manifest.version") for version in (2, "1", True)),
        (batch_body([("", b"x")]), "manifest.items.0.client_file_id"),
        (batch_body(THREE) | webhook, "webhook"),
        (batch_body(THREE, **webhook), "manifest.webhook"),
        (on_item, "manifest.items.1.webhook"),
        (on_file, "files.1.options.0.webhook"),
        (batch_body(THREE) | {"team_id": "x"}, "team_id"),
        (batch_body([("a", b""), ("b", b"")]), "files.1"),
    ]
    before = shared.count("batches"), shared.count("uploads")
    for body, path in cases:
        errors = details_of(ask_batch(shared, body, repeat_key=f"refused-{path}"), "invalid_request")["errors"]
        assert path in [error["path"] for error in errors], body
    assert (shared.count("batches"), shared.count("uploads")) == before


@pytest.mark.rule("limit.file")
def test_a_bad_file_is_rejected_and_the_others_are_taken(daemon: Daemon) -> None:
    bad: dict[str, tuple[str, dict[str, Any], str]] = {
        "large": ("files", {"size_bytes": MOST_BYTES + 1}, "file_too_large"),
        "empty": ("files", {"size_bytes": 0}, "empty_file"),
        "name": ("files", {"filename": "../x"}, "invalid_request"),
        "tags": ("items", {"tags": [str(number) for number in range(21)]}, "too_many_tags"),
        "meta": ("items", {"metadata": {"x": "y" * 8192}}, "metadata_too_large"),
        "sum": ("items", {"sha256": "abc"}, "invalid_request"),
        "old": ("items", {"replaces": "src_missing"}, "source_not_found"),
    }
    body = batch_body([(name, b"x") for name in ("good", *bad)])
    for where, listed in (("items", body["manifest"]["items"]), ("files", body["files"])):
        for each in listed[1:]:
            each.update(bad[each["client_file_id"]][1] if bad[each["client_file_id"]][0] == where else {})
    batch = body_of(ask_batch(daemon, body), 201)
    assert [item["client_file_id"] for item in batch["items"]] == ["good"]
    assert codes(batch["rejected"]) == {name: code for name, (_, _, code) in bad.items()}
    assert batch["rejected"][0]["error"]["details"]["max_bytes"] == MOST_BYTES
    assert batch_status(daemon, batch)["counters"]["total"] == 1


def test_a_replay_is_answered_after_the_replacements_were_made(working: Daemon) -> None:
    body = replacing(working.add_ready(), A, batch_idempotency_key="k")
    batch = body_of(ask_batch(working, body), 201)
    body_of(put(working, batch["items"][0], BYTES["a"]))
    working.wait_ready(finalize_batch(working, batch)["finalized"][0]["knowledge_id"])
    again, dry = body_of(ask_batch(working, body)), body | {"dry_run": True}
    assert (again["batch_id"], again["status"]) == (batch["batch_id"], "completed")
    for other in (body, dry):
        assert refused_field(ask_batch(working, other, repeat_key="other")) == "files.0"
    assert body_of(ask_batch(working, dry))["would_create"] is None


@pytest.mark.rule("batch.key")
def test_the_header_goes_before_the_key_of_the_batch(shared: Daemon) -> None:
    body = batch_body(THREE, batch_idempotency_key="k")
    first = body_of(ask_batch(shared, body, repeat_key="header"), 201)
    assert body_of(ask_batch(shared, body), 201)["batch_id"] != first["batch_id"]
    assert body_of(ask_batch(shared, body, repeat_key="header"))["batch_id"] == first["batch_id"]
    for bad in ("", "a b", "x" * 256):
        body = batch_body(THREE, batch_idempotency_key=bad)
        for repeat_key in (None, "header"):
            details_of(ask_batch(shared, body, repeat_key=repeat_key), "invalid_idempotency_key")


def test_an_expired_batch_ends(daemon: Daemon) -> None:
    batch = open_batch(daemon, THREE)
    sessions.put_part(daemon, batch["by_id"]["a"], BYTES["a"], 0, 4)
    daemon.advance(86_500)
    for _ in range(2):
        finalized, status = finalize_batch(daemon, batch), batch_status(daemon, batch, include_items="true")
        assert outcomes(finalized) == dict.fromkeys("abc", "failed")
        assert codes(finalized["failed"]) == codes(status["items"]) == dict.fromkeys("abc", "session_expired")
        assert (finalized["status"], state(status)) == ("expired", ("expired", True, False))
        assert status["counters"]["failed"] == 3
        sessions.wait_swept(daemon, lambda: daemon.count("uploads WHERE status = 'expired'") == 3, "they are swept")


def test_what_is_missing_can_be_given_up(working: Daemon) -> None:
    batch = open_batch(working, THREE)
    send(working, batch, "a")
    sessions.put_part(working, batch["by_id"]["b"], BYTES["b"], 0, 4)
    finalized = finalize_batch(working, batch, mode="abandon_pending")
    assert outcomes(finalized) == {"a": "finalized", "b": "failed", "c": "failed"}
    assert codes(finalized["failed"]) == dict.fromkeys("bc", "session_canceled")
    details_of(put(working, batch["by_id"]["b"], BYTES["b"]), "session_canceled")
    working.wait_ready(finalized["finalized"][0]["knowledge_id"])
    assert state(batch_status(working, batch)) == ("completed_with_failures", True, False)
    assert outcomes(finalize_batch(working, batch)) == {"a": "replayed", "b": "failed", "c": "failed"}
    assert working.part_ids() == []
    everything = open_batch(working, THREE)
    assert finalize_batch(working, everything, mode="abandon_pending")["status"] == "failed"
    working.advance(90_000)
    assert batch_status(working, everything)["status"] == "failed"


def test_a_batch_of_an_archived_bucket_waits_until_it_is_back(daemon: Daemon) -> None:
    batch = open_batch(daemon, THREE)
    send(daemon, batch, "a")
    daemon.patch("/v1/buckets/inbox", status="archived")
    details_of(sessions.ask_finalize(daemon, batch), "bucket_not_found")
    daemon.patch("/v1/buckets/inbox", status="active")
    assert outcomes(finalize_batch(daemon, batch))["a"] == "finalized"


@pytest.mark.rule("upload.batch-finalize")
def test_an_unknown_mode_of_a_finalize_is_refused(shared: Daemon) -> None:
    assert refused_field(sessions.ask_finalize(shared, open_batch(shared, [A]), json={"mode": "all"})) == "mode"


@pytest.mark.rule("batch.items", "finalize.failed")
def test_a_file_whose_predecessor_is_gone_fails_alone(daemon: Daemon) -> None:
    old = daemon.add_source()
    batch = body_of(ask_batch(daemon, replacing(old, A, B)), 201)
    for item in batch["items"]:
        body_of(put(daemon, item, BYTES[item["client_file_id"]]))
    daemon.delete(f"/v1/sources/{old}")
    for expected in ("finalized", "replayed"):
        finalized = finalize_batch(daemon, batch)
        assert outcomes(finalized) == {"a": "failed", "b": expected}
        assert codes(finalized["failed"]) == {"a": "source_not_found"}
    item = batch_status(daemon, batch, include_items="true")["items"][0]
    assert (item["status"], item["error"]["code"]) == ("failed", "source_not_found")
    assert daemon.part_ids() == []


def test_items_carry_the_warnings_of_their_sources(working: Daemon) -> None:
    batch, made = sent(working, A, ODD)
    (pending,) = batch_status(working, open_batch(working, [B]), include_items="true")["items"]
    working.wait_ready(*made.values())
    items = batch_status(working, batch, include_items="true")["items"]
    assert [item["warnings"] for item in items] == [working.source(made[name])["warnings"] for name in ("a", "odd")]
    assert [len(item["warnings"]) for item in (pending, *items)] == [0, 0, 1]


def test_a_file_ends_with_its_source_and_comes_back_with_it(working: Daemon) -> None:
    batch, made = sent(working, A, B, C, ("blank", b" \n"))
    working.wait_status(made["blank"], "failed")
    working.wait_ready(made["a"], made["b"], made["c"])
    assert batch_status(working, batch)["counters"] == counters(active=3, failed=1, total=4)
    working.delete(f"/v1/sources/{made['a']}")
    working.delete(f"/v1/buckets/inbox/sources/{made['b']}")
    status = batch_status(working, batch, include_items="true")
    assert state(status) == ("completed_with_failures", True, False)
    expected = [("deleted", False), ("detached", False), ("active", True), ("failed", False)]
    assert [(item["status"], item["ready"]) for item in status["items"]] == expected
    assert status["items"][3]["error"]["code"] == "no_extractable_text"
    again = finalize_batch(working, batch)
    assert outcomes(again) == dict.fromkeys(("a", "b", "c", "blank"), "replayed")
    assert [item["status"] for item in again["replayed"]] == ["deleted", "active", "active", "failed"]
    working.make_bucket("second")
    working.post("/v1/buckets/second/sources", json={"source_id": made["b"]})
    working.wait_ready(made["b"])
    assert batch_status(working, batch, include_items="true")["items"][1]["status"] == "active"
    for name in "bc":
        working.delete(f"/v1/sources/{made[name]}")
    assert batch_status(working, batch)["status"] == "failed"


def test_a_file_can_be_finalized_or_canceled_by_itself(shared: Daemon) -> None:
    batch = open_batch(shared, THREE)
    send(shared, batch, "a", "b")
    body_of(sessions.finalize(shared, batch["by_id"]["a"]), 201)
    shared.delete(f"/v1/buckets/inbox/uploads/{batch['by_id']['b']['session_id']}")
    assert outcomes(finalize_batch(shared, batch)) == {"a": "replayed", "b": "failed", "c": "pending"}


@pytest.mark.rule("upload.batch", "limit.batch")
def test_a_hundred_files_at_once(working: Daemon) -> None:
    files = [(f"f{number}", b"Crane number %d stands on the quay.\n" % number) for number in range(100)]
    batch = open_batch(working, files)
    puts = [working.asking("PUT", sessions.path_of(batch["by_id"][name]), key="", content=data) for name, data in files]
    assert {answer.status_code for answer in working.ask_together(*puts)} == {200}
    ask = working.asking("POST", f"/v1/buckets/inbox/batches/{batch['batch_id']}/finalize")
    answers = working.ask_together(*[ask] * 4)
    assert {answer.status_code for answer in answers} <= {200, 409}
    bodies = [answer.json() for answer in answers if answer.status_code == 200]
    made = [item["client_file_id"] for body in bodies for item in body["finalized"]]
    assert sorted(made) == sorted(dict(files))
    assert all(outcomes(body).keys() == dict(files).keys() for body in bodies)
    assert (working.count("sources"), len(working.blob_names())) == (100, 100)
    working.wait(lambda: bool(batch_status(working, batch)["terminal"]), "the batch ends")
    assert batch_status(working, batch)["counters"]["active"] == 100
    assert state(batch_status(working, batch)) == ("completed", True, True)


@pytest.mark.rule("limit.bytes")
def test_a_batch_counts_once_and_its_bytes_together(limited: LimitDaemon) -> None:
    daemon, files = limited(creates_per_second=1, bytes_per_minute=100), [("a", b"x" * 50), ("b", b"x" * 40)]
    batch = open_batch(daemon, files, repeat_key="k")
    body_of(ask_batch(daemon, batch_body(files), repeat_key="k"))
    details_of(ask_batch(daemon, batch_body([A]), repeat_key="other"), "upload_rate_limited")
    daemon.advance(1)
    assert details_of(ask_batch(daemon, batch_body([A]), repeat_key="other"), "quota_exceeded")["used_bytes"] == 90
    for name, data in files:
        body_of(put(daemon, batch["by_id"][name], data))
    assert outcomes(finalize_batch(daemon, batch)) == {"a": "finalized", "b": "finalized"}
    daemon.advance(60)
    body_of(ask_batch(daemon, batch_body([A]), repeat_key="other"), 201)


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
