"""Sources over the API: show, verify, describe, delete, retry, bytes and text, and memberships."""

import re
from typing import Any

import pytest

from svc_daemon.core.access import api_keys
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.wire.sources import SourceAnswer, SourceText, SourceVerified
from tests.acceptance.installations import wait_until
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import NOTES, Daemon
from tests.api.holds import PATIENCE_S

BROKEN = ProviderFailed("The engine is on fire.", retryable=True)
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
PATHS = ("/v1/sources/{}", "/v1/knowledge/files/{}")


def verify(daemon: Daemon, source_id: str) -> Any:
    return body_of(daemon.ask("GET", f"/v1/sources/{source_id}?verify=provider"))["provider"]


def attach(daemon: Daemon, bucket: str, source_id: str, key: str | None = None) -> Any:
    return daemon.ask("POST", f"/v1/buckets/{bucket}/sources", key=key, json={"source_id": source_id})


def revision(daemon: Daemon, bucket: str = "inbox") -> int:
    return int(body_of(daemon.ask("GET", f"/v1/buckets/{bucket}"))["revision"])


def test_a_ready_source_tells_what_was_read(working: Daemon) -> None:
    source_id = working.add_ready()
    shown = [body_of(working.ask("GET", path.format(source_id))) for path in PATHS]
    source = shown[0]
    assert {**shown[1], "request_id": source["request_id"]} == source
    assert SourceAnswer.model_validate(source, extra="forbid")
    assert (source["status"], source["ready"], source["bucket_sync_status"]) == ("active", True, "active")
    assert source["extraction"] == {
        "characters": source["extraction"]["characters"],
        "pages": None,
        "pages_without_text": [],
        "chunks": 1,
        "language": None,
    }
    assert source["task"]["status"] == "succeeded"
    assert all(TIMESTAMP.fullmatch(source[name]) for name in ("created_at", "updated_at"))


def test_verify_reads_the_index_and_not_the_row(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    assert verify(daemon, source_id) == {"state": "STATE_PENDING", "document_id": None}
    daemon.start("indexing", "syncing")
    daemon.wait_ready(source_id)
    there = verify(daemon, source_id)
    assert (there["state"], bool(there["document_id"])) == ("STATE_ACTIVE", True)
    daemon.provider.delete_document(daemon.team_id, source_id)
    assert daemon.source(source_id)["ready"] is True
    assert verify(daemon, source_id) == {"state": "STATE_PENDING", "document_id": None}


def test_verify_tells_a_failure(working: Daemon) -> None:
    source_id = working.add_source(b" \n", filename="blank.txt")
    working.wait_status(source_id, "failed")
    assert verify(working, source_id) == {"state": "STATE_FAILED", "document_id": None}
    answer = working.ask("GET", f"/v1/knowledge/files/{source_id}?verify=provider")
    assert SourceVerified.model_validate(body_of(answer), extra="forbid")


def test_verify_takes_only_provider(shared: Daemon) -> None:
    source_id = shared.add_source()
    for value in ("", "state", "Provider"):
        assert refused_field(shared.ask("GET", f"/v1/sources/{source_id}", params={"verify": value})) == "verify"


CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/v1/sources/{}", {}),
    ("GET", "/v1/sources/{}?verify=provider", {}),
    ("GET", "/v1/knowledge/files/{}", {}),
    ("PATCH", "/v1/sources/{}", {"json": {"title": "x"}}),
    ("DELETE", "/v1/sources/{}", {}),
    ("POST", "/v1/sources/{}/retry", {}),
    ("GET", "/v1/sources/{}/content", {}),
    ("GET", "/v1/sources/{}/text", {}),
    ("DELETE", "/v1/buckets/inbox/sources/{}", {}),
]


def test_another_teams_source_is_as_if_missing(shared: Daemon) -> None:
    for method, path, options in CALLS:
        theirs = shared.add_team()
        shared.make_bucket(key=theirs)
        foreign_id = shared.add_source(key=theirs)
        missing_id = f"{foreign_id[:-6]}zzzzzz"
        told = []
        for source_id in (foreign_id, missing_id):
            answer = shared.ask(method, path.format(source_id), **options)
            details_of(answer, "source_not_found")
            told.append(re.sub(r"req_\w+", "req", answer.text).replace(source_id, "ID"))
        assert told[0] == told[1]
        assert shared.source(foreign_id, key=theirs)


def test_a_limited_key_sees_the_sources_of_its_buckets_alone(shared: Daemon) -> None:
    for method, path, options in CALLS:
        limited = shared.add_key(buckets=(shared.make_bucket("mine"),))
        source_id = shared.add_source()
        target = path.replace("inbox", "mine").format(source_id)
        details_of(shared.ask(method, target, key=limited, **options), "source_not_found")
        assert shared.source(source_id)


def test_a_limited_key_may_not_fetch_a_source_into_its_bucket(shared: Daemon) -> None:
    limited = shared.add_key(buckets=(shared.make_bucket("mine"),))
    before = shared.members("mine", status="all")
    source_id = shared.add_source()
    details_of(attach(shared, "mine", source_id, limited), "source_not_found")
    assert shared.members("mine", status="all") == before


def test_a_limited_key_may_not_delete_from_buckets_it_does_not_reach(shared: Daemon) -> None:
    limited = shared.add_key(buckets=(shared.make_bucket("mine"),))
    source_id = shared.add_source()
    body_of(attach(shared, "mine", source_id))
    answer = shared.ask("DELETE", f"/v1/sources/{source_id}", key=limited)
    details_of(answer, "forbidden_project_key")
    assert len(shared.source(source_id)["bucket_ids"]) == 2
    body_of(shared.ask("DELETE", f"/v1/buckets/mine/sources/{source_id}", key=limited))


def test_a_limited_key_may_not_change_what_buckets_it_does_not_reach_show(shared: Daemon) -> None:
    limited = shared.add_key(buckets=(shared.make_bucket("mine"),))
    source_id = shared.add_source()
    body_of(attach(shared, "mine", source_id))
    before = shared.source(source_id)
    for method, path, body in (("PATCH", "", {"title": "mine"}), ("PATCH", "", {}), ("POST", "/refresh", {})):
        answer = shared.ask(method, f"/v1/sources/{source_id}{path}", key=limited, json=body)
        assert details_of(answer, "forbidden_project_key") == {"required_capability": api_keys.FILE_CREATE}
    assert {**shared.source(source_id), "request_id": ""} == {**before, "request_id": ""}
    body_of(shared.ask("DELETE", f"/v1/buckets/inbox/sources/{source_id}"))
    answer = shared.ask("PATCH", f"/v1/sources/{source_id}", key=limited, json={"title": "mine"})
    assert body_of(answer)["title"] == "mine"


NEEDED = [
    ("PATCH", "/v1/sources/{}", api_keys.FILE_CREATE),
    ("DELETE", "/v1/sources/{}", api_keys.SOURCE_DELETE),
    ("POST", "/v1/sources/{}/retry", api_keys.FILE_CREATE),
    ("GET", "/v1/sources/{}/content", api_keys.READ),
    ("GET", "/v1/sources/{}/text", api_keys.READ),
    ("POST", "/v1/buckets/inbox/sources", api_keys.FILE_CREATE),
    ("DELETE", "/v1/buckets/inbox/sources/{}", api_keys.SOURCE_DELETE),
]


def test_a_patch_changes_what_it_names(daemon: Daemon) -> None:
    source_id = daemon.add_source(tags="a", metadata='{"n": 1}')
    before, moved = daemon.source(source_id), revision(daemon)
    daemon.advance(1)
    change = {"title": "New", "filename": "dir/new.md", "tags": ["b", "b", "c"], "metadata": {"n": [1]}}
    after = body_of(daemon.ask("PATCH", f"/v1/sources/{source_id}", json=change))
    changed = {**change, "filename": "new.md", "tags": ["b", "c"]}
    same = {**before, **changed, "updated_at": after["updated_at"], "request_id": after["request_id"]}
    assert after == same
    assert after["updated_at"] > before["updated_at"]
    assert revision(daemon) > moved
    assert {**daemon.source(source_id), "request_id": ""} == {**after, "request_id": ""}


@pytest.mark.parametrize("change", [{}, {"title": None, "tags": None, "metadata": None}, {"colour": "red"}])
def test_a_patch_without_fields_changes_nothing(daemon: Daemon, change: dict[str, Any]) -> None:
    source_id = daemon.add_source(tags="a")
    before, stayed = daemon.source(source_id), revision(daemon)
    daemon.advance(1)
    after = body_of(daemon.ask("PATCH", f"/v1/sources/{source_id}", json=change))
    assert {**after, "request_id": ""} == {**before, "request_id": ""}
    assert revision(daemon) == stayed


BAD_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"title": ""}, "invalid_request"),
    ({"title": "a\nb"}, "invalid_request"),
    ({"title": 7}, "invalid_request"),
    ({"filename": ".."}, "invalid_request"),
    ({"filename": ""}, "invalid_request"),
    ({"tags": "a,b"}, "invalid_request"),
    ({"tags": [""]}, "invalid_request"),
    ({"tags": ["t" * 65]}, "invalid_request"),
    ({"tags": [str(number) for number in range(21)]}, "too_many_tags"),
    ({"metadata": [1]}, "invalid_request"),
    ({"metadata": {"k": "v" * 8192}}, "metadata_too_large"),
    ({"team_id": "team_x"}, "invalid_request"),
]


def test_a_patch_that_does_not_fit_changes_nothing(shared: Daemon) -> None:
    for change, code in BAD_CHANGES:
        source_id = shared.add_source()
        details_of(shared.ask("PATCH", f"/v1/sources/{source_id}", json={"title": "New", **change}), code)
        assert shared.source(source_id)["title"] == "notes.md"


def test_a_new_title_is_found_at_once(working: Daemon) -> None:
    source_id = working.add_ready()
    assert working.found("vermilion") == []
    body_of(working.ask("PATCH", f"/v1/sources/{source_id}", json={"title": "Vermilion harbours"}))
    assert working.found("vermilion") == [source_id]


def test_a_title_that_the_index_does_not_take_is_not_in_the_state_either(working: Daemon) -> None:
    source_id = working.add_ready()
    working.provider.fail("set_title", BROKEN)
    details_of(working.ask("PATCH", f"/v1/sources/{source_id}", json={"title": "New"}), "search_failed")
    assert working.source(source_id)["title"] == "notes.md"


def test_the_stored_bytes_come_back(daemon: Daemon) -> None:
    source_id = daemon.add_source(b"<script>1</script>", filename="päge.html")
    answer = daemon.ask("GET", f"/v1/sources/{source_id}/content")
    assert (answer.status_code, answer.content) == (200, b"<script>1</script>")
    assert answer.headers["Content-Type"].partition(";")[0] == "text/html"
    assert answer.headers["Content-Length"] == "18"
    assert answer.headers["Content-Disposition"] == "attachment; filename*=utf-8''p%C3%A4ge.html"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"] == "sandbox"
    assert answer.headers["X-Request-Id"].startswith("req_")


@pytest.mark.parametrize("asked", ["bytes=0-3", "bytes=9999-", "bytes=x", "lines=1-2", "bytes=0-1,4-5"])
def test_the_bytes_are_always_whole(daemon: Daemon, asked: str) -> None:
    source_id = daemon.add_source()
    answer = daemon.ask("GET", f"/v1/sources/{source_id}/content", headers={"Range": asked})
    assert (answer.status_code, answer.content) == (200, NOTES)


def test_bytes_that_went_away_meanwhile_are_not_found(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    (daemon.files.blobs / source_id).unlink()
    details_of(daemon.ask("GET", f"/v1/sources/{source_id}/content"), "source_not_found")


def test_the_text_comes_with_its_chunks_and_places(working: Daemon) -> None:
    source_id = working.add_source()
    working.stop()
    pending = working.add_source()
    details_of(working.ask("GET", f"/v1/sources/{pending}/text"), "bucket_store_indexing_pending")
    working.start()
    working.wait_ready(source_id)
    told = body_of(working.ask("GET", f"/v1/sources/{source_id}/text"))
    assert SourceText.model_validate(told, extra="forbid")
    (chunk,) = told["chunks"]
    place = chunk["location"]
    assert told["text"][place["char_start"] : place["char_end"]] == chunk["text"]
    assert "The umber quay was built of grey stone." in chunk["text"]
    assert (place["headings"], place["line_end"]) == (["Notes"], 3)


def test_a_source_without_text_has_none_to_show(working: Daemon) -> None:
    source_id = working.add_source(b" \n", filename="blank.txt")
    working.wait_status(source_id, "failed")
    details_of(working.ask("GET", f"/v1/sources/{source_id}/text"), "invalid_request")


def test_a_deleted_source_is_gone_at_once_and_its_traces_soon(working: Daemon) -> None:
    source_id = working.add_ready()
    moved = revision(working)
    told = body_of(working.ask("DELETE", f"/v1/sources/{source_id}?force=true"))
    assert {**told, "request_id": ""} == {
        "id": source_id,
        "object": "knowledge_file",
        "deleted": True,
        "request_id": "",
    }
    assert working.members(status="all") == []
    assert revision(working) > moved
    for method in ("GET", "DELETE"):
        assert details_of(working.ask(method, f"/v1/sources/{source_id}"), "source_not_found") == {}
    wait_until(lambda: working.count("tombstones") == 0, "the tombstone is gone", PATIENCE_S)
    assert not (working.files.blobs / source_id).exists()
    assert working.provider.get_document(working.team_id, source_id) is None


def test_a_deleted_source_is_not_found_by_the_next_search(working: Daemon) -> None:
    working.add_ready(b"Another quay.\n")
    source_id = working.add_ready()
    working.stop()
    assert source_id in working.found("quay")
    body_of(working.ask("DELETE", f"/v1/sources/{source_id}"))
    assert working.provider.get_document(working.team_id, source_id) is not None
    assert source_id not in working.found("quay")


def test_only_a_failed_source_is_retried(working: Daemon) -> None:
    failed = working.add_source(b" \n", filename="blank.txt")
    first = working.wait_status(failed, "failed")
    assert (first["error"]["code"], first["error"]["retryable"]) == ("no_extractable_text", False)
    working.stop()
    again = body_of(working.ask("POST", f"/v1/sources/{failed}/retry"))
    assert (again["status"], again["error"], again["task"]["status"]) == ("queued", None, "queued")
    assert again["task"]["id"] != first["task"]["id"]
    details_of(working.ask("POST", f"/v1/sources/{failed}/retry"), "invalid_request")
    working.start()
    working.wait_status(failed, "failed")
    ready = working.add_ready()
    details_of(working.ask("POST", f"/v1/sources/{ready}/retry"), "invalid_request")
