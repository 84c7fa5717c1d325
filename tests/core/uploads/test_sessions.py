"""The upload session's decisions, every cell of their table."""

from svc_daemon.core.uploads import sessions
from svc_daemon.core.uploads.sessions import ContentRange, PutDecision, Step
from tests.core.refusals import refusal

SIZE = 1000
WHOLE, ASKING = None, ContentRange(None, None, SIZE)


def test_a_range_is_read() -> None:
    for text, expected in [
        (None, None),
        ("bytes 0-99/1000", ContentRange(0, 99, 1000)),
        ("bytes 0-99/*", ContentRange(0, 99, None)),
        ("bytes */1000", ContentRange(None, None, 1000)),
        ("bytes */*", ContentRange(None, None, None)),
        (" bytes 5-5/6 ", ContentRange(5, 5, 6)),
    ]:
        assert sessions.parse_range(text) == expected, text
    for text in [
        *(
            "",
            "bytes",
            "bytes 0-99",
            "bytes 99-0/1000",
            "bytes 0-1000/1000",
            "items 0-1/2",
            "bytes -5/10",
            "bytes 0-9/ten",
        ),
        *("bytes 0-9/1000, bytes 20-29/1000", "bytes " + "9" * 16 + "-0/1", "bytes 0-\u0669/1000"),
    ]:
        assert refusal(sessions.parse_range, text).code == "invalid_request", text


def test_the_state_follows_from_what_is_stored() -> None:
    for stored, received, state, state_when_expired in [
        ("open", 0, "pending", "expired"),
        ("open", 1, "uploading", "expired"),
        ("open", 999, "uploading", "expired"),
        ("open", 1000, "uploaded", "expired"),
        ("finalized", 0, "finalized", "finalized"),
        ("canceled", 500, "canceled", "canceled"),
    ]:
        assert sessions.state_of(stored, received, SIZE, is_expired=False) == state, (stored, received)
        assert sessions.state_of(stored, received, SIZE, is_expired=True) == state_when_expired, (stored, received)


def test_a_put_is_judged() -> None:
    for state, received, asked, verdict in [
        ("pending", 0, WHOLE, PutDecision(Step.TAKE, 0, 1000)),
        ("pending", 0, ASKING, PutDecision(Step.REPORT)),
        ("pending", 0, ContentRange(None, None, None), PutDecision(Step.REPORT)),
        ("pending", 0, ContentRange(0, 99, SIZE), PutDecision(Step.TAKE, 0, 100)),
        ("pending", 0, ContentRange(0, 999, None), PutDecision(Step.TAKE, 0, 1000)),
        ("uploading", 100, WHOLE, PutDecision(Step.TAKE, 100, 900)),
        ("uploading", 100, ASKING, PutDecision(Step.REPORT)),
        ("uploading", 100, ContentRange(100, 199, SIZE), PutDecision(Step.TAKE, 0, 100)),
        ("uploading", 100, ContentRange(50, 199, SIZE), PutDecision(Step.TAKE, 50, 100)),
        ("uploading", 100, ContentRange(0, 99, SIZE), PutDecision(Step.REPORT)),
        ("uploading", 100, ContentRange(0, 49, SIZE), PutDecision(Step.REPORT)),
        ("uploaded", 1000, WHOLE, PutDecision(Step.DONE)),
        ("uploaded", 1000, ASKING, PutDecision(Step.DONE)),
        ("uploaded", 1000, ContentRange(0, 99, SIZE), PutDecision(Step.DONE)),
        ("finalized", 0, WHOLE, PutDecision(Step.DONE)),
        ("finalized", 0, ASKING, PutDecision(Step.DONE)),
    ]:
        assert sessions.judge_put(state, received, SIZE, asked) == verdict, (state, received, asked)


def test_a_put_is_refused() -> None:
    for state, received, asked, code in [
        ("pending", 0, ContentRange(1, 99, SIZE), "offset_mismatch"),
        ("uploading", 100, ContentRange(101, 199, SIZE), "offset_mismatch"),
        ("uploading", 100, ContentRange(100, 199, 999), "size_mismatch"),
        ("pending", 0, ContentRange(None, None, 999), "size_mismatch"),
        ("pending", 0, ContentRange(0, 1000, None), "size_mismatch"),
        ("uploaded", 1000, ContentRange(0, 99, 2000), "size_mismatch"),
        ("canceled", 0, WHOLE, "session_canceled"),
        ("canceled", 0, ASKING, "session_canceled"),
        ("expired", 100, WHOLE, "session_expired"),
        ("expired", 100, ASKING, "session_expired"),
    ]:
        assert refusal(sessions.judge_put, state, received, SIZE, asked).code == code, (state, received, asked)
    gap = refusal(sessions.judge_put, "uploading", 100, SIZE, ContentRange(500, 599, SIZE))
    assert gap.details == {"received_bytes": 100, "range": "bytes=0-99"}


def test_nothing_stored_has_no_range() -> None:
    assert (sessions.stored_range(0), sessions.stored_range(1)) == (None, "bytes=0-0")


def test_a_token_opens_one_session_in_one_generation() -> None:
    secret = b"s" * 32
    good = sessions.token(secret, "upl_a", 1)
    assert len(good) == 64
    assert sessions.is_token(good, secret, "upl_a", 1)
    for values in [
        *((good, secret, "upl_b", 1), (good, secret, "upl_a", 2), (good, b"t" * 32, "upl_a", 1)),
        ("é" * 64, secret, "upl_a", 1),
    ]:
        assert not sessions.is_token(*values), values
