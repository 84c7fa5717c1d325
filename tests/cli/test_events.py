"""`svc events --follow` when the service is temporarily unreachable or has dropped old events."""

import json
from typing import Any
from urllib.parse import parse_qs

import pytest

from svc_cli.client import RetryPolicy
from svc_cli.commands.nouns import events
from tests.cli.consoles import RunSvc
from tests.cli.odd_servers import OddServer


def streamed(*ids: str) -> tuple[int, bytes, dict[str, str]]:
    """Return an answer that streams these events and then ends."""
    rows = [{"id": each, "type": "source.ready", "created_at": "2026-01-01T12:00:00.000Z", "data": {}} for each in ids]
    lines = "".join(f"id: {row['id']}\ndata: {json.dumps(row)}\n\n" for row in rows)
    return 200, lines.encode(), {"Content-Type": "text/event-stream"}


@pytest.mark.rule("log.follow")
def test_follow_resumes_after_the_last_event_and_warns_if_it_has_expired(
    svc: RunSvc, odd: OddServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "RETURN_PAUSE_S", 0.0)
    monkeypatch.setattr(RetryPolicy, "delay_s", lambda _, attempt, __=None: 0.0 if attempt < 2 else None)
    monkeypatch.setenv("SVC_API_KEY", "sk-mine")
    odd.answer_health()
    asked: list[str] = []
    expired, refused = (
        (status, {"error": {"code": code, "message": "no"}}, dict[str, str]())
        for status, code in ((410, "events_expired"), (401, "invalid_project_key"))
    )
    away = [None, None]
    # The first stream breaks before its first line.
    answers: list[Any] = [streamed(), *away, streamed("evt_1"), *away, expired, streamed("evt_2"), refused]

    def answer(query: str) -> Any:
        resumed = odd.requests[-1][2].get("Last-Event-ID")
        asked.append(resumed or parse_qs(query)["after"][0])
        return answers[len(asked) - 1]

    odd.answers["GET /v1/events"] = answer
    ended = svc("events", "--follow", "--after", "evt_0", "--ndjson", "--base-url", odd.url)
    assert asked == [*["evt_0"] * 4, *["evt_1"] * 3, "latest", "evt_2"]
    *shown, failure = map(json.loads, ended.stdout.splitlines())
    assert [each["id"] for each in shown] == ["evt_1", "evt_2"]
    assert ended.exit == 4
    assert failure["error"]["code"] == "invalid_project_key"
    assert [ended.stderr.count(words) for words in ("the service is away", "may be missing")] == [2, 1]
