"""Decides for `transport` and `storage` whether a failed request is retried, and after what delay."""

import random
from dataclasses import dataclass, field

from svc_cli.errors import ApiError, NetworkFailed

#: Error codes of rate limits: the client waits as long as the service asks, and this does not count as an attempt.
PACED_CODES = frozenset({"upload_rate_limited", "quota_exceeded"})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits the number of attempts. Delays double, with jitter so that clients don't all retry at the same time."""

    #: Maximum number of attempts, including the first.
    attempts: int = 5
    first_delay_s: float = 0.2
    longest_delay_s: float = 4.0
    #: The longest `Retry-After` to wait for; if the service asks for a longer wait, the error is raised.
    longest_wait_s: float = 30.0
    jitter: random.Random = field(default_factory=random.Random)

    def delay_s(self, attempt: int, retry_after_s: float | None = None) -> float | None:
        """Return the delay in seconds after attempt number `attempt`; None if the request should not be retried."""
        if attempt >= self.attempts or (retry_after_s or 0) > self.longest_wait_s:
            return None
        backoff_s = min(self.longest_delay_s, self.first_delay_s * float(2 ** (attempt - 1)))
        return max(backoff_s * self.jitter.uniform(0.5, 1.0), retry_after_s or 0)


#: Error codes for failures of the host that the service fetches from. They are not retried, because they usually last
#: longer than all delays together, and each retry would count against the rate limit for create requests.
REMOTE_CODES = frozenset({"url_fetch_failed", "website_analysis_failed"})


def is_worth_retrying(status: int, code: str, retryable: bool) -> bool:
    """Whether the same request may succeed a moment later.

    Of all 409 responses, only `request_in_progress` (an identical request is still running) is worth a retry: other
    conflicts last longer.
    """
    if code in REMOTE_CODES:
        return False
    if status in {408, 429, 502, 503, 504}:
        return retryable
    return code == "request_in_progress"


def may_pass(error: Exception) -> bool:
    """Whether a request that failed with this error, such as a broken connection, may succeed a moment later."""
    if isinstance(error, ApiError):
        return error.code == "offset_mismatch" or is_worth_retrying(error.status, error.code, error.retryable)
    return isinstance(error, NetworkFailed)


def wait_s(error: Exception) -> float | None:
    """Return the seconds that the service asks clients to wait; None if it doesn't ask."""
    value = error.details.get("retry_after_seconds") if isinstance(error, ApiError) else None
    return float(value) if isinstance(value, int | float) else None


def parse_retry_after(value: str | None) -> float | None:
    """Parse a `Retry-After` header, in seconds; None if it is missing or a date."""
    try:
        return max(0.0, float(value)) if value else None
    except ValueError:
        return None
