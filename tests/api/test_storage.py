"""The storage route: every kind of PUT in every state of a session, CORS, and the expiry of sessions."""

from typing import Any

import httpx
import pytest

from svc_daemon.process.locks import session_lock
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import Daemon
from tests.api.puts import DATA, HALF, PUTS, SIZE, STATES, expected_of
from tests.api.sessions import finalize, open_session, part_kept, path_of, put, put_part, sha256_of, state_of

UPLOADS = "/v1/buckets/inbox/uploads"
Session = dict[str, Any]


def in_state(daemon: Daemon, state: str) -> Session:
    """Open a session, bring it into the state, and return it."""
    session = open_session(daemon, DATA)
    if state in ("uploading", "canceled"):
        assert part_kept(put_part(daemon, session, DATA, 0, HALF - 1)) == f"bytes=0-{HALF - 1}"
    if state in ("uploaded", "finalized"):
        body_of(put(daemon, session, DATA))
    if state == "finalized":
        body_of(finalize(daemon, session), 201)
    if state == "canceled":
        body_of(daemon.ask("DELETE", f"{UPLOADS}/{session['session_id']}"))
    return session


def pending(daemon: Daemon) -> Session:
    return in_state(daemon, "pending")


def uploading(daemon: Daemon) -> Session:
    return in_state(daemon, "uploading")


@pytest.mark.rule("upload.put")
@pytest.mark.parametrize("state", STATES)
def test_each_kind_of_put_in_each_state_of_a_session_has_the_expected_result(shared: Daemon, state: str) -> None:
    for kind, (body, content_range) in PUTS.items():
        expected, session = expected_of(kind, state), in_state(shared, state)
        answer = put(shared, session, body, content_range)
        if isinstance(expected, int):
            assert part_kept(answer) == (f"bytes=0-{expected - 1}" if expected else None), kind
            assert state_of(shared, session) == ("uploading" if expected else "pending", expected), kind
        elif expected == "done":
            now = max(state, "uploaded", key=list(STATES).index)
            done = {"session_id": session["session_id"], "received_bytes": SIZE, "sha256": sha256_of(DATA)}
            assert (done | {"status": now}).items() <= body_of(answer).items(), kind
            assert state_of(shared, session)[1] == SIZE, kind
        else:
            details_of(answer, expected)
            assert state_of(shared, session) == (state, STATES[state]), kind


def test_expired_session_refuses_every_kind_of_put(daemon: Daemon) -> None:
    sessions = {kind: uploading(daemon) for kind in PUTS}
    # As the sweeper does while it deletes the bytes, which may take long.
    with daemon.holding(*(session_lock(session["session_id"]) for session in sessions.values())):
        daemon.advance(3700)
        for kind, session in sessions.items():
            details_of(put(daemon, session, *PUTS[kind]), "session_expired")
            assert state_of(daemon, session) == ("expired", HALF), kind


def test_put_that_leaves_a_gap_is_refused_with_the_stored_range(shared: Daemon) -> None:
    for session, stored in ((pending(shared), None), (uploading(shared), f"bytes=0-{HALF - 1}")):
        answer = put(shared, session, *PUTS["gap"])
        details = details_of(answer, "offset_mismatch")
        assert (answer.headers.get("Range"), details["range"]) == (stored, stored)


def test_invalid_content_range_or_content_encoding_is_refused(shared: Daemon) -> None:
    session = uploading(shared)
    for text in ("bytes", "bytes 5-4/10", "items 0-1/2", "bytes 0-9", "bytes 0-999999/10"):
        assert refused_field(put(shared, session, b"x", text)) == "Content-Range", text
    two = [("Content-Range", f"bytes {span}/{SIZE}") for span in ("0-4", "5-9")]
    answer = shared.ask("PUT", path_of(session), key="", headers=two, content=b"hello")
    assert refused_field(answer) == "Content-Range"
    details_of(put(shared, session, DATA, Content_Encoding="gzip"), "unsupported_media_type")
    assert state_of(shared, session) == ("uploading", HALF)


def send_in_pieces(daemon: Daemon, session: Session, data: bytes, content_range: str | None) -> httpx.Response:
    """PUT the data in chunks, without a Content-Length."""

    async def pieces() -> Any:
        for start in range(0, len(data), 100):
            yield data[start : start + 100]

    headers = {"Content-Range": content_range} if content_range else {}
    return daemon.ask("PUT", path_of(session), key="", content=pieces(), headers=headers)


def test_size_of_a_body_without_a_content_length_is_checked(shared: Daemon) -> None:
    for kind, stored in (("long whole", 0), ("too long", 0), ("short whole", SIZE - 1)):
        session = pending(shared)
        details_of(send_in_pieces(shared, session, *PUTS[kind]), "size_mismatch")
        assert state_of(shared, session)[1] == stored
    assert body_of(send_in_pieces(shared, uploading(shared), DATA, None))["sha256"] == sha256_of(DATA)


def test_bytes_with_a_wrong_checksum_are_dropped_and_can_be_sent_again(daemon: Daemon) -> None:
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


def test_browser_client_gets_200_with_an_override_header_instead_of_308(shared: Daemon) -> None:
    session = pending(shared)
    for kind, stored in (("question", None), ("first", "bytes=0-99")):
        answer = put(shared, session, *PUTS[kind], X_Guploader_No_308="yes")
        override, kept = (answer.headers.get(name) for name in ("X-Http-Status-Code-Override", "Range"))
        assert (answer.status_code, answer.content, override, kept) == (200, b"", "308", stored)
    assert "X-Http-Status-Code-Override" not in put(shared, session, DATA, X_Guploader_No_308="yes").headers


@pytest.mark.rule("session.url", "upload.put", "auth.upload-url")
def test_session_is_not_found_with_a_wrong_token_and_needs_no_key_with_the_right_one(shared: Daemon) -> None:
    session, other = pending(shared), pending(shared)
    token = path_of(session).rpartition("/")[2]
    wrong = (f"{session['session_id']}/{'0' * 64}", f"{session['session_id']}/{'%C3%A9' * 64}")
    for path in (*wrong, f"upl_missing/{token}", f"{other['session_id']}/{token}"):
        for key in ("", None):
            answer = shared.ask("PUT", f"/v1/storage/{path}", key=key, content=DATA)
            details_of(answer, "session_not_found")
            assert token not in answer.text
    assert state_of(shared, session) == state_of(shared, other) == ("pending", 0)
    body_of(shared.ask("PUT", path_of(session), key="", content=DATA))


FOREIGN = {"Origin": "https://page.example", "Sec-Fetch-Site": "cross-site"}


def test_web_page_of_any_origin_may_use_the_storage_route_and_no_other(shared: Daemon) -> None:
    session = pending(shared)
    answer = put(shared, session, DATA, **FOREIGN)
    body_of(answer)
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert {"Range", "X-Http-Status-Code-Override"} <= set(answer.headers["Access-Control-Expose-Headers"].split(", "))
    for path in (f"{UPLOADS}/{session['session_id']}", "/v1/buckets", "/v1/storage", "/v1/storagex/a/b"):
        refused = shared.ask("GET", path, headers=FOREIGN)
        details_of(refused, "origin_not_allowed")
        assert "Access-Control-Allow-Origin" not in refused.headers


def test_preflight_request_of_a_web_page_is_allowed(shared: Daemon) -> None:
    names = {"content-range", "content-type", "x-guploader-no-308"}
    asked = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": ",".join(sorted(names))}
    answer = shared.ask("OPTIONS", path_of(pending(shared)), key="", headers=FOREIGN | asked)
    origin, methods, allowed = (
        answer.headers[f"Access-Control-Allow-{name}"] for name in ("Origin", "Methods", "Headers")
    )
    assert (answer.status_code, answer.content, origin, "PUT" in methods) == (204, b"", "*", True)
    assert names <= set(allowed.lower().split(", "))


@pytest.mark.parametrize(
    ("method", "state", "kind", "code"),
    (
        ("PUT", "uploading", "gap", "offset_mismatch"),
        ("PUT", "canceled", "whole", "session_canceled"),
        ("PUT", "pending", "wrong total", "size_mismatch"),
        ("GET", "pending", "whole", "method_not_allowed"),
    ),
)
def test_web_page_may_read_error_responses_of_the_storage_route(
    shared: Daemon, method: str, state: str, kind: str, code: str
) -> None:
    session, (body, content_range) = in_state(shared, state), PUTS[kind]
    headers = FOREIGN | ({"Content-Range": content_range} if content_range else {})
    answer = shared.ask(method, path_of(session), key="", content=body, headers=headers)
    details_of(answer, code)
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("kind", ("first", "gap", "whole"))
def test_storage_responses_are_not_cacheable(shared: Daemon, kind: str) -> None:
    session = pending(shared)
    assert put(shared, session, *PUTS[kind]).headers["Cache-Control"] == "no-store"


def test_question_to_a_session_whose_source_is_deleted_is_answered_as_before(daemon: Daemon) -> None:
    session = in_state(daemon, "uploaded")
    source = body_of(finalize(daemon, session), 201)
    body_of(daemon.ask("DELETE", f"/v1/sources/{source['id']}"))
    assert body_of(put(daemon, session, *PUTS["question"]))["status"] == "finalized"


def test_each_chunk_postpones_the_expiry_of_a_session_and_a_status_query_does_not(daemon: Daemon) -> None:
    session = pending(daemon)
    for first in range(5):
        daemon.advance(3000)
        assert part_kept(put_part(daemon, session, DATA, first, first)) == f"bytes=0-{first}"
    daemon.advance(3500)
    assert state_of(daemon, session) == ("uploading", 5)
    part_kept(put(daemon, session, *PUTS["question"]))
    daemon.advance(150)
    assert state_of(daemon, session) == ("expired", 5)
    details_of(put(daemon, session, *PUTS["question"]), "session_expired")
