"""Names and descriptions that people read: at each door the same characters are refused."""

from typing import Any

import httpx
import pytest

from tests.api.answers import body_of
from tests.api.daemons import NOTES, Daemon
from tests.api.sessions import batch_body, finalize, finalize_batch, put
from tests.api.sites import Site

INBOX = "/v1/buckets/inbox"
SESSION = {"filename": "notes.md", "size_bytes": len(NOTES)}
LINK = {"url": "http://site.example/notes.md"}
#: The routes that take names, each with a body that needs nothing else, and the names that it takes.
DOORS: dict[str, tuple[dict[str, Any], str]] = {
    "POST /v1/buckets": ({"slug": "never"}, "name"),
    "PUT /v1/buckets/never": ({}, "name"),
    f"PATCH {INBOX}": ({}, "name"),
    "POST /v1/agents": ({}, "name bound_surface"),
    "PUT /v1/agents/default": ({}, "name bound_surface"),
    "POST /v1/keys": ({"preset": "read"}, "name"),
    "POST /admin/teams": ({}, "name"),
    "POST /admin/keys": ({"team": "default", "preset": "read"}, "name"),
    f"POST {INBOX}/uploads": (SESSION, "title mapping tags"),
    f"POST {INBOX}/batches": (batch_body([("a", NOTES), ("b", NOTES)]), "title mapping tags"),
    f"POST {INBOX}/files": ({}, "title mapping tags"),
    f"POST {INBOX}/files/import": (LINK, "title mapping tags"),
    f"POST {INBOX}/pages": (LINK, "title mapping tags"),
    f"POST {INBOX}/qa": ({"question": "Why?", "answer": "So."}, "tags"),
    "PATCH /v1/sources/{source}": ({}, "title tags"),
    "POST /v1/knowledge/files/upload-session": ({**SESSION, "bucket": "inbox"}, "title mapping tags"),
    "POST /v1/knowledge/websites": ({**LINK, "bucket": "inbox"}, "title mapping tags"),
}
#: The same for texts of several lines.
TEXTS: dict[str, tuple[dict[str, Any], str]] = {
    "POST /v1/buckets": ({"slug": "never"}, "description"),
    "PUT /v1/buckets/never": ({}, "description"),
    f"PATCH {INBOX}": ({}, "description"),
    "POST /v1/agents": ({}, "role instructions"),
    "PUT /v1/agents/default": ({}, "role instructions"),
}
ODD = (
    "\x07",
    "\x1b[2J",
    "\x7f",
    "\x85",
    "\x9b31m",
    "\u061c",
    "\u200e",
    "\u202e",
    "\u2066",
    "\u2028",
    "\u200b",
    "\n",
    "\r",
)
ODD_IN_TEXTS = ("\x07", "\x1b[2J", "\x7f", "\x85", "\x9b31m", "\u202e", "\u2066", "\u2028", "a\rb")


def _fields(doors: dict[str, tuple[dict[str, Any], str]]) -> list[tuple[str, str]]:
    return [(door, field) for door, (_, fields) in doors.items() for field in fields.split()]


@pytest.fixture(scope="module")
def source(shared: Daemon) -> str:
    return shared.add_source()


def _send(daemon: Daemon, source: str, door: str, body: dict[str, Any], field: str, text: str) -> httpx.Response:
    method, path = door.replace("{source}", source).split()
    if path.endswith("/files"):
        file = ("notes.md", NOTES, "text/markdown")
        return daemon.ask(method, path, data={field: text}, files={"file": file})
    value = {field: [text] if field == "tags" else text}
    if path.endswith("/batches"):
        right, item = body["manifest"]["items"]
        body = {**body, "manifest": {**body["manifest"], "items": [right, {**item, **value}]}}
        value = {}
    key = daemon.operator_token if path.startswith("/admin") else None
    return daemon.ask(method, path, key=key, json={**body, **value})


def _refused_fields(answer: httpx.Response) -> list[str]:
    """Return the fields that a refusal names, without the path to them."""
    document = answer.json()
    errors = [item["error"] for item in document["rejected"]] if "rejected" in document else [document["error"]]
    assert {error["code"] for error in errors} <= {"invalid_request", "invalid_agent_profile"}, answer.text
    return [fault["path"].split(".")[-1] for error in errors for fault in error["details"]["errors"]]


@pytest.mark.parametrize(("door", "field"), _fields(DOORS))
def test_name_with_a_control_or_invisible_character_is_refused(
    shared: Daemon, source: str, door: str, field: str
) -> None:
    for odd in ODD:
        answer = _send(shared, source, door, DOORS[door][0], field, f"a{odd}b")
        assert _refused_fields(answer) == [field], ascii(odd)


@pytest.mark.parametrize(
    ("door", "title"),
    [
        ("uploads", "notes.md"),
        ("batches", "b.md"),
        ("files", "notes.md"),
        ("files/import", "notes.md"),
        ("pages", "Quays & stones"),
        ("upload-session", "notes.md"),
        ("websites", "Quays & stones"),
        ("sources/{source}", "notes.md"),
    ],
)
def test_empty_title_means_what_no_title_means(daemon: Daemon, site: Site, door: str, title: str) -> None:
    path = next(path for path in DOORS if path.endswith(f"/{door}"))
    body = DOORS[path][0]
    body = body | {"url": site.url("/page" if title.startswith("Q") else "/notes.md")} if "url" in body else body
    made = _send(daemon, daemon.add_source(title="Old"), path, body, "title", "").json()
    if "items" in made:
        body_of(put(daemon, made["items"][1], NOTES))
        made = daemon.source(finalize_batch(daemon, made)["finalized"][0]["knowledge_id"])
    elif "session_id" in made:
        body_of(put(daemon, made, NOTES))
        made = body_of(finalize(daemon, made), 201)
    assert made["title"] == title


@pytest.mark.parametrize(("door", "field"), _fields(TEXTS))
def test_text_of_several_lines_takes_line_breaks_and_no_other_controls(
    shared: Daemon, source: str, door: str, field: str
) -> None:
    for odd in ODD_IN_TEXTS:
        answer = _send(shared, source, door, TEXTS[door][0], field, f"a{odd}b")
        assert _refused_fields(answer) == [field], ascii(odd)
    lines = "One line.\n\tAnother.\r\nسطر\u200f 👩\u200d💻"
    body = TEXTS[door][0] | ({"dry_run": True} if door.startswith(("POST", "PUT /v1/b")) else {})
    assert _send(shared, source, door, body, field, lines).status_code == 200


@pytest.mark.parametrize("name", ["Straße 7", "سطر", "👩\u200d💻", "a\u00a0b", "漢字"])
def test_name_in_any_script_is_taken(shared: Daemon, source: str, name: str) -> None:
    answer = shared.ask("PATCH", f"/v1/sources/{source}", json={"title": name})
    assert (answer.status_code, answer.json().get("title")) == (200, name), answer.text
