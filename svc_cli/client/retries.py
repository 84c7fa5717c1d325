"""Decides whether and when a request is sent again, and keeps creates within the service's rate.

This is done by hand: of stamina, whose import adds 30 ms of a processor to each command, only the delays would be used.
`Retry-After`, pauses that other threads can end, and waits that aren't attempts would still be written here.
`CreatePacer` counts requests like the service's rate limiter, a token bucket. After a 429 response, all create
requests wait.
"""

import math
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from svc_cli.deadlines import Deadline
from svc_cli.errors import ApiError, BadAnswer, NetworkFailed, SvcError
from svc_cli.http_responses import OddResponse
from svc_daemon.wire.light import headers

if TYPE_CHECKING:
    from http.client import HTTPMessage

#: Codes of rate limits. Waiting for them does not count as an attempt.
PACED_CODES = frozenset({"upload_rate_limited", "quota_exceeded"})
#: Longest time that the waits of one create for a rate limit may take together: it ends even if the service never lets
#: the create pass.
LONGEST_TURN_S = 900.0
#: Longest time that the waits for the same request of another client may take together, such as a fetch from a slow
#: host. They don't count as attempts either.
LONGEST_RUN_S = 60.0
#: Waits up to this are short.
SHORT_WAIT_S = 5.0
#: The longest pause after which a waiting thread looks whether it is to stop.
LOOK_S = 0.2
_SECONDS = re.compile(r"-?[0-9]{1,300}(\.[0-9]{1,300})?")
#: The scheme and the host of an address, without a user name and password.
_HOST = re.compile(r"(https?://)(?:[^/?#]*@)?([\w.:\[\]-]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits the attempts. Delays double, with jitter, so that clients don't all retry at once."""

    #: Maximum number of attempts, including the first.
    attempts: int = 5
    first_delay_s: float = 0.2
    longest_delay_s: float = 4.0
    #: If the service asks for a longer wait (`Retry-After`), there is no retry, and the error is raised.
    longest_wait_s: float = 300.0
    jitter: random.Random = field(default_factory=random.Random)

    def delay_s(self, attempt: int, retry_after_s: float | None = None) -> float | None:
        """Return the seconds to wait after this attempt; None for no retry."""
        if attempt >= self.attempts or (retry_after_s or 0) > self.longest_wait_s:
            return None
        backoff_s = min(self.longest_delay_s, self.first_delay_s * float(2 ** (attempt - 1)))
        return max(backoff_s * self.jitter.uniform(0.5, 1.0), retry_after_s or 0)


#: Statuses that a load balancer returns if the daemon behind it has stopped or can't be reached. 504 is left out: the
#: daemon may still be working on the request, and a retry would do its work twice. Some limit the rate of requests.
PROXY_STATUSES = frozenset({429, 502, 503})
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


def foreign_response(where: str, status: int, answered: "HTTPMessage") -> SvcError:
    """Return the error for a response that does not come from the service. After a proxy's error, retries can help."""
    message = f"{where} answered {status} with a response that does not come from svc."
    if status in PROXY_STATUSES:
        asked_s = parse_retry_after(answered)
        return NetworkFailed(message, details={} if asked_s is None else {"retry_after_seconds": asked_s})
    if 300 <= status < 400:
        # Only the host: the rest of an address may be secret.
        target = _HOST.match(answered.get("Location") or "")
        place = f" to {target[1]}{target[2]}" if target else ""
        return BadAnswer(
            f"{where} answered {status}, a redirect{place}; no redirect is followed.",
            hint="give the address of the service itself: --base-url or SVC_BASE_URL.",
        )
    return BadAnswer(message)


def odd_response(where: str, error: OddResponse) -> BadAnswer:
    """Return the error for a response that breaks a limit."""
    return BadAnswer(f"{where} answered with a response that does not come from svc: {error}.")


def refusal(where: str, status: int, body: object, answered: "HTTPMessage") -> SvcError:
    """Return the error for a response with an error status; `body` is its JSON, if it has any."""
    found = body.get("error") if isinstance(body, Mapping) else None
    is_plain = isinstance(body, Mapping) and status < 500 and status not in PROXY_STATUSES
    if status < 400 or not (isinstance(found, Mapping) or is_plain):
        return foreign_response(where, status, answered)
    error = dict(found) if isinstance(found, Mapping) else {}
    # OpenAI's routes send `retryable` and the request id only in headers; a proxy sends neither.
    should = answered.get(headers.SHOULD_RETRY)
    error.setdefault("retryable", status in PROXY_STATUSES if should is None else should == "true")
    request_id = body.get("request_id") if isinstance(body, Mapping) else None
    failure = ApiError(status, error, request_id or answered.get(headers.REQUEST_ID))
    asked_s = parse_retry_after(answered)
    if asked_s is not None:
        failure.details.setdefault("retry_after_seconds", asked_s)
    return failure


def wait_s(error: SvcError) -> float | None:
    """Return how many seconds the service asks to wait; None if it asks for no wait."""
    value = error.details.get("retry_after_seconds")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return max(0.0, float(min(value, MOST_SECONDS)))


#: Longer waits that a service asks for are cut to this: no clock of Python takes every number.
MOST_SECONDS = 10.0**9


def parse_retry_after(answered: "HTTPMessage") -> float | None:
    """Return how many seconds the header `Retry-After` asks to wait; None if there is none that can be understood.

    A date is compared with the `Date` of the response, since the service's clock may differ from this one.
    """
    value = (answered.get(headers.RETRY_AFTER) or "").strip()
    if _SECONDS.fullmatch(value):
        return min(max(0.0, float(value)), MOST_SECONDS)
    until, now = _parse_date(value), _parse_date(answered.get("Date") or "")
    if until is None:
        return None
    return min(max(0.0, (until - (now or datetime.now(UTC))).total_seconds()), MOST_SECONDS)


def _parse_date(value: str) -> datetime | None:
    """Parse a date in any of the three forms that HTTP has; None if it is none."""
    try:
        found = parsedate_to_datetime(value)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


class Attempts:
    """The attempts to send one request, and the pauses between them."""

    def __init__(self, policy: RetryPolicy, deadline: Deadline, stopped: threading.Event) -> None:
        self._policy, self._deadline, self._stopped = policy, deadline, stopped
        self._made = 0
        self._asked_s = 0.0

    def pause(self, error: SvcError) -> None:
        """Wait after a failed attempt. Raises the error if there is no further attempt, or `stopped` is set."""
        asked_s = wait_s(error)
        is_running = isinstance(error, ApiError) and error.code == "request_in_progress" and asked_s is not None
        self._made += not (is_running and self._asked_s < LONGEST_RUN_S)
        delay_s = self._policy.delay_s(self._made, asked_s) if may_pass(error) else None
        if asked_s and may_pass(error) and self._made < self._policy.attempts:
            self.accept(error, asked_s, self._policy.longest_wait_s)
        if delay_s is None:
            raise error
        until_s = time.monotonic() + min(delay_s, self._deadline.left_s)
        while (left_s := until_s - time.monotonic()) > 0:
            if self._stopped.is_set():
                raise error
            time.sleep(min(left_s, LOOK_S))

    def accept(self, error: SvcError, asked_s: float, longest_s: float) -> None:
        """Count a wait that the service asks for. Raises the error if all of them are longer than this client waits."""
        self._asked_s += asked_s
        # A short wait that only the end of the time cuts is waited for: the time is over then.
        most_s = (self._deadline.timeout_s or 0.0) if asked_s <= SHORT_WAIT_S else 0.0
        most_s = min(self._policy.longest_wait_s, max(most_s, self._deadline.left_s))
        if asked_s <= most_s and self._asked_s <= longest_s:
            return
        error.is_dead = True
        error.message = f"{error.message.rstrip('.')}; the service asks to wait {describe_seconds(asked_s)}."
        error.args = (error.message,)
        at = datetime.now().astimezone() + timedelta(seconds=asked_s)
        error.hint = f"run the same command again at {at:%Y-%m-%d %H:%M:%S}: it goes on where it stopped."
        raise error


def describe_seconds(seconds: float) -> str:
    """Format a wait in whole minutes, hours or days, and in seconds below two minutes."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{math.ceil(seconds)} s"


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
        #: Set by `stop`.
        self.stopped = threading.Event()

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

    def wait(self, deadline: Deadline | None = None) -> None:
        """Wait until a create request may be sent. Raises Stopped after `stop`, and WaitTimedOut."""
        deadline = deadline or Deadline()
        with self._lock:
            self._waiting += 1
        try:
            while not self.stopped.is_set():
                left_s = self._take()
                if left_s <= 0:
                    return
                deadline.check()
                # Jitter: the waiting threads must not all compete for one token.
                pause_s = left_s + random.uniform(0, 0.02)  # noqa: S311 - randomness only for spreading
                self.stopped.wait(min(pause_s, deadline.left_s))
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
        self.stopped.set()

    def _take(self) -> float:
        """Take a token and return 0, or return the seconds to wait for one."""
        with self._lock:
            now_s = self._clock()
            left_s = max(self._opens_s, self._booked_s - self._saved_s) - now_s
            if left_s <= 0:
                self._booked_s = max(self._booked_s, now_s) + self._interval_s
            return left_s
