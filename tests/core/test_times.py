"""Tests times as text: ISO 8601 in UTC with milliseconds, so that they sort chronologically."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.times import Clock, end_of_month, from_text, month_of, parse_span_s, to_text

ZONES = st.timezones() | st.just(UTC)
MOMENTS = st.datetimes(min_value=datetime(1000, 1, 3), max_value=datetime(9999, 12, 29), timezones=ZONES)
NOON = datetime(2026, 3, 1, 12, 0, 0, 999_999, tzinfo=UTC)


def test_a_time_is_written_in_utc_with_truncated_milliseconds() -> None:
    assert to_text(NOON) == "2026-03-01T12:00:00.999Z"
    assert to_text(NOON.astimezone(timezone(timedelta(hours=5)))) == "2026-03-01T12:00:00.999Z"


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        to_text(datetime(2026, 1, 1))


@given(MOMENTS)
def test_a_written_time_is_read_back_to_the_millisecond(moment: datetime) -> None:
    text = to_text(moment)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text)
    assert timedelta(0) <= moment - from_text(text) < timedelta(milliseconds=1)


@given(MOMENTS, MOMENTS)
def test_written_times_sort_chronologically(one: datetime, other: datetime) -> None:
    if one <= other:
        assert to_text(one) <= to_text(other)


def test_a_clocks_timestamp_may_have_an_offset() -> None:
    clock = Clock(now=lambda: NOON, monotonic=lambda: 0.0)
    assert clock.timestamp() == "2026-03-01T12:00:00.999Z"
    assert clock.timestamp(1.5) == "2026-03-01T12:00:02.499Z"
    assert clock.timestamp(-86400 * 7) == "2026-02-22T12:00:00.999Z"


def test_a_duration_is_a_number_and_a_unit() -> None:
    for text, seconds in [("90s", 90), ("5m", 300), ("12h", 43_200), ("30d", 2_592_000)]:
        assert parse_span_s(text) == seconds, text
    for text in ("", "d", "30", "-1d", "1.5h", "1w", "2030-01-01T00:00:00Z", "1" * 10 + "d"):
        assert parse_span_s(text) is None, text


@pytest.mark.parametrize(
    ("moment", "month", "end"),
    [
        (datetime(2026, 1, 31, 23, 59, 59, 999_999, UTC), "2026-01", "2026-02-01T00:00:00.000Z"),
        (datetime(2026, 12, 1, tzinfo=UTC), "2026-12", "2027-01-01T00:00:00.000Z"),
        (datetime(2028, 2, 29, 12, tzinfo=UTC), "2028-02", "2028-03-01T00:00:00.000Z"),
        (datetime(2026, 11, 30, tzinfo=UTC), "2026-11", "2026-12-01T00:00:00.000Z"),
    ],
)
def test_a_month_ends_where_the_next_one_begins(moment: datetime, month: str, end: str) -> None:
    assert (month_of(moment), end_of_month(moment)) == (month, end)
