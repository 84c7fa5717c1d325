"""Tests Content-Range and the state of a session; tests/api/test_storage.py tests each PUT in each state."""

import pytest

from svc_daemon.core.uploads import sessions
from svc_daemon.core.uploads.sessions import ContentRange
from tests.core.refusals import refusal

SIZE = 1000
ASKING = ContentRange(None, None, SIZE)


def test_a_content_range_is_parsed() -> None:
    for text, expected in [
        *((None, None), ("bytes */1000", ASKING), ("bytes */*", ContentRange(None, None, None))),
        *(("bytes 0-99/1000", ContentRange(0, 99, 1000)), ("bytes 0-99/*", ContentRange(0, 99, None))),
        (" bytes 5-5/6 ", ContentRange(5, 5, 6)),
    ]:
        assert sessions.parse_range(text) == expected, text
    not_read = """|bytes|bytes 0-99|bytes 99-0/1000|bytes 0-1000/1000|items 0-1/2|bytes -5/10|bytes 0-9/ten|
        bytes 0-9/1000, bytes 20-29/1000|bytes 9999999999999999-0/1|bytes 0-\u0669/1000"""
    for text in not_read.split("|"):
        assert refusal(sessions.parse_range, text).code == "invalid_request", text


@pytest.mark.parametrize(
    ("stored", "received", "state", "state_when_expired"),
    [
        *(("open", 0, "pending", "expired"), ("open", 1, "uploading", "expired")),
        *(("open", 999, "uploading", "expired"), ("open", 1000, "uploaded", "expired")),
        *(("finalized", 0, "finalized", "finalized"), ("canceled", 500, "canceled", "canceled")),
    ],
)
def test_the_state_follows_from_stored_status_and_received_bytes(
    stored: str, received: int, state: str, state_when_expired: str
) -> None:
    assert sessions.state_of(stored, received, SIZE, is_expired=False) == state
    assert sessions.state_of(stored, received, SIZE, is_expired=True) == state_when_expired
