"""Limits of upload sessions: rate, quota, free space and expiry."""

import shutil
from typing import Any

import pytest

from svc_daemon.core.times import from_text
from tests.api.answers import body_of, details_of
from tests.api.daemons import NOTES, Daemon
from tests.api.fixtures import LimitDaemon
from tests.api.sessions import ask_session, finalize, open_session, put, put_part, session_path, state_of, stored_bytes


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
        # Each chunk resets the idle timeout, but never beyond the maximum lifetime.
        assert expires_in_s(daemon, session) == pytest.approx(idle_s, abs=idle_s * 0.2)
    assert (state_of(daemon, session)[0], state_of(daemon, other)[0]) == ("uploading", "expired")
    daemon.advance(idle_s * 0.6)
    put_part(daemon, session, NOTES, 3, 3)
    assert 0 < expires_in_s(daemon, session) <= idle_s * 0.6
    daemon.advance(idle_s * 0.6 + 0.1)
    details_of(put_part(daemon, session, NOTES, 4, 4), "session_expired")
