"""Questions to a daemon inside the test's process, at both doors, and what comes back as a stream."""

import json
from typing import Any

import httpx

from tests.api.answers import body_of
from tests.api.daemons import Daemon

Json = dict[str, Any]

RESPONSES, CHAT = "/v1/responses", "/v1/chat/completions"
DOORS = (RESPONSES, CHAT)

HANDBOOK = b"""# Handbook

## Vacation

Full-time employees get 30 days of vacation a year.
Part-time staff get 15 days of vacation.

Requests for vacation go to the manager.

## Garage

The garage opens at seven. It closes at ten.
"""


def question(door: str, asked: str, **body: Any) -> Json:
    """The body of a question at either door."""
    asking = {"input": asked} if door == RESPONSES else {"messages": [{"role": "user", "content": asked}]}
    return {"model": "svc-agent", **asking, **body}


def send(daemon: Daemon, door: str, asked: str, key: str | None = None, **body: Any) -> httpx.Response:
    return daemon.ask("POST", door, key=key, json=question(door, asked, **body))


def ask(daemon: Daemon, asked: str, door: str = RESPONSES, **body: Any) -> Json:
    """The whole answer."""
    return body_of(send(daemon, door, asked, **body))


def text_of(answer: Json) -> str:
    """The words of an answer of either door."""
    if "choices" in answer:
        return str(answer["choices"][0]["message"]["content"])
    return str(answer["output"][0]["content"][0]["text"])


def annotations_of(answer: Json) -> list[Json]:
    if "choices" in answer:
        return list(answer["choices"][0]["message"]["annotations"])
    return list(answer["output"][0]["content"][0]["annotations"])


def stream(daemon: Daemon, asked: str, door: str = RESPONSES, **body: Any) -> list[Json]:
    """The events of a streamed answer."""
    return events_of(send(daemon, door, asked, stream=True, **body))


def events_of(answer: httpx.Response) -> list[Json]:
    """What each event carries; the form of the stream is checked."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "text/event-stream"
    *events, rest = answer.text.split("\n\n")
    assert rest == ""
    if events[-1] == "data: [DONE]":
        events.pop()
    return [_event(event) for event in events]


def _event(event: str) -> Json:
    *named, data = event.split("\n")
    assert data.startswith("data: ")
    parsed = json.loads(data.removeprefix("data: "))
    # The Responses name each event, chat none.
    assert named == ([f"event: {parsed['type']}"] if "type" in parsed else [])
    return dict(parsed)


def without_ids(answer: Json) -> Json:
    """An answer less what two of them never have in common."""
    parsed = json.loads(json.dumps(answer))
    for name in ("id", "created_at", "completed_at", "created", "request_id"):
        parsed.pop(name, None)
    for message in parsed.get("output", []):
        message.pop("id")
    return dict(parsed)
