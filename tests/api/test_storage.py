"""The storage route: every kind of PUT in every state of a session, CORS, and the expiry of sessions."""

from typing import Any

import httpx
import pytest

from svc_daemon.process.locks import session_lock
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import Daemon
from tests.api.puts import DATA, HALF, PUTS, SIZE, STATES, expected_of, in_state, received
from tests.api.sessions import finalize, open_session, part_kept, path_of, put, put_part, sha256_of, state_of

UPLOADS = "/v1/buckets/inbox/uploads"
Session = dict[str, Any]


def pending(daemon: Daemon) -> Session:
    return in_state(daemon, "pending")


def uploading(daemon: Daemon) -> Session:
    return in_state(daemon, "uploading")


FOREIGN = {"Origin": "https://page.example", "Sec-Fetch-Site": "cross-site"}


@pytest.mark.rule("upload.put", "pack.dialect")
@pytest.mark.parametrize("upload_kind", ["session", "pack"])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", PUTS)
def test_each_kind_of_put_in_each_state_has_the_expected_result(
    shared: Daemon, upload_kind: str, state: str, kind: str
) -> None:
    """Pages of any origin may read each answer, also an error, and nobody may keep it."""
    expected, upload = expected_of(kind, state), in_state(shared, state, upload_kind)
    body, content_range = PUTS[kind]
    answer = put(shared, upload, body, content_range, **FOREIGN)
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    status, stored = state, STATES[state]
    if isinstance(expected, int):
        status, stored = "uploading" if expected else "pending", expected
        assert part_kept(answer) == (f"bytes=0-{expected - 1}" if expected else None)
    elif expected == "done":
        status, stored = max(state, "uploaded", key=list(STATES).index), SIZE
        done = {"object": "pack"} if upload_kind == "pack" else {"sha256": sha256_of(DATA)}
        assert (done | {"received_bytes": SIZE, "status": status}).items() <= body_of(answer).items()
    else:
        details = details_of(answer, expected)
        assert expected != "offset_mismatch" or details["range"] == (f"bytes=0-{stored - 1}" if stored else None)
        assert details.get("range") == answer.headers.get("Range")
    assert answer.is_error or answer.headers["Cache-Control"] == "no-store"
    assert received(shared, upload) == stored
    assert upload_kind == "pack" or state_of(shared, upload)[0] == status


@pytest.mark.parametrize("upload_kind", ["session", "pack"])
def test_expired_session_or_pack_refuses_every_kind_of_put(daemon: Daemon, upload_kind: str) -> None:
    uploads = {kind: in_state(daemon, "uploading", upload_kind) for kind in PUTS}
    sessions = [session for upload in uploads.values() for session in upload.get("items", [upload])]
    # As the sweeper does while it deletes the bytes of a session, which may take long.
    held = [session_lock(session["session_id"]) for session in sessions if upload_kind == "session"]
    with daemon.holding(*held):
        daemon.advance(90_000)
        for kind, upload in uploads.items():
            details_of(put(daemon, upload, *PUTS[kind]), "session_expired")
            assert received(daemon, upload) == HALF, kind
    assert {state_of(daemon, session)[0] for session in sessions} == {"expired"}


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


def test_web_page_of_any_origin_may_use_the_storage_route_and_no_other(shared: Daemon) -> None:
    session = pending(shared)
    answer = put(shared, session, DATA, **FOREIGN)
    assert {"Range", "X-Http-Status-Code-Override"} <= set(answer.headers["Access-Control-Expose-Headers"].split(", "))
    for path in (f"{UPLOADS}/{session['session_id']}", "/v1/buckets", "/v1/storage", "/v1/storagex/a/b"):
        refused = shared.ask("GET", path, headers=FOREIGN)
        details_of(refused, "origin_not_allowed")
        assert "Access-Control-Allow-Origin" not in refused.headers
    refused = shared.ask("GET", path_of(session), key="", headers=FOREIGN)
    details_of(refused, "method_not_allowed")
    assert refused.headers["Access-Control-Allow-Origin"] == "*"


def test_preflight_request_of_a_web_page_is_allowed(shared: Daemon) -> None:
    names = {"content-range", "content-type", "x-guploader-no-308"}
    asked = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": ",".join(sorted(names))}
    answer = shared.ask("OPTIONS", path_of(pending(shared)), key="", headers=FOREIGN | asked)
    origin, methods, allowed = (
        answer.headers[f"Access-Control-Allow-{name}"] for name in ("Origin", "Methods", "Headers")
    )
    assert (answer.status_code, answer.content, origin, "PUT" in methods) == (204, b"", "*", True)
    assert names <= set(allowed.lower().split(", "))
