"""Months of a plan: which one a moment is in, and when that ends."""

from datetime import UTC, datetime

import pytest

from svc_daemon.core.months import end_of_month, month_of


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
