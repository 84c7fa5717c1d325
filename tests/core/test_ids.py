"""Ids have the prefix of their kind and sort by creation time; only a team can read the cursors of its events."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core import ids
from svc_daemon.core.access.event_cursors import PREFIX, EventCursors
from svc_daemon.core.ids import EVENT, Ids, is_id

START = datetime(2026, 1, 1, tzinfo=UTC)
MOMENTS = st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2999, 1, 1), timezones=st.just(UTC))
PAUSES = st.timedeltas(min_value=timedelta(milliseconds=1), max_value=timedelta(days=900))


def _ids(moment: datetime, random: bytes = bytes(10)) -> Ids:
    return Ids(now=lambda: moment, random=lambda size: random[:size])


def test_an_id_is_its_prefix_and_26_lower_case_characters() -> None:
    made = _ids(START).make(ids.SOURCE)
    assert re.fullmatch("src_[0123456789abcdefghjkmnpqrstvwxyz]{26}", made), made


def test_the_random_part_is_80_of_the_given_bits() -> None:
    asked: list[int] = []

    def random(size: int) -> bytes:
        asked.append(size)
        return b"\xff" * size

    made = Ids(now=lambda: START, random=random).make(ids.TASK)
    assert (asked, made[-16:]) == ([10], "z" * 16)
    assert made != _ids(START).make(ids.TASK)


@given(MOMENTS, PAUSES, st.binary(min_size=20))
def test_an_id_of_a_later_millisecond_sorts_later(moment: datetime, pause: timedelta, random: bytes) -> None:
    earlier = _ids(moment, random[:10]).make(ids.SOURCE)
    later = _ids(moment + pause, random[10:20]).make(ids.SOURCE)
    assert earlier[:14] < later[:14] or (earlier[:14] == later[:14] and pause < timedelta(milliseconds=2))


def test_ids_created_together_are_in_order_and_differ_in_a_short_prefix() -> None:
    made = _ids(START, random=b"\xff" * 10).make_many(ids.SOURCE, 3000)
    assert made == sorted(made)
    assert len({each[:18] for each in made}) == 3000
    assert {(len(each), each[:14], each[18:]) for each in made} == {(30, made[0][:14], "z" * 12)}


def test_a_kind_is_its_prefix_and_an_underscore() -> None:
    for text in ["src_1", "src", "srcs_1", "bkt_1", "xsrc_1", ""]:
        assert is_id(text, ids.SOURCE) is (text == "src_1"), text
    prefixes = [ids.TEAM, ids.BUCKET, ids.SOURCE, ids.TASK, ids.KEY, ids.REQUEST, ids.INSTALLATION]
    assert len(set(prefixes)) == len(prefixes)


CURSORS = EventCursors.of_team(b"s" * 32, "team_a")
#: Ids of one transaction, which differ in few characters.
EVENTS = Ids(now=lambda: datetime(2026, 1, 1, tzinfo=UTC), random=bytes).make_many(EVENT, 100)
CURSOR = str(CURSORS.of(EVENTS[0]))
#: A character of the alphabet, and another one.
SWAP = str.maketrans({"A": "B", **{each: "A" for each in map(chr, range(128)) if each != "A"}})


@pytest.mark.rule("log.cursors")
def test_a_cursor_names_its_event_and_is_always_the_same() -> None:
    cursors = [str(EventCursors.of_team(b"s" * 32, "team_a").of(each)) for each in EVENTS]
    assert [CURSORS.find_event_id(each) for each in cursors] == EVENTS
    assert (cursors[0], len(set(cursors)), {len(each) for each in cursors}) == (CURSOR, len(EVENTS), {60})


@pytest.mark.rule("log.cursors")
def test_cursors_show_neither_an_id_nor_an_order() -> None:
    cursors = [str(CURSORS.of(each)) for each in EVENTS]
    assert not any(event_id[4:14] in cursor for event_id, cursor in zip(EVENTS, cursors, strict=True))
    assert cursors != sorted(cursors)
    for first, second in pairwise(cursors):
        # Of 56 random characters, hardly one is the same in both.
        assert sum(a == b for a, b in zip(first[4:], second[4:], strict=True)) < 10


@pytest.mark.parametrize("place", range(len(PREFIX), len(CURSOR)))
def test_a_cursor_with_any_other_character_is_none(place: int) -> None:
    forged = CURSOR[:place] + CURSOR[place].translate(SWAP) + CURSOR[place + 1 :]
    assert CURSORS.find_event_id(forged) is None


@pytest.mark.rule("log.cursors")
@pytest.mark.parametrize(("secret", "team_id"), [(b"s" * 32, "team_b"), (b"t" * 32, "team_a")])
def test_a_cursor_of_another_team_or_installation_is_none(secret: bytes, team_id: str) -> None:
    assert EventCursors.of_team(secret, team_id).find_event_id(CURSOR) is None


@pytest.mark.parametrize(
    "text",
    [
        *("", PREFIX, f"{PREFIX}{'A' * 20}", f"{PREFIX}{'A' * 5000}", f"{PREFIX}é", "\udc80", EVENTS[0]),
        *(CURSOR[:-1], CURSOR[:-4], CURSOR.removeprefix(PREFIX)),
        *(f"{CURSOR}=", f"{CURSOR}AAAA", f"{CURSOR}\n", f" {CURSOR}", f"{PREFIX}{CURSOR}"),
    ],
)
def test_what_is_no_cursor_is_none(text: str) -> None:
    assert CURSORS.find_event_id(text) is None
