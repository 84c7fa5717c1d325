"""The legacy doors as a client speaks to them, and what their answers have in common."""

from typing import Any

import httpx

from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.sessions import batch_body, session_body

SESSION, BATCH = "/v1/knowledge/files/upload-session", "/v1/knowledge/files:batch/upload-session"
PAGE, BUCKETS = "/v1/knowledge/websites", "/v1/knowledge/buckets"
DOORS = (SESSION, BATCH, PAGE)
SUCCESSORS = {SESSION: "uploads", BATCH: "batches", PAGE: "pages"}
#: Nobody listens there: what is refused before the fetch must not need a server.
NOWHERE = "http://127.0.0.1:9/page"
A, B = ("a", b"The umber quay.\n"), ("b", b"The grey mole.\n")


def body_for(door: str, url: str = NOWHERE, **where: Any) -> dict[str, Any]:
    """A body that is right but for where it goes."""
    if door == BATCH:
        return batch_body([A, B], **where)
    return ({"url": url} if door == PAGE else session_body()) | where


def ask(
    daemon: Daemon, door: str, body: dict[str, Any], repeat_key: str | None = None, **options: Any
) -> httpx.Response:
    return daemon.ask("POST", door, json=body, repeat_key=repeat_key, **options)


def create(daemon: Daemon, door: str, body: dict[str, Any], repeat_key: str | None = None) -> dict[str, Any]:
    """The body of a create that works."""
    return body_of(ask(daemon, door, body, repeat_key), 201)


def replayed(daemon: Daemon, door: str, body: dict[str, Any], repeat_key: str | None = None) -> dict[str, Any]:
    """The body of a create that was made before."""
    answer = ask(daemon, door, body, repeat_key)
    assert answer.headers["Idempotent-Replayed"] == "true"
    return body_of(answer)


def successor_of(answer: httpx.Response) -> str:
    """Where the answer sends its client; every answer of a legacy door does."""
    assert answer.headers["Deprecation"] == "true"
    address, rel = answer.headers["Link"].split("; ")
    assert rel == 'rel="successor-version"'
    return address.strip("<>")


def failed_buckets(answer: httpx.Response) -> list[tuple[str, str, str]]:
    """Path, name and reason of every bucket that could not be assigned."""
    failed = details_of(answer, "bucket_assignment_failed")["buckets"]
    return [(each["path"], each["bucket"], each["reason"]) for each in failed]


def slugs(daemon: Daemon) -> list[str]:
    return sorted(bucket["slug"] for bucket in body_of(daemon.ask("GET", "/v1/buckets"))["buckets"])
