"""Keeps create requests (for sources, sessions or batches) within the rate that the service allows.

`Gate` counts requests like the service's rate limiter, a token bucket. After a 429 response, all create requests wait.
"""

import random
import threading
import time
from collections.abc import Callable

#: Lengthens the interval between create requests by 1 %, since the service's clock may be slower than this one.
SLACK = 1.01


class Stopped(Exception):
    """`Client.stop` was called while this thread was waiting or sending bytes."""


class Gate:
    """Lets create requests pass at the allowed rate, but none while the service asks for a pause."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._opens_s = 0.0
        #: Seconds between two create requests at the highest rate; 0 means no limit.
        self._interval_s = 0.0
        self._saved_s = 0.0
        #: When the next create request would be due if all earlier requests had been sent one interval apart.
        self._booked_s = 0.0
        self._waiting = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def pace(self, per_second: float) -> None:
        """Allow this many create requests per second; 0 means no limit.

        At the beginning, up to `per_second` - 1 requests may be sent at once.
        """
        with self._lock:
            self._interval_s = SLACK / per_second if per_second else 0.0
            self._saved_s = max(0.0, per_second - 2) * self._interval_s

    def hold(self, seconds: float) -> None:
        """Let no create request pass for at least `seconds`."""
        with self._lock:
            self._opens_s = max(self._opens_s, self._clock() + seconds)

    def wait(self) -> None:
        """Wait until a create request may be sent. Raises Stopped after `stop`."""
        with self._lock:
            self._waiting += 1
        try:
            while not self._stopped.is_set():
                left_s = self._take()
                if left_s <= 0:
                    return
                # Jitter: the waiting threads must not all compete for one token.
                self._stopped.wait(left_s + random.uniform(0, 0.02))  # noqa: S311 - randomness only for spreading
            raise Stopped
        finally:
            with self._lock:
                self._waiting -= 1

    @property
    def waiting(self) -> int:
        """Return how many callers are blocked in `wait`."""
        return self._waiting

    def give_back(self) -> None:
        """Put back the token of a request that the service's rate limit did not count."""
        with self._lock:
            self._booked_s -= self._interval_s

    def stop(self) -> None:
        """Make all calls of `wait` raise Stopped, now and later."""
        self._stopped.set()

    def _take(self) -> float:
        """Take a token and return 0, or return the seconds to wait for one."""
        with self._lock:
            now_s = self._clock()
            left_s = max(self._opens_s, self._booked_s - self._saved_s) - now_s
            if left_s <= 0:
                self._booked_s = max(self._booked_s, now_s) + self._interval_s
            return left_s
