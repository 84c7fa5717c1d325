"""Computes the pause before a failed attempt is retried, and the `Retry-After` of searches during an index rebuild."""

from math import ceil

#: The first pause, in seconds; each further pause is four times as long.
FIRST_PAUSE_S = 1.0
#: The longest pause in seconds, before it is multiplied by a random factor.
LONGEST_PAUSE_S = 60.0
#: If an attempt is due in more than this many seconds, the clock was set back after it was scheduled, so the attempt is
#: made at once.
FURTHEST_DUE_S = 2 * LONGEST_PAUSE_S
#: From this attempt on, the pause does not grow. Syncs are retried without limit, so without this the computation of
#: the pause would overflow.
_LONGEST_FROM = 4


def pause_s(attempt: int, jitter: float) -> float:
    """Compute the seconds to wait after this attempt (from 1). `jitter` in [0, 1) multiplies them by 0.5 to 1.5."""
    return min(FIRST_PAUSE_S * 4.0 ** min(attempt - 1, _LONGEST_FROM - 1), LONGEST_PAUSE_S) * (0.5 + jitter)


def is_last(attempt: int, max_attempts: int, *, retryable: bool) -> bool:
    return not retryable or attempt >= max_attempts


#: Bounds of the estimated `Retry-After`, in seconds. At first, when few documents are done, the estimate is unreliable,
#: and without a maximum clients might wait far too long.
SHORTEST_S, LONGEST_S = 1, 30


def retry_after_s(elapsed_s: float, done: int, total: int | None) -> int:
    """Estimate, from the speed so far, the number of whole seconds until the remaining documents are indexed."""
    if not done or total is None:
        return SHORTEST_S
    left_s = ceil(max(elapsed_s, 0.0) / done * (total - done))
    return max(SHORTEST_S, min(left_s, LONGEST_S))
