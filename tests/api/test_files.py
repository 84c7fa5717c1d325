"""The one-call upload over the API: fields, idempotency, limits, dry run."""

import hashlib
import json
from typing import Any

import httpx
import pytest

from svc_daemon.settings.limits import Limits
from tests.api.answers import body_of, details_of, refused_field, without_id
from tests.api.daemons import NOTES, Daemon
from tests.api.fixtures import LimitDaemon, MakeDaemon
from tests.api.holds import allow, refuse

MAX_BYTES = 26_214_400
SHA256 = hashlib.sha256(NOTES).hexdigest()


@pytest.mark.rule("service.ready", "service.sources", "source.fields", "source.task", "indexing.queued", "upload.files")
def test_an_upload_is_answered_with_its_source(daemon: Daemon) -> None:
    answer = daemon.upload(NOTES, title="A title", tags="red, green,,red", metadata='{"year": 2024}', mapping="docs")
    source = body_of(answer, 201)
    expected: dict[str, Any] = {"object": "knowledge_file", "type": "file", "status": "queued", "ready": False}
    expected |= {"bucket_sync_status": "queued", "title": "A title", "filename": "notes.md", "mapping": "docs"}
    expected |= {"content_type": "text/markdown", "size_bytes": len(NOTES), "sha256": SHA256, "tags": ["red", "green"]}
    expected |= {"metadata": {"year": 2024}, "bucket_ids": [daemon.make_bucket()], "warnings": []}
    expected |= dict.fromkeys(("source_url", "replaces", "error", "extraction"))
    assert {name: source[name] for name in expected} == expected
    assert (source["task"]["type"], source["task"]["status"]) == ("provider_file_search_indexing", "queued")
    assert daemon.read_blob(source["id"]) == NOTES


@pytest.mark.rule("upload.files")
def test_only_the_file_is_required(shared: Daemon) -> None:
    source = body_of(shared.upload(title="", tags="", metadata="", sha256="", replaces="", mapping=""), 201)
    expected: dict[str, Any] = {"title": "notes.md", "tags": [], "metadata": {}, "mapping": None, "replaces": None}
    assert {name: source[name] for name in expected} == expected


REFUSED: list[tuple[dict[str, Any], str]] = [
    *(({"title": "   "}, "title"), ({"tags": "t" * 65}, "tags")),
    *(({"metadata": metadata}, "metadata") for metadata in ("[]", "null", "{", '{"a": 1, "a": 2}')),
    ({"sha256": "abc"}, "sha256"),
    ({"dry_run": "perhaps"}, "dry_run"),
    ({"webhook": '{"url": "http://example.org"}'}, "webhook"),
    ({"team_id": "team_other"}, "team_id"),
]


@pytest.mark.rule("webhook.urls")
def test_a_field_that_does_not_fit_is_named_and_nothing_is_stored(shared: Daemon) -> None:
    edges: dict[str, Any] = {"title": "t" * 1024, "tags": ",".join(f"t{n % 20}" for n in range(21)), "colour": "red"}
    metadata = json.dumps({"k": "ä" * 4092}, ensure_ascii=False, indent=9)
    body_of(shared.upload(metadata=metadata, **edges), 201)
    before = shared.kept()
    for fields, path in REFUSED:
        assert refused_field(shared.upload(repeat_key="free", **fields)) == path, fields
    assert shared.kept() == before


@pytest.mark.rule("error.max-bytes", "file_too_large", "limit.file")
def test_exactly_25_mb_pass_and_one_byte_more_does_not(shared: Daemon) -> None:
    assert body_of(shared.upload(bytes(MAX_BYTES), filename="zeros.bin"), 201)["size_bytes"] == MAX_BYTES
    before = shared.kept()
    details = details_of(shared.upload(bytes(MAX_BYTES + 1), filename="zeros.bin"), "file_too_large")
    assert (details["max_bytes"], shared.kept()) == (MAX_BYTES, before)


def test_limits_are_those_of_the_settings(limited: LimitDaemon) -> None:
    daemon = limited(file_bytes=10, tags=1, metadata_bytes=9)
    assert details_of(daemon.upload(b"x" * 11), "file_too_large")["max_bytes"] == 10
    assert details_of(daemon.upload(b"x", tags="a,b"), "too_many_tags")["max_tags"] == 1
    assert details_of(daemon.upload(b"x", metadata='{"a":"bc"}'), "metadata_too_large")["max_bytes"] == 9
    body_of(daemon.upload(b"x" * 10, tags="a", metadata='{"a":"b"}'), 201)


@pytest.mark.rule("rule4.replay")
def test_a_replay_gives_the_first_answer_again(working: Daemon) -> None:
    first = working.upload(repeat_key="k1", tags="a")
    source = body_of(first, 201)
    working.wait_ready(source["id"])
    again = working.upload(repeat_key="k1", tags="a")
    assert ("Idempotent-Replayed" in first.headers, again.headers["Idempotent-Replayed"]) == (False, "true")
    assert without_id(body_of(again)) == without_id(source)
    assert working.members(status="all") == [source["id"]]
    working.delete(f"/v1/sources/{source['id']}")
    assert body_of(working.upload(repeat_key="k1", tags="a"))["id"] == source["id"]
    details_of(working.ask("GET", f"/v1/sources/{source['id']}"), "source_not_found")


OTHERS: list[dict[str, Any]] = [
    {"data": b"other"},
    *({name: "other"} for name in ("filename", "title", "tags", "mapping")),
    {"metadata": '{"a": 1}'},
    {"bucket": "second"},
]


@pytest.mark.rule("rule5.same-request", "idempotency_key_conflict")
@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_a_key_with_another_request_is_a_conflict(shared: Daemon, other: dict[str, Any]) -> None:
    shared.make_bucket("second")
    shared.upload(repeat_key="same")
    before = shared.kept()
    details_of(shared.upload(repeat_key="same", **other), "idempotency_key_conflict")
    assert shared.kept() == before


@pytest.mark.rule("service.path", "bucket.slug")
def test_the_same_bucket_by_id_or_slug_and_metadata_in_any_order_is_the_same_request(shared: Daemon) -> None:
    first = body_of(shared.upload(repeat_key="order", metadata='{"a": 1, "b": 2}'), 201)
    again = shared.upload(repeat_key="order", metadata='{ "b":2, "a":1 }', bucket=shared.make_bucket())
    assert body_of(again)["id"] == first["id"]


@pytest.mark.rule("rule8.api-key", "auth.idempotency")
def test_a_key_belongs_to_the_api_key_that_sent_it(shared: Daemon) -> None:
    second, theirs = shared.add_key(), shared.add_team()
    shared.make_bucket(key=theirs)
    made = {body_of(shared.upload(key=key, repeat_key="mine"), 201)["id"] for key in (shared.key, second, theirs)}
    assert len(made) == 3


def test_a_key_is_forgotten_after_a_week(daemon: Daemon) -> None:
    first = daemon.add_source(repeat_key="k1")
    daemon.advance(7 * 86_400 - 60)
    assert body_of(daemon.upload(repeat_key="k1"))["id"] == first
    daemon.advance(120)
    second = daemon.add_source(b"other bytes", repeat_key="k1")
    assert body_of(daemon.upload(b"other bytes", repeat_key="k1"))["id"] == second != first


REFUSALS: dict[str, dict[str, Any]] = {
    "empty_file": {"data": b""},
    "checksum_mismatch": {"sha256": "0" * 64},
    "too_many_tags": {"tags": ",".join(map(str, range(21)))},
    "metadata_too_large": {"metadata": json.dumps({"k": "v" * 8192})},
    "bucket_not_found": {"bucket": "missing"},
    "source_not_found": {"replaces": "src_missing"},
}


@pytest.mark.rule("source.sha256", "rule2.empty", "rule7.refused")
@pytest.mark.parametrize(("code", "upload"), REFUSALS.items())
def test_what_is_refused_stores_nothing_and_leaves_its_key_free(
    shared: Daemon, code: str, upload: dict[str, Any]
) -> None:
    before = shared.kept()
    details = details_of(shared.upload(repeat_key=code, **upload), code)
    details_of(shared.upload(dry_run="true", **upload), code)
    if code == "checksum_mismatch":
        assert details == {"expected": "0" * 64, "actual": SHA256}
    assert shared.kept() == before
    body_of(shared.upload(b"something else", repeat_key=code), 201)


@pytest.mark.rule("error.in-progress")
def test_fifty_racers_with_one_key_make_one_source(daemon: Daemon) -> None:
    files = {"file": ("notes.md", NOTES)}
    racer = daemon.asking("POST", "/v1/buckets/inbox/files", repeat_key="race", files=files)
    answers = daemon.ask_together(*[racer] * 50)
    (created,) = [answer.json()["id"] for answer in answers if answer.status_code == 201]
    for answer in answers:
        if answer.status_code == 409:
            assert details_of(answer, "request_in_progress")["retry_after_seconds"] == 1
        else:
            assert answer.json()["id"] == created
    assert body_of(daemon.upload(repeat_key="race"))["id"] == created
    once = dict.fromkeys(("buckets", "sources", "memberships", "tasks", "idempotency", "blobs"), 1)
    assert daemon.kept() == {**once, **dict.fromkeys(("deliveries", "uploads", "batches", "staging"), 0)}


@pytest.mark.rule("upload_rate_limited", "limit.creates")
def test_five_creates_a_second_and_then_no_more(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits())
    daemon.make_bucket()
    one = daemon.asking("POST", "/v1/buckets/inbox/files", files={"file": ("a.md", NOTES)})
    refused = [answer for answer in daemon.ask_together(*[one] * 12) if answer.status_code == 429]
    assert len(refused) >= 5
    for answer in refused:
        details = details_of(answer, "upload_rate_limited")
        assert (details["limit"], answer.headers["Retry-After"]) == (5, "1")
        assert 0 < details["retry_after_seconds"] <= 1
    daemon.advance(1)
    body_of(daemon.upload(), 201)


@pytest.mark.rule("rule7.refused", "limit.creates")
def test_the_rate_is_of_the_team_and_its_refusal_leaves_the_key_free(limited: LimitDaemon) -> None:
    daemon = limited(creates_per_second=1)
    theirs = daemon.add_team()
    daemon.make_bucket(key=theirs)
    body_of(daemon.upload(repeat_key="k1"), 201)
    before, second = daemon.kept(), daemon.add_key()
    details_of(daemon.upload(key=second, repeat_key="k2"), "upload_rate_limited")
    assert daemon.kept() == before
    body_of(daemon.upload(key=theirs), 201)
    assert body_of(daemon.upload(repeat_key="k1"))
    daemon.advance(2)
    body_of(daemon.upload(b"other", key=second, repeat_key="k2"), 201)


def test_what_validation_refuses_takes_no_turn_and_no_bytes(limited: LimitDaemon) -> None:
    daemon = limited(creates_per_second=1, bytes_per_minute=10)
    details_of(daemon.upload(b""), "empty_file")
    details_of(daemon.upload(b"0123456789", replaces="src_missing"), "source_not_found")
    body_of(daemon.upload(b"0123456789", dry_run="true"))
    body_of(daemon.upload(b"0123456789"), 201)


@pytest.mark.rule("rule6.replay-free", "limit.bytes")
def test_the_quota_counts_bytes_of_a_minute_and_replays_none(limited: LimitDaemon) -> None:
    daemon = limited(bytes_per_minute=100)
    body_of(daemon.upload(b"x" * 60, repeat_key="k1"), 201)
    daemon.advance(20)
    for _ in range(3):
        body_of(daemon.upload(b"x" * 60, repeat_key="k1"))
    before = daemon.kept()
    answer = daemon.upload(b"y" * 41, repeat_key="k2")
    details = details_of(answer, "quota_exceeded")
    expected = {"limit_bytes": 100, "used_bytes": 60, "requested_bytes": 41, "window_seconds": 60}
    assert {name: details[name] for name in expected} == expected
    assert 30 <= details["retry_after_seconds"] <= 40
    assert answer.headers["Retry-After"] == str(details["retry_after_seconds"])
    assert daemon.kept() == before
    # More than the whole quota never fits.
    never = daemon.upload(b"x" * 101)
    assert details_of(never, "quota_exceeded")["retry_after_seconds"] == 60
    assert never.json()["error"]["message"] == "101 bytes are more than the 100 that a team may upload in a minute."
    body_of(daemon.upload(b"y" * 40, repeat_key="k2"), 201)
    daemon.advance(41)
    body_of(daemon.upload(b"z" * 60), 201)


@pytest.mark.folders
def test_a_nearly_full_disk_takes_nothing_in_and_lets_deletes_work(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon()
    daemon.make_bucket()
    source_id = daemon.add_source()
    daemon.close()
    full = make_daemon(limits=Limits(creates_per_second=0, free_disk_bytes=2**62))
    before = full.kept()
    details_of(full.upload(repeat_key="k1"), "storage_full")
    assert full.kept() == before
    full.delete(f"/v1/sources/{source_id}")


def test_a_commit_that_fails_leaves_no_blob(daemon: Daemon) -> None:
    before = daemon.kept()
    refuse(daemon, "INSERT", "memberships")
    details_of(daemon.upload(repeat_key="k1"), "internal_error")
    assert daemon.kept() == before
    allow(daemon, "memberships")
    body_of(daemon.upload(repeat_key="k1"), 201)


def declaring(daemon: Daemon, declared: str, repeat_key: str) -> httpx.Response:
    """An upload whose sender declares this type."""
    files = {"file": ("notes.md", NOTES, declared)}
    return daemon.ask("POST", "/v1/buckets/inbox/files", repeat_key=repeat_key, files=files)


@pytest.mark.rule("source.content-type")
def test_the_type_counts_as_it_was_declared(shared: Daemon) -> None:
    source = body_of(declaring(shared, "text/plain", "typed"), 201)
    assert source["content_type"] == "text/markdown"
    assert body_of(declaring(shared, "text/plain", "typed"))["id"] == source["id"]
    for other in ("text/markdown", "application/octet-stream", "text/plain; charset=utf-8", "text/plainx"):
        details_of(declaring(shared, other, "typed"), "idempotency_key_conflict")


@pytest.mark.rule("source.content-type")
def test_a_declared_type_is_kept_and_the_text_is_read(working: Daemon) -> None:
    for declared in ("application/x-own", "text/x-own", "text/csv"):
        source_id = body_of(declaring(working, declared, declared), 201)["id"]
        working.wait_ready(source_id)
        assert working.source(source_id)["content_type"] == declared
        assert source_id in working.found("umber quay")
        content = working.ask("GET", f"/v1/sources/{source_id}/content")
        assert content.headers["Content-Type"].startswith(declared)
