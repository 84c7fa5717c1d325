"""The one-call upload over the API: fields, idempotency, limits, dry run."""

import hashlib
import json
from typing import Any

import pytest

from svc_daemon.settings import Limits
from svc_daemon.wire.sources import SourceAnswer
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import NOTES, Daemon
from tests.api.fixtures import MakeDaemon

MAX_BYTES = 26_214_400


def stored(daemon: Daemon) -> tuple[int, ...]:
    """How much there is of everything that an upload may leave."""
    tables = ("sources", "memberships", "tasks", "idempotency")
    rows = [daemon.count(table) for table in tables]
    files = [len(list(folder.iterdir())) for folder in (daemon.files.blobs, daemon.files.staging)]
    return (*rows, *files)


def test_an_upload_is_answered_with_its_source(daemon: Daemon) -> None:
    bucket_id = daemon.make_bucket()
    answer = daemon.upload(NOTES, title="A title", tags="red, green,,red", metadata='{"year": 2024}', mapping="docs")
    source = body_of(answer, 201)
    assert SourceAnswer.model_validate(source, extra="forbid")
    expected = {
        "object": "knowledge_file",
        "type": "file",
        "status": "queued",
        "ready": False,
        "bucket_sync_status": "queued",
        "title": "A title",
        "filename": "notes.md",
        "content_type": "text/markdown",
        "size_bytes": len(NOTES),
        "sha256": hashlib.sha256(NOTES).hexdigest(),
        "tags": ["red", "green"],
        "metadata": {"year": 2024},
        "mapping": "docs",
        "source_url": None,
        "bucket_ids": [bucket_id],
        "replaces": None,
        "error": None,
        "warnings": [],
        "extraction": None,
    }
    assert {name: source[name] for name in expected} == expected
    assert (source["task"]["type"], source["task"]["status"]) == ("provider_file_search_indexing", "queued")
    assert (daemon.files.blobs / source["id"]).read_bytes() == NOTES


def test_only_the_file_is_required(daemon: Daemon) -> None:
    source = body_of(daemon.upload(title="", tags="", metadata="", sha256="", replaces="", mapping=""), 201)
    assert (source["title"], source["tags"], source["metadata"]) == ("notes.md", [], {})
    assert (source["mapping"], source["replaces"]) == (None, None)


EDGES: dict[str, dict[str, Any]] = {
    "20 tags": {"tags": ",".join(f"t{number}" for number in range(20))},
    "20 tags, one of them twice": {"tags": ",".join(f"t{number % 20}" for number in range(21))},
    "a tag of 64 characters": {"tags": "t" * 64},
    "8192 bytes of metadata": {"metadata": json.dumps({"k": "v" * (8192 - len('{"k":""}'))})},
    "8192 bytes that were sent with spaces": {"metadata": json.dumps({"k": "ä" * 4092}, ensure_ascii=False, indent=9)},
    "a title of 1024 characters": {"title": "t" * 1024},
    "the checksum in capitals": {"sha256": hashlib.sha256(NOTES).hexdigest().upper()},
    "fields that nobody knows": {"colour": "red"},
}


def test_what_is_just_within_its_limit_is_taken(shared: Daemon) -> None:
    for fields in EDGES.values():
        body_of(shared.upload(**fields), 201)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"title": "   "}, "title"),
    ({"title": "t" * 1025}, "title"),
    ({"title": "a\tb"}, "title"),
    ({"tags": "t" * 65}, "tags"),
    ({"tags": "a\x01"}, "tags"),
    ({"metadata": "[]"}, "metadata"),
    ({"metadata": "null"}, "metadata"),
    ({"metadata": "{"}, "metadata"),
    ({"metadata": '{"a": 1, "a": 2}'}, "metadata"),
    ({"sha256": "abc"}, "sha256"),
    ({"dry_run": "perhaps"}, "dry_run"),
    ({"webhook": '{"url": "http://example.org"}'}, "webhook"),
    ({"team_id": "team_other"}, "team_id"),
]


def test_a_field_that_does_not_fit_is_named_and_nothing_is_stored(shared: Daemon) -> None:
    for fields, path in REFUSED:
        before = stored(shared)
        assert refused_field(shared.upload(repeat_key="free", **fields)) == path
        assert stored(shared) == before


def test_exactly_25_mb_pass_and_one_byte_more_does_not(shared: Daemon) -> None:
    assert body_of(shared.upload(bytes(MAX_BYTES), filename="zeros.bin"), 201)["size_bytes"] == MAX_BYTES
    before = stored(shared)
    details = details_of(shared.upload(bytes(MAX_BYTES + 1), filename="zeros.bin"), "file_too_large")
    assert details["max_bytes"] == MAX_BYTES
    assert stored(shared) == before


def test_limits_are_those_of_the_settings(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=0, file_bytes=10, tags=1, metadata_bytes=9))
    daemon.make_bucket()
    assert details_of(daemon.upload(b"x" * 11), "file_too_large")["max_bytes"] == 10
    assert details_of(daemon.upload(b"x", tags="a,b"), "too_many_tags")["max_tags"] == 1
    assert details_of(daemon.upload(b"x", metadata='{"a":"bc"}'), "metadata_too_large")["max_bytes"] == 9
    body_of(daemon.upload(b"x" * 10, tags="a", metadata='{"a":"b"}'), 201)


def test_a_replay_tells_the_first_answer_again(working: Daemon) -> None:
    first = working.upload(repeat_key="k1", tags="a")
    working.wait_ready(first.json()["id"])
    again = working.upload(repeat_key="k1", tags="a")
    created, replayed = body_of(first, 201), body_of(again)
    assert ("Idempotent-Replayed" in first.headers, again.headers["Idempotent-Replayed"]) == (False, "true")
    assert created.pop("request_id") != replayed.pop("request_id")
    assert created == replayed
    assert working.members(status="all") == [created["id"]]


def test_a_replay_goes_on_after_its_source_was_deleted(working: Daemon) -> None:
    source_id = working.add_ready(repeat_key="k1")
    body_of(working.ask("DELETE", f"/v1/sources/{source_id}"))
    assert body_of(working.upload(repeat_key="k1"))["id"] == source_id
    details_of(working.ask("GET", f"/v1/sources/{source_id}"), "source_not_found")


OTHERS: dict[str, dict[str, Any]] = {
    "bytes": {"data": b"other"},
    "a file name": {"filename": "other.md"},
    "a title": {"title": "other"},
    "tags": {"tags": "other"},
    "metadata": {"metadata": '{"a": 1}'},
    "a mapping": {"mapping": "other"},
    "a bucket": {"bucket": "second"},
}


def test_a_key_with_another_request_is_a_conflict(shared: Daemon) -> None:
    for other in OTHERS.values():
        shared.make_bucket("second")
        key = shared.add_key()
        body_of(shared.upload(key=key, repeat_key="same"), 201)
        before = stored(shared)
        details_of(shared.upload(key=key, repeat_key="same", **other), "idempotency_key_conflict")
        assert stored(shared) == before


def test_the_same_bucket_by_id_or_slug_and_metadata_in_any_order_is_the_same_request(daemon: Daemon) -> None:
    first = daemon.upload(repeat_key="k1", metadata='{"a": 1, "b": 2}')
    again = daemon.upload(repeat_key="k1", metadata='{ "b":2, "a":1 }', bucket=daemon.make_bucket())
    assert body_of(again)["id"] == body_of(first, 201)["id"]


def test_a_key_belongs_to_the_api_key_that_sent_it(daemon: Daemon) -> None:
    second, theirs = daemon.add_key(), daemon.add_team()
    daemon.make_bucket(key=theirs)
    made = {body_of(daemon.upload(key=key, repeat_key="k1"), 201)["id"] for key in (daemon.key, second, theirs)}
    assert len(made) == 3


def test_a_malformed_key_is_refused(shared: Daemon) -> None:
    for repeat_key in ["", "a b", "k" * 256, "\x7f", "\t"]:
        assert details_of(shared.upload(repeat_key=repeat_key), "invalid_idempotency_key") == {"max_characters": 255}


def test_a_well_formed_key_is_taken(shared: Daemon) -> None:
    for repeat_key in ["!", "~", "k" * 255, '"quoted"']:
        body_of(shared.upload(repeat_key=repeat_key), 201)


def test_a_key_is_forgotten_after_a_week(daemon: Daemon) -> None:
    first = daemon.add_source(repeat_key="k1")
    daemon.advance(7 * 86_400 - 60)
    assert body_of(daemon.upload(repeat_key="k1"))["id"] == first
    daemon.advance(120)
    second = body_of(daemon.upload(b"other bytes", repeat_key="k1"), 201)["id"]
    assert body_of(daemon.upload(b"other bytes", repeat_key="k1"))["id"] == second != first


REFUSALS: dict[str, dict[str, Any]] = {
    "empty_file": {"data": b""},
    "checksum_mismatch": {"sha256": "0" * 64},
    "too_many_tags": {"tags": ",".join(map(str, range(21)))},
    "metadata_too_large": {"metadata": json.dumps({"k": "v" * 8192})},
    "bucket_not_found": {"bucket": "missing"},
    "source_not_found": {"replaces": "src_missing"},
}


@pytest.mark.parametrize(("code", "upload"), REFUSALS.items())
def test_what_is_refused_stores_nothing_and_leaves_its_key_free(
    daemon: Daemon, code: str, upload: dict[str, Any]
) -> None:
    before = stored(daemon)
    details_of(daemon.upload(repeat_key="k1", **upload), code)
    assert stored(daemon) == before
    body_of(daemon.upload(b"something else", repeat_key="k1"), 201)


def test_a_dry_run_is_refused_as_the_upload_would_be(shared: Daemon) -> None:
    for code, upload in REFUSALS.items():
        details_of(shared.upload(dry_run="true", **upload), code)


def test_a_checksum_that_differs_is_told_with_both(shared: Daemon) -> None:
    details = details_of(shared.upload(sha256="0" * 64), "checksum_mismatch")
    assert details == {"expected": "0" * 64, "actual": hashlib.sha256(NOTES).hexdigest()}


def test_fifty_racers_with_one_key_make_one_source(daemon: Daemon) -> None:
    files = {"file": ("notes.md", NOTES)}
    headers = {"Idempotency-Key": "race"}
    racer = daemon.asking("POST", "/v1/buckets/inbox/files", headers=headers, files=files)
    answers = daemon.ask_together(*[racer] * 50)
    created = [answer for answer in answers if answer.status_code == 201]
    assert len(created) == 1
    for answer in answers:
        if answer.status_code == 409:
            assert details_of(answer, "request_in_progress")["retry_after_seconds"] == 1
        elif answer.status_code == 200:
            assert answer.json()["id"] == created[0].json()["id"]
    assert body_of(daemon.upload(repeat_key="race"))["id"] == created[0].json()["id"]
    assert stored(daemon) == (1, 1, 1, 1, 1, 0)


def test_five_creates_a_second_and_then_no_more(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits())
    daemon.make_bucket()
    answers = daemon.ask_together(
        *[daemon.asking("POST", "/v1/buckets/inbox/files", files={"file": ("a.md", NOTES)})] * 12
    )
    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(refused) >= 5
    for answer in refused:
        details = details_of(answer, "upload_rate_limited")
        assert details["limit"] == 5
        assert 0 < details["retry_after_seconds"] <= 1
        assert answer.headers["Retry-After"] == "1"
    daemon.advance(1)
    body_of(daemon.upload(), 201)


def test_the_rate_is_of_the_team(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=1))
    daemon.make_bucket()
    theirs = daemon.add_team()
    daemon.make_bucket(key=theirs)
    body_of(daemon.upload(repeat_key="k1"), 201)
    details_of(daemon.upload(key=daemon.add_key()), "upload_rate_limited")
    body_of(daemon.upload(key=theirs), 201)
    assert body_of(daemon.upload(repeat_key="k1"))


def test_a_refusal_by_the_rate_leaves_the_key_free(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=1))
    daemon.make_bucket()
    body_of(daemon.upload(), 201)
    before = stored(daemon)
    details_of(daemon.upload(repeat_key="k1"), "upload_rate_limited")
    assert stored(daemon) == before
    daemon.advance(2)
    body_of(daemon.upload(b"other", repeat_key="k1"), 201)


def test_what_validation_refuses_takes_no_turn_and_no_bytes(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=1, bytes_per_minute=10))
    daemon.make_bucket()
    details_of(daemon.upload(b""), "empty_file")
    details_of(daemon.upload(b"0123456789", replaces="src_missing"), "source_not_found")
    body_of(daemon.upload(b"0123456789", dry_run="true"))
    body_of(daemon.upload(b"0123456789"), 201)


def test_the_quota_counts_bytes_of_a_minute_and_replays_none(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=0, bytes_per_minute=100))
    daemon.make_bucket()
    body_of(daemon.upload(b"x" * 60, repeat_key="k1"), 201)
    daemon.advance(20)
    for _ in range(3):
        body_of(daemon.upload(b"x" * 60, repeat_key="k1"))
    before = stored(daemon)
    answer = daemon.upload(b"y" * 41, repeat_key="k2")
    details = details_of(answer, "quota_exceeded")
    assert {name: details[name] for name in ("limit_bytes", "used_bytes", "requested_bytes", "window_seconds")} == {
        "limit_bytes": 100,
        "used_bytes": 60,
        "requested_bytes": 41,
        "window_seconds": 60,
    }
    assert 30 <= details["retry_after_seconds"] <= 40
    assert answer.headers["Retry-After"] == str(details["retry_after_seconds"])
    assert stored(daemon) == before
    body_of(daemon.upload(b"y" * 40, repeat_key="k2"), 201)
    daemon.advance(41)
    body_of(daemon.upload(b"z" * 60), 201)


def test_a_file_over_the_whole_quota_is_refused(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(bytes_per_minute=10))
    daemon.make_bucket()
    assert details_of(daemon.upload(b"x" * 11), "quota_exceeded")["retry_after_seconds"] == 60


def test_a_dry_run_validates_and_stores_nothing(daemon: Daemon) -> None:
    before = stored(daemon)
    for said in ("true", "1"):
        answer = body_of(daemon.upload(repeat_key="dry", title="T", dry_run=said))
        assert (answer["dry_run"], answer["valid"], answer["errors"]) == (True, True, [])
        wanted = answer["would_create"]
        assert (wanted["filename"], wanted["title"], wanted["size_bytes"]) == ("notes.md", "T", len(NOTES))
        assert wanted["bucket_ids"] == [wanted["bucket_id"]]
    in_query = daemon.ask("POST", "/v1/buckets/inbox/files?dry_run=true", files={"file": ("a.md", NOTES)})
    assert body_of(in_query)["valid"] is True
    assert stored(daemon) == before
    body_of(daemon.upload(b"other", repeat_key="dry"), 201)


def test_a_nearly_full_disk_takes_nothing_in_and_lets_deletes_work(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon()
    daemon.make_bucket()
    source_id = daemon.add_source()
    daemon.close()
    full = make_daemon(limits=Limits(creates_per_second=0, free_disk_bytes=2**62))
    before = stored(full)
    details_of(full.upload(repeat_key="k1"), "storage_full")
    assert stored(full) == before
    body_of(full.ask("DELETE", f"/v1/sources/{source_id}"))


def test_a_commit_that_fails_leaves_no_blob(daemon: Daemon) -> None:
    before = stored(daemon)
    refuse = "CREATE TRIGGER refuse BEFORE INSERT ON memberships BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"
    daemon.write(lambda connection: connection.execute(refuse))
    details_of(daemon.upload(repeat_key="k1"), "internal_error")
    assert stored(daemon) == before
    daemon.write(lambda connection: connection.execute("DROP TRIGGER refuse"))
    body_of(daemon.upload(repeat_key="k1"), 201)
