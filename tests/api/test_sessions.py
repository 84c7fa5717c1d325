"""Upload sessions over HTTP: creating, finalizing, expiry, replays, and limits."""

import shutil
from typing import Any

import pytest

from svc_daemon.core.times import from_text
from svc_daemon.process import locks
from tests.acceptance.installations import PATIENCE_S
from tests.api.answers import body_of, details_of, refused_field, without_id
from tests.api.daemons import NOTES, Daemon
from tests.api.fixtures import LimitDaemon
from tests.api.sessions import (
    ask_session,
    finalize,
    open_session,
    put,
    put_part,
    session_body,
    session_path,
    sha256_of,
    state_of,
    stored_bytes,
    wait_swept,
)

SIZE = len(NOTES)
CREATE = "/v1/buckets/inbox/uploads"


def parts(daemon: Daemon) -> set[str]:
    return set(daemon.part_ids())


def open_uploaded(daemon: Daemon, data: bytes = NOTES, **fields: Any) -> dict[str, Any]:
    """Open a session, upload its bytes, and return the session."""
    session = open_session(daemon, data, **fields)
    body_of(put(daemon, session, data))
    return session


def archive(daemon: Daemon, status: str = "archived") -> None:
    body_of(daemon.ask("PATCH", "/v1/buckets/inbox", json={"status": status}))


@pytest.mark.rule("session.fields", "upload.create")
def test_create_response_has_the_upload_strategy_url_and_headers(shared: Daemon) -> None:
    answer = ask_session(shared, content_type="text/markdown", title="Notes", tags=["a"], metadata={"n": 1})
    session = body_of(answer, 201)
    assert (session["upload_strategy"], session["status"]) == ("storage_resumable", "pending")
    assert (session["session_id"][:4], session["expires_at"][-1]) == ("upl_", "Z")
    assert session["upload_url"].startswith("http://127.0.0.1/v1/storage/")
    assert (answer.headers["Location"], answer.headers["Cache-Control"]) == (session["upload_url"], "no-store")


@pytest.mark.rule("service.sources", "service.session", "source.object", "upload.finalize")
def test_finalized_session_creates_a_source_that_becomes_ready(working: Daemon) -> None:
    fields: dict[str, Any] = {"title": "Quay", "tags": ["stone", "grey"], "metadata": {"shelf": 3}}
    fields |= {"sha256": sha256_of(NOTES)}
    session = open_session(working, **fields)
    body_of(put(working, session, NOTES, Content_Type="text/markdown"))
    source = body_of(finalize(working, session, json={}), 201)
    state = {"object": "knowledge_file", "status": "queued", "ready": False, "size_bytes": SIZE}
    expected = fields | state | {"filename": "notes.md", "content_type": "text/markdown"}
    assert {name: source[name] for name in expected} == expected
    assert source["task"]["type"] == "provider_file_search_indexing"
    working.wait_ready(source["id"])
    assert working.found("umber quay") == [source["id"]]
    assert (stored_bytes(working, source["id"]), parts(working)) == (NOTES, set())
    shown = working.show(session_path(session))
    assert (shown["status"], shown["source_id"], shown["received_bytes"]) == ("finalized", source["id"], SIZE)


def test_finalize_is_replayed_and_a_finalized_session_cannot_be_canceled(daemon: Daemon) -> None:
    session = open_uploaded(daemon)
    first = finalize(daemon, session)
    source_id = body_of(first, 201)["id"]
    assert "Idempotent-Replayed" not in first.headers
    again = finalize(daemon, session, json={})
    assert (body_of(again)["id"], again.headers["Idempotent-Replayed"]) == (source_id, "true")
    assert body_of(daemon.ask("DELETE", session_path(session)))["status"] == "finalized"
    daemon.advance(90_000)
    assert body_of(finalize(daemon, session))["id"] == source_id
    assert (daemon.count("sources"), stored_bytes(daemon, source_id)) == (1, NOTES)


@pytest.mark.parametrize("how", ["deleted", "replaced", "deleted with another bucket"])
def test_finalize_is_replayed_after_the_source_is_gone(working: Daemon, how: str) -> None:
    session = open_uploaded(working, tags=["stone"], metadata={"n": 1}, mapping="docs", content_type="text/plain")
    made = without_id(body_of(finalize(working, session), 201))
    working.wait_ready(made["id"])
    if how == "deleted":
        working.delete(f"/v1/sources/{made['id']}")
    elif how == "replaced":
        working.add_ready(b"New.\n", replaces=made["id"])
    else:
        working.make_bucket("second")
        working.post("/v1/buckets/second/sources", json={"source_id": made["id"]})
        working.delete(f"/v1/buckets/inbox/sources/{made['id']}")
        working.delete("/v1/buckets/second", force="true")
        working.wait(lambda: working.count("sources") == 0, "the source is deleted with the bucket")
    details_of(working.ask("GET", f"/v1/sources/{made['id']}"), "source_not_found")
    again = finalize(working, session)
    assert (without_id(body_of(again)), again.headers["Idempotent-Replayed"]) == (made, "true")
    for answer in (put(working, session, content_range=f"bytes */{len(NOTES)}"), put(working, session, NOTES)):
        assert (body_of(answer)["status"], answer.json()["sha256"]) == ("finalized", made["sha256"])
    assert body_of(finalize(working, session, json={"dry_run": True}))["would_create"] is None
    assert state_of(working, session) == ("finalized", len(NOTES))


@pytest.mark.parametrize("wait_s", [0.0, PATIENCE_S])
def test_concurrent_finalize_requests_create_one_source(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, wait_s: float
) -> None:
    """A request that times out waiting for the others gets a 409 response, and its retry gets the same source."""
    monkeypatch.setattr(locks, "TAKEOVER_S", wait_s)
    session = open_uploaded(daemon)
    ask = daemon.asking("POST", f"{session_path(session)}/finalize")
    answers = daemon.ask_together(*[ask] * 20)
    late = [answer for answer in answers if answer.status_code == 409]
    assert all(details_of(answer, "request_in_progress")["retry_after_seconds"] for answer in late)
    assert bool(late) is (wait_s == 0)
    answers = [answer for answer in answers if answer not in late] + [finalize(daemon, session) for _ in late]
    assert sorted(answer.status_code for answer in answers) == [200] * 19 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert (daemon.count("sources"), len(daemon.blob_names())) == (1, 1)


@pytest.mark.rule("session.url")
def test_expired_session_cannot_be_used_and_its_bytes_are_removed(daemon: Daemon) -> None:
    session = open_uploaded(daemon)
    daemon.advance(3700)
    details_of(finalize(daemon, session), "session_expired")
    assert state_of(daemon, session)[0] == "expired"
    wait_swept(daemon, lambda: parts(daemon) == set(), "the expired bytes are removed")
    details_of(finalize(daemon, session), "session_expired")
    details_of(put(daemon, session, NOTES), "session_expired")


@pytest.mark.rule("error.archived")
def test_session_in_an_archived_bucket_can_be_finalized_once_the_bucket_is_active(daemon: Daemon) -> None:
    session = open_uploaded(daemon)
    archive(daemon)
    details_of(ask_session(daemon), "bucket_not_found")
    details_of(finalize(daemon, session), "bucket_not_found")
    assert state_of(daemon, session)[0] == "uploaded"
    archive(daemon, "active")
    body_of(finalize(daemon, session), 201)


@pytest.mark.rule("service.session-size", "rule1.too-large", "limit.file")
def test_create_refuses_what_cannot_be_stored_and_leaves_its_idempotency_key_unused(daemon: Daemon) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"size_bytes": 0}, "empty_file"),
        ({"size_bytes": 26_214_401}, "file_too_large"),
        ({"metadata": {"x": "y" * 8192}}, "metadata_too_large"),
        ({"tags": [str(number) for number in range(21)]}, "too_many_tags"),
        ({"replaces": "src_missing"}, "source_not_found"),
    ]
    for fields, code in cases:
        details = details_of(ask_session(daemon, repeat_key="k", **fields), code)
        assert code != "file_too_large" or details["max_bytes"] == 26_214_400
    assert (daemon.count("uploads"), daemon.count("idempotency")) == (0, 0)
    body_of(ask_session(daemon, repeat_key="k", size_bytes=26_214_400), 201)


#: Invalid values by the field that the refusal names.
NOT_VALID: dict[str, list[Any]] = {
    "filename": [None, "", "a/../b", "a\u202eb", "docs/"],
    "size_bytes": [None, -1, "12", 1.5, True],
    "tags": ["a,b", [""], ["x" * 65]],
    "mapping": ["a\nb", "x" * 1025],
    "webhook": [{"url": "http://x.example"}, ""],
}
NOT_VALID |= {"title": [" "], "metadata": [[]], "sha256": ["abc"], "team_id": ["team_x"], "dry_run": ["yes"]}


@pytest.mark.rule("webhook.urls", "upload.create", "event.uploads")
@pytest.mark.parametrize(("name", "values"), NOT_VALID.items())
def test_refusal_names_the_invalid_field(shared: Daemon, name: str, values: list[Any]) -> None:
    for value in values:
        assert refused_field(ask_session(shared, **{name: value})) == name, value


def test_session_that_replaced_a_source_is_replayed_after_the_source_is_gone(working: Daemon) -> None:
    old = working.add_ready()
    session = open_uploaded(working, replaces=old, repeat_key="k")
    new = body_of(finalize(working, session), 201)["id"]
    working.wait_ready(new)
    assert details_of(working.ask("GET", f"/v1/sources/{old}"), "source_not_found") == {"replaced_by": new}
    again = body_of(ask_session(working, replaces=old, repeat_key="k"))
    assert (again["session_id"], again["status"]) == (session["session_id"], "finalized")
    for dry_run in (None, True):
        details_of(ask_session(working, replaces=old, repeat_key="other", dry_run=dry_run), "source_not_found")
    assert body_of(ask_session(working, replaces=old, repeat_key="k", dry_run=True))["would_create"] is None


@pytest.mark.rule("session.url", "rule4.replay")
def test_replay_returns_the_session_and_renews_it_if_it_has_expired(daemon: Daemon) -> None:
    first = open_session(daemon, repeat_key="k")
    put_part(daemon, first, NOTES, 0, 9)
    answer = ask_session(daemon, repeat_key="k")
    again = body_of(answer)
    assert (answer.headers["Idempotent-Replayed"], answer.headers["Location"]) == ("true", first["upload_url"])
    names = ("session_id", "upload_url", "status")
    assert [again[name] for name in names] == [first["session_id"], first["upload_url"], "uploading"]
    daemon.advance(3700)
    revived = body_of(ask_session(daemon, repeat_key="k"))
    assert (revived["session_id"], revived["upload_url"] != first["upload_url"]) == (first["session_id"], True)
    assert revived["expires_at"] > first["expires_at"]
    details_of(put(daemon, first, NOTES), "session_not_found")
    body_of(put(daemon, revived, NOTES))
    body_of(finalize(daemon, revived), 201)
    assert daemon.count("uploads") == 1


def test_replay_of_a_swept_session_starts_without_bytes(daemon: Daemon) -> None:
    open_session(daemon, repeat_key="k")
    daemon.advance(3700)
    wait_swept(daemon, lambda: daemon.count("uploads WHERE status = 'expired'") == 1, "the session is swept")
    again = body_of(ask_session(daemon, repeat_key="k"))
    assert again["status"] == "pending"
    body_of(put(daemon, again, NOTES))
    body_of(finalize(daemon, again), 201)


def test_two_idempotency_keys_are_refused(shared: Daemon) -> None:
    two = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    details_of(shared.ask("POST", CREATE, headers=two, json=session_body()), "invalid_idempotency_key")


@pytest.mark.rule("rule6.replay-free")
def test_session_counts_towards_rate_and_quota_only_when_it_is_created(limited: LimitDaemon) -> None:
    daemon, data = limited(creates_per_second=1, bytes_per_minute=1000), b"x" * 600
    session = open_session(daemon, data, repeat_key="k")
    assert details_of(ask_session(daemon, repeat_key="late"), "upload_rate_limited")["retry_after_seconds"] > 0
    for _ in range(3):
        body_of(put(daemon, session, data))
        body_of(ask_session(daemon, data, repeat_key="k"))
    body_of(finalize(daemon, session), 201)
    daemon.advance(1)
    details = details_of(ask_session(daemon, data, repeat_key="other"), "quota_exceeded")
    assert [details[f"{name}_bytes"] for name in ("limit", "used", "requested")] == [1000, 600, 600]
    daemon.advance(61)
    body_of(ask_session(daemon, data, repeat_key="other"), 201)


@pytest.mark.folders
def test_put_to_an_open_session_is_refused_while_the_disk_is_nearly_full(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(daemon)
    put_part(daemon, session, NOTES, 0, 8)
    nearly_full = type("Usage", (), {"total": 10**12, "free": 10**6})
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: nearly_full)
        details_of(put(daemon, session, NOTES), "storage_full")
        assert state_of(daemon, session) == ("uploading", 9)
    body_of(put(daemon, session, NOTES))
    assert stored_bytes(daemon, body_of(finalize(daemon, session), 201)["id"]) == NOTES


def expires_in_s(daemon: Daemon, session: dict[str, Any]) -> float:
    end = from_text(daemon.show(session_path(session))["expires_at"])
    return (end - daemon.context.clock.now()).total_seconds()


@pytest.mark.parametrize("idle_s", [30, 7200])
def test_session_expires_after_its_idle_time_and_at_its_maximum_lifetime(limited: LimitDaemon, idle_s: int) -> None:
    daemon = limited(session_idle_seconds=idle_s, session_seconds=3 * idle_s)
    session, other = open_session(daemon), open_session(daemon)
    assert idle_s * 0.8 < expires_in_s(daemon, session) <= idle_s
    for offset in range(3):
        daemon.advance(idle_s * 0.6)
        put_part(daemon, session, NOTES, offset, offset)
        put(daemon, other, content_range="bytes */*")
        # Each chunk resets the idle timeout, but never beyond the maximum lifetime, and a question does not.
        assert expires_in_s(daemon, session) == pytest.approx(idle_s, abs=idle_s * 0.2)
    assert (state_of(daemon, session)[0], state_of(daemon, other)[0]) == ("uploading", "expired")
    details_of(put(daemon, other, content_range="bytes */*"), "session_expired")
    daemon.advance(idle_s * 0.6)
    put_part(daemon, session, NOTES, 3, 3)
    assert 0 < expires_in_s(daemon, session) <= idle_s * 0.6
    daemon.advance(idle_s * 0.6 + 0.1)
    details_of(put_part(daemon, session, NOTES, 4, 4), "session_expired")
