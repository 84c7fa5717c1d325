"""The gate before creates: it keeps them at the pace the service allows, and one 429 holds back all of them.

Creates are spaced as the service's own token bucket counts them, less one saved token, so that none that was sent in
time is refused because it arrived late. What was not counted there (a replay, a refusal) is given back.
"""

import random
import threading
import time
from collections.abc import Callable

#: Slower than allowed by this much: two clocks never agree.
SLACK = 1.01


class Stopped(Exception):
    """The run was stopped while it waited."""


class Gate:
    """Open as often as the pace allows; closed for all while the service asks one of them to wait."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._opens_s = 0.0
        #: Seconds between two creates in the long run; 0 is as fast as they come.
        self._interval_s = 0.0
        self._saved_s = 0.0
        #: When the creates let through so far would be over, one after the other.
        self._booked_s = 0.0
        self._waiting = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def pace(self, per_second: float) -> None:
        """Let through so many a second from now on, and nearly as many at once at first; 0 is any number."""
        with self._lock:
            self._interval_s = SLACK / per_second if per_second else 0.0
            self._saved_s = max(0.0, per_second - 2) * self._interval_s

    def hold(self, seconds: float) -> None:
        """Close for `seconds` from now; a longer hold stays."""
        with self._lock:
            self._opens_s = max(self._opens_s, self._clock() + seconds)

    def wait(self) -> None:
        """Return when it is this caller's turn. Raises Stopped when `stop` was called."""
        with self._lock:
            self._waiting += 1
        try:
            while not self._stopped.is_set():
                left_s = self._take()
                if left_s <= 0:
                    return
                # Jitter, or all workers would rush the first free slot together.
                self._stopped.wait(left_s + random.uniform(0, 0.02))  # noqa: S311 - spread, not secrecy
            raise Stopped
        finally:
            with self._lock:
                self._waiting -= 1

    @property
    def waiting(self) -> int:
        """How many callers wait for their turn."""
        return self._waiting

    def give_back(self) -> None:
        """The last turn was not counted by the service."""
        with self._lock:
            self._booked_s -= self._interval_s

    def stop(self) -> None:
        """Turn everybody away, now and later."""
        self._stopped.set()

    def _take(self) -> float:
        """Take a turn and return 0, or return the seconds until there may be one."""
        with self._lock:
            now_s = self._clock()
            left_s = max(self._opens_s, self._booked_s - self._saved_s) - now_s
            if left_s <= 0:
                self._booked_s = max(self._booked_s, now_s) + self._interval_s
            return left_s
