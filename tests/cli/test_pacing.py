"""The gate before creates: never faster than the service takes them, and not much slower."""

import threading
from collections.abc import Callable

import pytest

from svc_cli.client.pacing import Gate, Stopped
from svc_daemon.core.access.rates import TokenBucket


class Clock:
    """A clock that a gate's waiting moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def _moments(gate: Gate, clock: Clock, count: int, after: Callable[[int], None] = lambda _: None) -> list[float]:
    """When each create would be let through by a caller that waits exactly as long as it has to."""
    moments = []
    for number in range(count):
        while (left_s := gate._take()) > 0:
            clock.now_s += left_s
        moments.append(clock.now_s)
        after(number)
    return moments


@pytest.mark.parametrize(("per_second", "late_s"), [(1, 0.0), (2, 0.0), (2, 0.15), (5, 0.0), (5, 0.15), (50, 0.01)])
def test_no_create_meets_an_empty_token_bucket(per_second: int, late_s: float) -> None:
    clock = Clock()
    gate = Gate(clock)
    gate.pace(per_second)
    moments = _moments(gate, clock, 200)
    arrivals = sorted(moment + (late_s if number % 3 == 0 else 0.0) for number, moment in enumerate(moments))
    service = TokenBucket.full(per_second, arrivals[0])
    assert [service.take(arrival_s) for arrival_s in arrivals] == [0.0] * 200
    assert moments[-1] - moments[0] <= 200 / per_second * 1.02


def test_what_was_not_counted_costs_no_time() -> None:
    clock = Clock()
    gate = Gate(clock)
    gate.pace(5)
    moments = _moments(gate, clock, 100, after=lambda _: gate.give_back())
    assert moments[-1] == moments[0]


def test_without_a_pace_only_a_hold_makes_anybody_wait() -> None:
    clock = Clock()
    gate = Gate(clock)
    assert _moments(gate, clock, 50)[-1] == 100.0
    gate.hold(3)
    gate.hold(1)
    assert _moments(gate, clock, 1) == [103.0]


def test_a_stop_turns_away_whoever_waits() -> None:
    gate = Gate()
    gate.hold(600)
    ended: list[bool] = []

    def wait() -> None:
        with pytest.raises(Stopped):
            gate.wait()
        ended.append(True)

    waiting = threading.Thread(target=wait)
    waiting.start()
    gate.stop()
    waiting.join(10)
    assert ended == [True]
