"""When a task is retried, and how long clients of a rebuild should wait."""

from math import ceil

#: The first pause, in seconds; each further pause is four times as long.
FIRST_PAUSE_S = 1.0
#: The longest pause in seconds, before the random factor.
LONGEST_PAUSE_S = 60.0
#: A retry that is due later than this many seconds from now is made at once, since the clock must have been set back.
FURTHEST_DUE_S = 2 * LONGEST_PAUSE_S
#: A document that was being read this many times when the process died fails, whatever attempts are left.
MOST_DEATHS = 10
#: From this attempt on, the pause does not grow; otherwise its computation would overflow.
_LONGEST_FROM = 4


def pause_s(attempt: int, jitter: float) -> float:
    """Return the seconds to wait after this attempt (from 1). `jitter` in [0, 1) multiplies them by 0.5 to 1.5."""
    return min(FIRST_PAUSE_S * 4.0 ** min(attempt - 1, _LONGEST_FROM - 1), LONGEST_PAUSE_S) * (0.5 + jitter)


def is_last(attempt: int, max_attempts: int, *, retryable: bool) -> bool:
    return not retryable or attempt >= max_attempts


#: Smallest and largest `Retry-After`, in seconds. Early in a rebuild, the estimated time may be much longer.
SHORTEST_S, LONGEST_S = 1, 30


def retry_after_s(elapsed_s: float, done: int, total: int | None) -> int:
    """Estimate, from the speed so far, the seconds until the remaining documents are indexed."""
    if not done or total is None:
        return SHORTEST_S
    left_s = ceil(max(elapsed_s, 0.0) / done * (total - done))
    return max(SHORTEST_S, min(left_s, LONGEST_S))
