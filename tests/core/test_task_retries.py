"""Tests the pauses before retries, and which attempt is the last."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.task_retries import LONGEST_PAUSE_S, is_last, pause_s, retry_after_s


def test_pauses_grow_to_a_minute() -> None:
    assert [pause_s(attempt, jitter=0.5) for attempt in range(1, 7)] == [1, 4, 16, 60, 60, 60]


@given(st.integers(min_value=1, max_value=10**9), st.floats(min_value=0, max_value=1, exclude_max=True))
def test_a_pause_is_limited_after_any_number_of_attempts(attempt: int, jitter: float) -> None:
    pause = pause_s(attempt, jitter)
    assert 0.5 <= pause <= LONGEST_PAUSE_S * 1.5


def test_jitter_multiplies_a_pause_by_half_to_one_and_a_half() -> None:
    assert pause_s(2, 0.0) == 2
    assert pause_s(2, 0.999_999) == pytest.approx(6, abs=0.001)


def test_an_attempt_is_the_last_if_no_retry_helps_or_none_is_left() -> None:
    for attempt, attempts, is_final in [(1, 3, False), (2, 3, False), (3, 3, True), (4, 3, True), (1, 1, True)]:
        assert is_last(attempt, attempts, retryable=True) is is_final, (attempt, attempts)
        assert is_last(attempt, attempts, retryable=False), (attempt, attempts)


def test_retry_after_estimates_the_remaining_time_within_limits() -> None:
    for elapsed_s, done, total, expected in [
        *((0.0, 0, None, 1), (9.0, 0, 100, 1), (9.0, 5, None, 1), (10.0, 10, 15, 5)),
        *((1.0, 10, 11, 1), (1.0, 10, 10, 1), (60.0, 1, 1000, 30)),
        # The clock was set back.
        (-60.0, 10, 20, 1),
    ]:
        assert retry_after_s(elapsed_s, done, total) == expected, (elapsed_s, done, total)
