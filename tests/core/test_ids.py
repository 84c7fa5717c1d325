"""Ids name their kind and sort by the time they were made."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core import ids
from svc_daemon.core.ids import Ids, is_id

START = datetime(2026, 1, 1, tzinfo=UTC)
MOMENTS = st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2999, 1, 1), timezones=st.just(UTC))
PAUSES = st.timedeltas(min_value=timedelta(milliseconds=1), max_value=timedelta(days=900))


def _ids(moment: datetime, random: bytes = bytes(10)) -> Ids:
    return Ids(now=lambda: moment, random=lambda size: random[:size])


def test_an_id_is_its_prefix_and_26_lower_case_characters() -> None:
    made = _ids(START).make(ids.SOURCE)
    prefix, _, rest = made.partition("_")
    assert (prefix, len(rest), made) == ("src", 26, made.lower())
    assert set(rest) <= set("0123456789abcdefghjkmnpqrstvwxyz")


def test_the_random_part_is_80_bits_of_what_was_given() -> None:
    asked: list[int] = []

    def random(size: int) -> bytes:
        asked.append(size)
        return b"\xff" * size

    made = Ids(now=lambda: START, random=random).make(ids.TASK)
    assert asked == [10]
    assert made.endswith("z" * 16)
    assert made != _ids(START).make(ids.TASK)


@given(MOMENTS, PAUSES, st.binary(min_size=20))
def test_a_later_millisecond_sorts_later_whatever_the_random_part(
    moment: datetime, pause: timedelta, random: bytes
) -> None:
    earlier = _ids(moment, random[:10]).make(ids.SOURCE)
    later = _ids(moment + pause, random[10:20]).make(ids.SOURCE)
    assert earlier[:14] < later[:14] or (earlier[:14] == later[:14] and pause < timedelta(milliseconds=2))


def test_kinds_are_told_by_prefix_and_underscore() -> None:
    table = {
        ("src_1", ids.SOURCE): True,
        ("src", ids.SOURCE): False,
        ("srcs_1", ids.SOURCE): False,
        ("bkt_1", ids.SOURCE): False,
        ("xsrc_1", ids.SOURCE): False,
        ("", ids.SOURCE): False,
    }
    assert {cell: is_id(*cell) for cell in table} == table


def test_no_two_kinds_share_a_prefix() -> None:
    prefixes = [ids.TEAM, ids.BUCKET, ids.SOURCE, ids.TASK, ids.KEY, ids.REQUEST, ids.INSTALLATION]
    assert len(set(prefixes)) == len(prefixes)
