"""The upload session's decisions, every cell of their table."""

from svc_daemon.core.uploads import sessions
from svc_daemon.core.uploads.sessions import ContentRange, PutDecision, Step
from tests.core.refusals import refusal

SIZE = 1000
WHOLE, ASKING = None, ContentRange(None, None, SIZE)


def test_a_range_is_read() -> None:
    for text, expected in [
        *((None, None), ("bytes */1000", ASKING), ("bytes */*", ContentRange(None, None, None))),
        *(("bytes 0-99/1000", ContentRange(0, 99, 1000)), ("bytes 0-99/*", ContentRange(0, 99, None))),
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


def part(first: int, last: int, size: int | None = SIZE) -> ContentRange:
    return ContentRange(first, last, size)


def take(skip_bytes: int, take_bytes: int) -> PutDecision:
    return PutDecision(Step.TAKE, skip_bytes, take_bytes)


REPORT, DONE = PutDecision(Step.REPORT), PutDecision(Step.DONE)
#: State and bytes received, what comes of which range.
JUDGED: list[tuple[str, int, list[tuple[ContentRange | None, PutDecision]]]] = [
    ("pending", 0, [(WHOLE, take(0, 1000)), (ASKING, REPORT), (ContentRange(None, None, None), REPORT)]),
    ("pending", 0, [(part(0, 99), take(0, 100)), (part(0, 999, None), take(0, 1000))]),
    ("uploading", 100, [(WHOLE, take(100, 900)), (ASKING, REPORT), (part(100, 199), take(0, 100))]),
    ("uploading", 100, [(part(50, 199), take(50, 100)), (part(0, 99), REPORT), (part(0, 49), REPORT)]),
    ("uploaded", 1000, [(WHOLE, DONE), (ASKING, DONE), (part(0, 99), DONE)]),
    ("finalized", 0, [(WHOLE, DONE), (ASKING, DONE)]),
]
REFUSED: list[tuple[str, list[tuple[str, int, ContentRange | None]]]] = [
    ("offset_mismatch", [("pending", 0, part(1, 99)), ("uploading", 100, part(101, 199))]),
    ("size_mismatch", [("uploading", 100, part(100, 199, 999)), ("pending", 0, ContentRange(None, None, 999))]),
    ("size_mismatch", [("pending", 0, part(0, 1000, None)), ("uploaded", 1000, part(0, 99, 2000))]),
    ("session_canceled", [("canceled", 0, WHOLE), ("canceled", 0, ASKING)]),
    ("session_expired", [("expired", 100, WHOLE), ("expired", 100, ASKING)]),
]


def test_a_put_is_judged() -> None:
    for state, received, ranges in JUDGED:
        for asked, decision in ranges:
            assert sessions.judge_put(state, received, SIZE, asked) == decision, (state, received, asked)


def test_a_put_is_refused() -> None:
    for code, cases in REFUSED:
        for state, received, asked in cases:
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
