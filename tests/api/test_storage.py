"""The storage door: every kind of PUT in every state of a session, over HTTP."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from svc_daemon.errors import ERRORS
from svc_daemon.wire.codes import ErrorCode
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import Daemon
from tests.api.sessions import (
    finalize,
    open_session,
    part_told,
    path_of,
    put,
    put_part,
    session_path,
    sha256_of,
    state_of,
    stored_bytes,
)

DATA = b"The umber quay was built of grey stone.\n" * 25
SIZE = len(DATA)
HALF = SIZE // 2

Session = dict[str, Any]
Prepare = Callable[[Daemon], Session]


def pending(daemon: Daemon) -> Session:
    return open_session(daemon, DATA)


def uploading(daemon: Daemon) -> Session:
    session = pending(daemon)
    assert part_told(put_part(daemon, session, DATA, 0, HALF - 1)) == f"bytes=0-{HALF - 1}"
    return session


def uploaded(daemon: Daemon) -> Session:
    session = pending(daemon)
    body_of(put(daemon, session, DATA))
    return session


def finalized(daemon: Daemon) -> Session:
    session = uploaded(daemon)
    body_of(finalize(daemon, session), 201)
    return session


def canceled(daemon: Daemon) -> Session:
    session = uploading(daemon)
    body_of(daemon.ask("DELETE", session_path(session)))
    return session


STATES: dict[str, tuple[Prepare, int]] = {
    "pending": (pending, 0),
    "uploading": (uploading, HALF),
    "uploaded": (uploaded, SIZE),
    "finalized": (finalized, SIZE),
    "canceled": (canceled, 0),
}
#: A kind of PUT: its body and its Content-Range.
PUTS: dict[str, tuple[bytes, str | None]] = {
    "whole": (DATA, None),
    "question": (b"", f"bytes */{SIZE}"),
    "question without a total": (b"", "bytes */*"),
    "first": (DATA[:100], f"bytes 0-99/{SIZE}"),
    "overlap": (DATA[100 : HALF + 10], f"bytes 100-{HALF + 9}/{SIZE}"),
    "rest": (DATA[HALF:], f"bytes {HALF}-{SIZE - 1}/*"),
    "gap": (DATA[HALF + 1 :], f"bytes {HALF + 1}-{SIZE - 1}/{SIZE}"),
    "wrong total": (DATA[:100], f"bytes 0-99/{SIZE + 1}"),
    "wrong question": (b"", f"bytes */{SIZE + 1}"),
    "beyond the end": (DATA + b"x", f"bytes 0-{SIZE}/*"),
    "too long": (DATA[: HALF + 2], f"bytes 0-{HALF}/{SIZE}"),
    "too short": (DATA[: HALF + 1], f"bytes 0-{HALF + 10}/{SIZE}"),
    "empty": (b"", None),
    "short whole": (DATA[:-1], None),
    "long whole": (DATA + b"x", None),
}
#: What each answers by state: a number of stored bytes is a 308, `done` a 200, anything else the code of a refusal.
TABLE: dict[str, dict[str, int | str]] = {
    "whole": {"pending": "done", "uploading": "done"},
    "question": {"pending": 0, "uploading": HALF},
    "question without a total": {"pending": 0, "uploading": HALF},
    "first": {"pending": 100, "uploading": HALF},
    "overlap": {"pending": "offset_mismatch", "uploading": HALF + 10},
    "rest": {"pending": "offset_mismatch", "uploading": "done"},
    "gap": {"pending": "offset_mismatch", "uploading": "offset_mismatch"},
    "wrong total": dict.fromkeys(("pending", "uploading", "uploaded", "finalized"), "size_mismatch"),
    "wrong question": dict.fromkeys(("pending", "uploading", "uploaded", "finalized"), "size_mismatch"),
    "beyond the end": {"pending": "size_mismatch", "uploading": "size_mismatch"},
    "too long": {"pending": "size_mismatch", "uploading": "size_mismatch"},
    "too short": {"pending": HALF + 1, "uploading": HALF + 1},
    "empty": {"pending": "size_mismatch", "uploading": "size_mismatch"},
    "short whole": {"pending": "size_mismatch", "uploading": "size_mismatch"},
    "long whole": {"pending": "size_mismatch", "uploading": "size_mismatch"},
}
ENDED = {"uploaded": "done", "finalized": "done", "canceled": "session_canceled"}
CELLS = [(state, kind, (ENDED | TABLE[kind])[state]) for state in STATES for kind in PUTS]


@pytest.mark.parametrize(("state", "kind", "expected"), CELLS, ids=[f"{state}-{kind}" for state, kind, _ in CELLS])
def test_every_put_in_every_state(shared: Daemon, state: str, kind: str, expected: int | str) -> None:
    prepare, stored = STATES[state]
    session = prepare(shared)
    body, content_range = PUTS[kind]
    answer = put(shared, session, body, content_range)
    if isinstance(expected, int):
        assert part_told(answer) == (f"bytes=0-{expected - 1}" if expected else None)
        assert state_of(shared, session) == ("uploading" if expected else "pending", expected)
    elif expected == "done":
        told = body_of(answer)
        assert (told["session_id"], told["received_bytes"]) == (session["session_id"], SIZE)
        assert (told["sha256"], told["status"]) == (sha256_of(DATA), max(state, "uploaded", key=list(STATES).index))
        assert state_of(shared, session)[1] == SIZE
    else:
        details_of(answer, expected)
        assert state_of(shared, session) == (state, stored)


@pytest.mark.parametrize("kind", PUTS)
def test_an_expired_session_takes_nothing(daemon: Daemon, kind: str) -> None:
    session = uploading(daemon)
    daemon.advance(3700)
    details_of(put(daemon, session, *PUTS[kind]), "session_expired")
    assert state_of(daemon, session) == ("expired", HALF)


def test_a_gap_is_told_with_the_stored_range(shared: Daemon) -> None:
    for session, stored in ((pending(shared), None), (uploading(shared), f"bytes=0-{HALF - 1}")):
        answer = put(shared, session, *PUTS["gap"])
        details = details_of(answer, "offset_mismatch")
        assert (answer.headers.get("Range"), details["range"]) == (stored, stored)


def test_a_range_that_says_nothing_is_refused(shared: Daemon) -> None:
    cases: list[str] = ["bytes", "bytes 5-4/10", "items 0-1/2", "bytes 0-9", "bytes 0-999999/10"]
    for text in cases:
        session = uploading(shared)
        assert refused_field(put(shared, session, b"x", text)) == "Content-Range"
        assert state_of(shared, session) == ("uploading", HALF)


def test_a_compressed_body_is_refused(shared: Daemon) -> None:
    session = pending(shared)
    details_of(put(shared, session, DATA, Content_Encoding="gzip"), "unsupported_media_type")
    assert state_of(shared, session) == ("pending", 0)


def test_chunks_of_any_size_make_the_file(daemon: Daemon) -> None:
    session = pending(daemon)
    first = 0
    for length in (1, 7, 300, 1, 400):
        assert part_told(put_part(daemon, session, DATA, first, first + length - 1)) == f"bytes=0-{first + length - 1}"
        first += length
    assert body_of(put_part(daemon, session, DATA, first, SIZE - 1))["sha256"] == sha256_of(DATA)
    source = body_of(finalize(daemon, session), 201)
    assert stored_bytes(daemon, source["id"]) == DATA


def test_two_ranges_are_refused(shared: Daemon) -> None:
    session = pending(shared)
    headers = [("Content-Range", f"bytes {span}/{SIZE}") for span in ("0-4", "5-9")]
    answer = shared.ask("PUT", path_of(session), key="", headers=headers, content=b"hello")
    assert refused_field(answer) == "Content-Range"
    assert state_of(shared, session) == ("pending", 0)


def send_in_pieces(daemon: Daemon, session: Session, data: bytes, content_range: str | None) -> httpx.Response:
    """Without a Content-Length."""

    async def pieces() -> Any:
        for start in range(0, len(data), 100):
            yield data[start : start + 100]

    headers = {} if content_range is None else {"Content-Range": content_range}
    return daemon.ask("PUT", path_of(session), key="", content=pieces(), headers=headers)


def test_a_body_of_unknown_length_is_counted(shared: Daemon) -> None:
    cases: list[tuple[bytes, str | None, int]] = [
        (DATA + b"x", None, 0),
        (DATA[: HALF + 2], f"bytes 0-{HALF}/{SIZE}", 0),
        (DATA[:-1], None, SIZE - 1),
    ]
    for data, content_range, stored in cases:
        session = pending(shared)
        details_of(send_in_pieces(shared, session, data, content_range), "size_mismatch")
        assert state_of(shared, session)[1] == stored


def test_a_body_of_unknown_length_is_taken(shared: Daemon) -> None:
    session = uploading(shared)
    assert body_of(send_in_pieces(shared, session, DATA, None))["sha256"] == sha256_of(DATA)


def test_wrong_bytes_are_dropped_and_can_be_sent_again(daemon: Daemon) -> None:
    session = open_session(daemon, DATA, sha256=sha256_of(DATA).upper())
    put_part(daemon, session, DATA, 0, HALF - 1)
    wrong = DATA[:-1] + b"!"
    details = details_of(put_part(daemon, session, wrong, HALF, SIZE - 1), "checksum_mismatch")
    assert details == {"expected": sha256_of(DATA), "actual": sha256_of(wrong)}
    assert state_of(daemon, session) == ("pending", 0)
    details_of(put(daemon, session, wrong), "checksum_mismatch")
    details_of(finalize(daemon, session), "blob_not_uploaded")
    assert body_of(put(daemon, session, DATA))["sha256"] == sha256_of(DATA)
    assert body_of(finalize(daemon, session), 201)["sha256"] == sha256_of(DATA)


def test_a_browser_can_read_that_more_is_wanted(shared: Daemon) -> None:
    session = pending(shared)
    for kind, stored in (("question", None), ("first", "bytes=0-99")):
        answer = put(shared, session, *PUTS[kind], X_Guploader_No_308="yes")
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["X-Http-Status-Code-Override"] == "308"
        assert answer.headers.get("Range") == stored
    assert "X-Http-Status-Code-Override" not in put(shared, session, DATA, X_Guploader_No_308="yes").headers


def test_a_wrong_token_opens_nothing(shared: Daemon) -> None:
    for spoil in ["token", "session", "another's"]:
        session, other = pending(shared), pending(shared)
        token = path_of(session).rpartition("/")[2]
        path = {
            "token": f"/v1/storage/{session['session_id']}/{'0' * 64}",
            "session": f"/v1/storage/upl_missing/{token}",
            "another's": f"/v1/storage/{other['session_id']}/{token}",
        }[spoil]
        answer = shared.ask("PUT", path, key="", content=DATA)
        details_of(answer, "session_not_found")
        assert token not in answer.text
        assert state_of(shared, session) == state_of(shared, other) == ("pending", 0)


def test_no_key_is_asked_for_and_none_helps(shared: Daemon) -> None:
    session = pending(shared)
    details_of(shared.ask("PUT", f"/v1/storage/{session['session_id']}/x", content=DATA), "session_not_found")
    body_of(shared.ask("PUT", path_of(session), key="", content=DATA))


FOREIGN = {"Origin": "https://page.example", "Sec-Fetch-Site": "cross-site"}


def test_a_page_of_any_origin_may_send_here_and_nowhere_else(shared: Daemon) -> None:
    session = pending(shared)
    answer = put(shared, session, DATA, **FOREIGN)
    body_of(answer)
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert {"Range", "X-Http-Status-Code-Override"} <= set(answer.headers["Access-Control-Expose-Headers"].split(", "))
    for path in (session_path(session), "/v1/buckets", "/v1/storage", "/v1/storagex/a/b"):
        refused = shared.ask("GET", path, headers=FOREIGN)
        details_of(refused, "origin_not_allowed")
        assert "Access-Control-Allow-Origin" not in refused.headers


def test_a_page_may_ask_first(shared: Daemon) -> None:
    asked = FOREIGN | {
        "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": "content-range,content-type,x-guploader-no-308",
    }
    answer = shared.ask("OPTIONS", path_of(pending(shared)), key="", headers=asked)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "PUT" in answer.headers["Access-Control-Allow-Methods"]
    allowed = answer.headers["Access-Control-Allow-Headers"].lower().split(", ")
    assert {"content-range", "content-type", "x-guploader-no-308"} <= set(allowed)


def test_a_page_can_read_why_it_was_refused(shared: Daemon) -> None:
    cases: list[tuple[str, str, str, str]] = [
        ("PUT", "uploading", "gap", "offset_mismatch"),
        ("PUT", "canceled", "whole", "session_canceled"),
        ("PUT", "pending", "wrong total", "size_mismatch"),
        ("GET", "pending", "whole", "method_not_allowed"),
    ]
    for method, state, kind, code in cases:
        session = STATES[state][0](shared)
        body, content_range = PUTS[kind]
        headers = FOREIGN | ({"Content-Range": content_range} if content_range else {})
        answer = shared.ask(method, path_of(session), key="", content=body, headers=headers)
        assert answer.status_code == ERRORS[ErrorCode(code)].status
        assert answer.json()["error"]["code"] == code
        assert answer.headers["Access-Control-Allow-Origin"] == "*"


def test_no_answer_of_a_capability_is_kept_by_a_cache(shared: Daemon) -> None:
    session = pending(shared)
    for answer in (
        put(shared, session, *PUTS["first"]),
        put(shared, session, *PUTS["gap"]),
        put(shared, session, DATA),
    ):
        assert answer.headers["Cache-Control"] == "no-store"


def test_bytes_of_a_deleted_source_are_not_told_of(daemon: Daemon) -> None:
    session = uploaded(daemon)
    source = body_of(finalize(daemon, session), 201)
    body_of(daemon.ask("DELETE", f"/v1/sources/{source['id']}"))
    details_of(put(daemon, session, *PUTS["question"]), "source_not_found")


def test_the_life_of_a_session_begins_anew_with_each_chunk(daemon: Daemon) -> None:
    session = pending(daemon)
    for first in range(5):
        daemon.advance(3000)
        assert part_told(put_part(daemon, session, DATA, first, first)) == f"bytes=0-{first}"
    daemon.advance(3500)
    assert state_of(daemon, session) == ("uploading", 5)
    daemon.advance(150)
    assert state_of(daemon, session) == ("expired", 5)


def test_a_question_prolongs_nothing(daemon: Daemon) -> None:
    session = uploading(daemon)
    daemon.advance(3000)
    part_told(put(daemon, session, *PUTS["question"]))
    daemon.advance(700)
    details_of(put(daemon, session, *PUTS["question"]), "session_expired")


def test_no_session_lives_longer_than_a_day(daemon: Daemon) -> None:
    session = pending(daemon)
    for first in range(24):
        part_told(put_part(daemon, session, DATA, first, first))
        daemon.advance(3590)
    part_told(put_part(daemon, session, DATA, 24, 24))
    daemon.advance(300)
    details_of(put_part(daemon, session, DATA, 25, 25), "session_expired")
