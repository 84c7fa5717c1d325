"""What a session costs, and what a dry run does not."""

import shutil
from typing import Any

import pytest

from svc_daemon.settings import Limits
from tests.api.answers import body_of, details_of
from tests.api.daemons import NOTES, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.sessions import (
    ask_session,
    finalize,
    open_session,
    put,
    put_part,
    state_of,
    stored_bytes,
)

SIZE = len(NOTES)


def test_bytes_are_charged_at_create_and_not_on_replay(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=0, bytes_per_minute=1000))
    daemon.make_bucket()
    data = b"x" * 600
    session = open_session(daemon, data, repeat_key="k")
    body_of(put(daemon, session, data))
    body_of(ask_session(daemon, data, repeat_key="k"))
    details = details_of(ask_session(daemon, data, repeat_key="other"), "quota_exceeded")
    assert (details["limit_bytes"], details["used_bytes"], details["requested_bytes"]) == (1000, 600, 600)
    body_of(finalize(daemon, session), 201)
    daemon.advance(61)
    body_of(ask_session(daemon, data, repeat_key="other"), 201)


def test_creates_are_counted_and_puts_are_not(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=2))
    daemon.make_bucket()
    sessions = [open_session(daemon, repeat_key=str(number)) for number in range(2)]
    answer = ask_session(daemon, repeat_key="late")
    assert details_of(answer, "upload_rate_limited")["retry_after_seconds"] > 0
    for _ in range(5):
        body_of(put(daemon, sessions[0], NOTES))
        body_of(ask_session(daemon, repeat_key="0"))
    body_of(finalize(daemon, sessions[0]), 201)
    daemon.advance(1)
    body_of(ask_session(daemon, repeat_key="late"), 201)


def test_a_nearly_full_disk_takes_no_more_of_what_was_promised(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session(daemon)
    put_part(daemon, session, NOTES, 0, 8)
    nearly_full = type("Usage", (), {"total": 10**12, "free": 10**6})
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: nearly_full)
        details_of(put(daemon, session, NOTES), "storage_full")
        assert state_of(daemon, session) == ("uploading", 9)
    body_of(put(daemon, session, NOTES))
    assert stored_bytes(daemon, body_of(finalize(daemon, session), 201)["id"]) == NOTES


@pytest.mark.parametrize("where", ["body", "query"])
def test_a_dry_run_stores_counts_and_claims_nothing(make_daemon: MakeDaemon, where: str) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=1, bytes_per_minute=SIZE))
    daemon.make_bucket()
    dry: dict[str, Any] = {"json": {"filename": "notes.md", "size_bytes": SIZE}, "headers": {"Idempotency-Key": "k"}}
    dry |= {"params": {"dry_run": "true"}} if where == "query" else {}
    dry["json"] |= {"dry_run": True} if where == "body" else {}
    for _ in range(3):
        told = body_of(daemon.ask("POST", "/v1/buckets/inbox/uploads", **dry))
        assert (told["dry_run"], told["valid"], told["errors"]) == (True, True, [])
        assert told["would_create"]["filename"] == "notes.md"
        assert "upload_url" not in told
    assert (daemon.count("uploads"), daemon.count("idempotency")) == (0, 0)
    dry["json"]["size_bytes"] = 0
    details_of(daemon.ask("POST", "/v1/buckets/inbox/uploads", **dry), "empty_file")
    open_session(daemon, repeat_key="k")


def test_nothing_is_promised_on_a_full_disk(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=0, free_disk_bytes=10**15))
    daemon.make_bucket()
    details_of(ask_session(daemon), "storage_full")
    assert daemon.count("uploads") == 0
