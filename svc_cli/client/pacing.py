"""Limits the rate of create requests (those that add sources, or open sessions or batches) to what the service allows.

After a 429 response, all create requests wait. `Gate` implements the same token bucket as the service, with one token
less, so that varying network delays cause no refusal. The service does not count requests that it refuses or recognizes
as repeated, so their tokens are given back.
"""

import random
import threading
import time
from collections.abc import Callable

#: The rate is kept below the limit by this factor, because clocks run at slightly different speeds.
SLACK = 1.01


class Stopped(Exception):
    """`Client.stop` was called while this thread was waiting for the rate limit or sending bytes."""


class Gate:
    """Lets create requests pass at the allowed rate, and none at all while the service asks for a pause."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._opens_s = 0.0
        #: Average seconds between two create requests at the highest allowed rate; 0 means no limit.
        self._interval_s = 0.0
        self._saved_s = 0.0
        #: The time at which all create requests so far would have been sent at the allowed rate without any burst.
        self._booked_s = 0.0
        self._waiting = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def pace(self, per_second: float) -> None:
        """Allow `per_second` create requests per second, and an initial burst of almost that many; 0 means no limit."""
        with self._lock:
            self._interval_s = SLACK / per_second if per_second else 0.0
            self._saved_s = max(0.0, per_second - 2) * self._interval_s

    def hold(self, seconds: float) -> None:
        """Let no create request pass for `seconds` from now, or for longer if an earlier call asked for that."""
        with self._lock:
            self._opens_s = max(self._opens_s, self._clock() + seconds)

    def wait(self) -> None:
        """Block until the caller may send a create request. Raises Stopped if `stop` was called."""
        with self._lock:
            self._waiting += 1
        try:
            while not self._stopped.is_set():
                left_s = self._take()
                if left_s <= 0:
                    return
                # Jitter, so that the waiting threads don't all wake at once and compete for one token.
                self._stopped.wait(left_s + random.uniform(0, 0.02))  # noqa: S311 - randomness only for spreading
            raise Stopped
        finally:
            with self._lock:
                self._waiting -= 1

    @property
    def waiting(self) -> int:
        """Return the number of callers that are blocked in `wait`."""
        return self._waiting

    def give_back(self) -> None:
        """Put back the token of a create request that the service did not count."""
        with self._lock:
            self._booked_s -= self._interval_s

    def stop(self) -> None:
        """Make all present and future calls of `wait` raise Stopped."""
        self._stopped.set()

    def _take(self) -> float:
        """Take a token and return 0, or return the seconds until one may be available."""
        with self._lock:
            now_s = self._clock()
            left_s = max(self._opens_s, self._booked_s - self._saved_s) - now_s
            if left_s <= 0:
                self._booked_s = max(self._booked_s, now_s) + self._interval_s
            return left_s
