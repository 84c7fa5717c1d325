"""Decides whether and when a failed request is retried."""

import random
from dataclasses import dataclass, field

from svc_cli.errors import ApiError, BadAnswer, NetworkFailed, SvcError

#: Codes of rate limits. Waiting for them does not count as an attempt.
PACED_CODES = frozenset({"upload_rate_limited", "quota_exceeded"})


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


def wait_s(error: Exception) -> float | None:
    """Return how many seconds the service asks to wait; None if it asks for no wait."""
    value = error.details.get("retry_after_seconds") if isinstance(error, ApiError) else None
    return float(value) if isinstance(value, int | float) else None


def parse_retry_after(value: str | None) -> float | None:
    """Parse a `Retry-After` header, in seconds; None for a date."""
    try:
        return max(0.0, float(value)) if value else None
    except ValueError:
        return None
