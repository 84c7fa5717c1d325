"""Upload sessions: Content-Range, their state, and which objects make up the received bytes."""

from itertools import permutations

import pytest

from svc_daemon.cluster.s3.parts import Chain, PartObject, chain_of, object_name, parse_object
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
        ("failed", SIZE, "canceled", "canceled"),
    ],
)
def test_the_state_follows_from_stored_status_and_received_bytes(
    stored: str, received: int, state: str, state_when_expired: str
) -> None:
    assert sessions.state_of(stored, received, SIZE, is_expired=False) == state
    assert sessions.state_of(stored, received, SIZE, is_expired=True) == state_when_expired


@pytest.mark.parametrize(("now", "is_open_expired"), [("1", False), ("2", True), ("3", True)])
def test_open_session_expires_at_its_end_and_an_ended_one_stays_as_it_was(now: str, is_open_expired: bool) -> None:
    expired = {status: sessions.is_expired(status, "2", now) for status in ("open", "expired", "finalized", "failed")}
    assert expired == {"open": is_open_expired, "expired": True, "finalized": False, "failed": False}


NONCE, HASH = "0123456789abcdef" * 2, "f" * 64

#: Objects as (offset, size), with their chain as (offset, size, skipped bytes).
CHAINS: dict[tuple[tuple[int, int], ...], list[tuple[int, int, int]]] = {
    (): [],
    ((0, 5),): [(0, 5, 0)],
    ((0, 5), (5, 5)): [(0, 5, 0), (5, 5, 0)],
    # A gap ends the chain; without the first byte it is empty.
    ((0, 5), (6, 5)): [(0, 5, 0)],
    ((1, 5),): [],
    # Ranges that requests on two nodes sent again.
    ((0, 5), (0, 5)): [(0, 5, 0)],
    ((0, 5), (0, 9)): [(0, 9, 0)],
    ((0, 5), (3, 5)): [(0, 5, 0), (3, 5, 2)],
    ((0, 9), (3, 5)): [(0, 9, 0)],
    ((0, 5), (2, 9), (4, 2), (11, 1)): [(0, 5, 0), (2, 9, 3), (11, 1, 0)],
}


@pytest.mark.parametrize(("given", "expected"), CHAINS.items())
def test_a_chain_has_no_gap_and_each_byte_once_in_any_order(
    given: tuple[tuple[int, int], ...], expected: list[tuple[int, int, int]]
) -> None:
    parts = [PartObject(f"{number}", *each) for number, each in enumerate(given)]
    for order in permutations(parts):
        chain = chain_of(order)
        assert [(link.part.first, link.part.size_bytes, link.skip_bytes) for link in chain.links] == expected
        assert chain.size_bytes == sum(size - skip for _, size, skip in expected)
    assert len({chain_of(order) for order in permutations(parts)}) == 1, "every node takes the same objects"


def test_an_object_name_has_offset_and_size_and_other_names_are_refused() -> None:
    for sha256 in (None, HASH):
        name = object_name(7, 10**12, NONCE, sha256)
        assert parse_object(name) == PartObject(name, 7, 10**12, sha256)
        for other in (name[1:], name + "-", name.upper(), f"x{name}", f"{name}\n"):
            assert parse_object(other) is None, other
    names = [object_name(first, 1, NONCE, None) for first in (0, 9, 10, 10**12)]
    assert sorted(names) == names


def test_the_hash_is_known_only_of_a_chain_of_one_object() -> None:
    first, second = PartObject("a", 0, 5, HASH), PartObject("b", 5, 5)
    alone = chain_of([first])
    both = alone.followed_by(second)
    assert (Chain().sha256, alone.sha256, both.sha256) == (None, HASH, None)
    assert both == chain_of([second, first])
