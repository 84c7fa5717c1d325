"""Tests that rate limits never allow too much, and never ask for a longer wait than needed."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.access.rate_limits import ByteWindow, TokenBucket

#: Tolerance for rounding errors of a few hundred float operations.
SLACK = 1e-6
PAUSES = st.lists(st.floats(min_value=0, max_value=3), min_size=1, max_size=80)
CHARGES = st.lists(st.tuples(st.floats(0, 30), st.integers(0, 120)), min_size=1, max_size=60)


def test_a_full_bucket_gives_all_tokens_at_once_and_then_one_every_200_ms() -> None:
    bucket = TokenBucket.full(5, now_s=100.0)
    assert [bucket.take(100.0) for _ in range(5)] == [0.0] * 5
    assert bucket.take(100.0) == pytest.approx(0.2)
    assert bucket.take(100.1) == pytest.approx(0.1)
    assert bucket.take(100.2 + SLACK) == 0.0


def test_a_refused_request_takes_no_token() -> None:
    bucket = TokenBucket.full(1, now_s=0.0)
    bucket.take(0.0)
    before = (bucket.tokens, bucket.updated_s)
    assert bucket.take(0.5) > 0
    assert bucket.wait_s(0.5) == pytest.approx(0.5)
    assert (bucket.tokens, bucket.updated_s) == before


def test_an_idle_bucket_holds_no_more_than_its_capacity() -> None:
    bucket = TokenBucket.full(2, now_s=0.0)
    assert [bucket.take(10_000.0) == 0 for _ in range(4)] == [True, True, False, False]


@given(st.integers(min_value=1, max_value=5), st.lists(st.floats(min_value=0, max_value=3), min_size=1, max_size=30))
def test_no_period_grants_more_than_the_capacity_and_the_refill(per_second: int, pauses: list[float]) -> None:
    bucket, now_s, granted = TokenBucket.full(per_second, 0.0), 0.0, []
    for pause_s in pauses:
        now_s += pause_s
        granted += [now_s for _ in range(per_second + 1) if bucket.take(now_s) == 0]
    for first, start_s in enumerate(granted):
        for last in range(first, len(granted)):
            assert last - first + 1 <= per_second + (granted[last] - start_s) * per_second + SLACK


@given(st.integers(min_value=1, max_value=20), PAUSES)
def test_waiting_for_the_returned_time_gets_a_token(per_second: int, pauses: list[float]) -> None:
    bucket, now_s = TokenBucket.full(per_second, 0.0), 0.0
    for pause_s in pauses:
        now_s += pause_s
        now_s += bucket.take(now_s) + SLACK
        assert bucket.wait_s(now_s) < 1 / per_second


def test_bytes_count_until_they_leave_the_window() -> None:
    window = ByteWindow(limit_bytes=100, window_s=60)
    assert window.charge(60, 0.0) == 0.0
    assert window.charge(40, 10.0) == 0.0
    assert window.charge(1, 20.0) == pytest.approx(40.0)
    assert window.charge(61, 20.0) == pytest.approx(50.0)
    assert window.used_within(59.999) == 100
    assert window.used_within(60.0) == 40
    assert window.charge(60, 60.0) == 0.0


def test_a_charge_above_the_limit_never_fits_and_an_empty_one_always_does() -> None:
    window = ByteWindow(limit_bytes=100)
    assert [window.charge(size_bytes, 0.0) for size_bytes in (101, 100, 0)] == [math.inf, 0.0, 0.0]


@given(CHARGES)
def test_no_window_ever_holds_more_than_the_limit(charges: list[tuple[float, int]]) -> None:
    window, now_s, kept = ByteWindow(limit_bytes=200, window_s=60), 0.0, []
    for pause_s, size_bytes in charges:
        now_s += pause_s
        if window.charge(size_bytes, now_s) == 0:
            kept.append((now_s, size_bytes))
        held = sum(size for charged_s, size in kept if charged_s + 60 > now_s)
        assert held == window.used_within(now_s) <= 200


@given(CHARGES)
def test_a_refused_charge_fits_after_its_wait_and_not_before(charges: list[tuple[float, int]]) -> None:
    window, now_s = ByteWindow(limit_bytes=120, window_s=60), 0.0
    for pause_s, size_bytes in charges:
        now_s += pause_s
        if (wait_s := window.charge(size_bytes, now_s)) > 0:
            assert window.used_within(now_s + wait_s / 2) + size_bytes > 120 or wait_s <= 0.001
            now_s += wait_s + SLACK
            assert window.charge(size_bytes, now_s) == 0
