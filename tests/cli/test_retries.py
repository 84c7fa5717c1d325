"""When a request is tried again, and the gate before creates: never faster than the service, and not much slower."""

import random
import threading
from collections.abc import Callable

import pytest

from svc_cli.client.pacing import Gate, Stopped
from svc_cli.client.retries import RetryPolicy, is_worth_retrying, parse_retry_after
from svc_daemon.core.access.rates import TokenBucket


def test_only_what_may_pass_soon_is_tried_again() -> None:
    soon = [(503, "storage_full"), (503, "shutting_down"), (502, "search_failed"), (408, "request_timeout")]
    never = [(409, "idempotency_key_conflict"), (429, "rag_quota_exceeded"), (500, "internal_error")]
    rows = [*((row, True, True) for row in [*soon, (409, "request_in_progress")])]
    rows += [((409, "bucket_store_indexing_pending"), True, False)]
    rows += [(row, False, False) for row in [*never, (400, "empty_file")]]
    for (status, code), retryable, worth in rows:
        assert is_worth_retrying(status, code, retryable=retryable) is worth, code


def test_delays_double_with_jitter_and_end_and_the_service_may_ask_for_a_longer_one() -> None:
    assert (RetryPolicy().delay_s(1, 3), RetryPolicy().delay_s(1, 3600)) == (3, None)
    policy = RetryPolicy(attempts=4, jitter=random.Random(1))
    delays = [policy.delay_s(attempt) for attempt in (1, 2, 3, 4)]
    assert delays[3] is None
    for delay_s, full_s in zip(delays[:3], (0.2, 0.4, 0.8), strict=True):
        assert delay_s is not None
        assert full_s / 2 <= delay_s <= full_s


def test_a_retry_after_header_is_seconds_or_nothing() -> None:
    headers = {"2": 2.0, "0.5": 0.5, "-1": 0.0, "soon": None, None: None}
    assert {text: parse_retry_after(text) for text in headers} == headers


class Clock:
    """A clock that a gate's waiting moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def _moments(gate: Gate, clock: Clock, count: int, after: Callable[[], None] = lambda: None) -> list[float]:
    """When each create would be let through by a caller that waits exactly as long as it has to."""
    moments = []
    for _ in range(count):
        while (left_s := gate._take()) > 0:
            clock.now_s += left_s
        moments.append(clock.now_s)
        after()
    return moments


def test_no_create_meets_an_empty_token_bucket() -> None:
    for per_second, late_s in ((1, 0.0), (2, 0.0), (2, 0.15), (5, 0.0), (5, 0.15), (50, 0.01)):
        clock = Clock()
        gate = Gate(clock)
        gate.pace(per_second)
        moments = _moments(gate, clock, 200)
        arrivals = sorted(moment + (late_s if number % 3 == 0 else 0.0) for number, moment in enumerate(moments))
        service = TokenBucket.full(per_second, arrivals[0])
        assert [service.take(arrival_s) for arrival_s in arrivals] == [0.0] * 200, (per_second, late_s)
        assert moments[-1] - moments[0] <= 200 / per_second * 1.02, (per_second, late_s)


def test_what_was_not_counted_costs_no_time() -> None:
    clock = Clock()
    gate = Gate(clock)
    gate.pace(5)
    moments = _moments(gate, clock, 100, after=gate.give_back)
    assert moments[-1] == moments[0]


def test_without_a_pace_only_a_hold_makes_creates_wait() -> None:
    clock = Clock()
    gate = Gate(clock)
    assert _moments(gate, clock, 50)[-1] == 100.0
    gate.hold(3)
    gate.hold(1)
    assert _moments(gate, clock, 1) == [103.0]


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_held_gate_holds_everybody_until_it_opens_or_stops(is_stopped: bool) -> None:
    gate = Gate()
    gate.hold(600 if is_stopped else 0.2)
    passed: list[bool] = []

    def pass_through() -> None:
        try:
            gate.wait()
        except Stopped:
            passed.append(False)
        else:
            passed.append(True)

    threads = [threading.Thread(target=pass_through) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert passed == []
    if is_stopped:
        gate.stop()
    for thread in threads:
        thread.join(10)
    assert passed == [not is_stopped] * 4
