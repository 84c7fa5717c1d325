"""Decides whether and when a request is sent again, and keeps creates within the service's rate.

This is done by hand: of stamina, whose import adds 30 ms of a processor to each command, only the delays would be used.
`Retry-After`, pauses that other threads can end, and waits that aren't attempts would still be written here.
`CreatePacer` counts requests like the service's rate limiter, a token bucket. After a 429 response, all create
requests wait.
"""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from svc_cli.errors import ApiError, BadAnswer, NetworkFailed, SvcError
from svc_cli.http_responses import OddResponse

#: Codes of rate limits. Waiting for them does not count as an attempt.
PACED_CODES = frozenset({"upload_rate_limited", "quota_exceeded"})
#: Longer waits that a service asks for are cut to this: no timer of Python takes every number.
LONGEST_WAIT_S = 86400.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits the attempts. Delays double, with jitter, so that clients don't all retry at once."""

    #: Maximum number of attempts, including the first.
    attempts: int = 5
    first_delay_s: float = 0.2
    longest_delay_s: float = 4.0
    #: If the service asks for a longer wait (`Retry-After`), there is no retry, and the error is raised.
    longest_wait_s: float = 30.0
    jitter: random.Random = field(default_factory=random.Random)

    def delay_s(self, attempt: int, retry_after_s: float | None = None) -> float | None:
        """Return the seconds to wait after this attempt; None for no retry."""
        if attempt >= self.attempts or (retry_after_s or 0) > self.longest_wait_s:
            return None
        backoff_s = min(self.longest_delay_s, self.first_delay_s * float(2 ** (attempt - 1)))
        return max(backoff_s * self.jitter.uniform(0.5, 1.0), retry_after_s or 0)


#: Statuses that a load balancer returns if the daemon behind it has stopped or can't be reached. 504 is left out: the
#: daemon may still be working on the request, and a retry would do its work twice.
PROXY_STATUSES = frozenset({502, 503})
#: Error codes for a failure of the host of an imported URL. These are not retried: such a failure usually lasts longer
#: than all retries, and each retry would count against the rate limit.
REMOTE_CODES = frozenset({"url_fetch_failed", "website_analysis_failed"})


def is_worth_retrying(status: int, code: str, retryable: bool) -> bool:
    """Whether the same request may succeed a moment later.

    Of all 409 responses, only `request_in_progress` is temporary.
    """
    if code in REMOTE_CODES:
        return False
    if status in {408, 429, 502, 503, 504}:
        return retryable
    return code == "request_in_progress"


def may_pass(error: Exception) -> bool:
    """Whether a request that failed with this error may succeed a moment later."""
    if isinstance(error, ApiError):
        return error.code == "offset_mismatch" or is_worth_retrying(error.status, error.code, error.retryable)
    return isinstance(error, NetworkFailed)


def foreign_response(where: str, status: int) -> SvcError:
    """Return the error for a response that does not come from the service. After a proxy's error, retries can help."""
    message = f"{where} answered {status} with a response that does not come from svc."
    return NetworkFailed(message) if status in PROXY_STATUSES else BadAnswer(message)


def odd_response(where: str, error: OddResponse) -> BadAnswer:
    """Return the error for a response that breaks a limit."""
    return BadAnswer(f"{where} answered with a response that does not come from svc: {error}.")


def wait_s(error: Exception) -> float | None:
    """Return how many seconds the service asks to wait; None if it asks for no wait."""
    value = error.details.get("retry_after_seconds") if isinstance(error, ApiError) else None
    return float(min(value, LONGEST_WAIT_S)) if isinstance(value, int | float) else None


def parse_retry_after(value: str | None) -> float | None:
    """Parse a `Retry-After` header, in seconds; None for a date."""
    try:
        return min(max(0.0, float(value)), LONGEST_WAIT_S) if value else None
    except ValueError:
        return None


#: Lengthens the interval between create requests by 1 %, since the service's clock may be slower than this one.
SLACK = 1.01


class Stopped(Exception):
    """`Client.stop` was called while this thread was waiting or sending bytes."""


class CreatePacer:
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
