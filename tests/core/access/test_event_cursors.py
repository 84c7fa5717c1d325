"""Cursors of the event log: only the installation that made one can read it, and only for the same team."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from svc_daemon.core.access.event_cursors import PREFIX, EventCursors
from svc_daemon.core.ids import EVENT, Ids

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
