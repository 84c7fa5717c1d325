"""Computes the pause before a failed attempt is retried, and the `Retry-After` of searches during a rebuild."""

from math import ceil

#: The first pause, in seconds; each further pause is four times as long.
FIRST_PAUSE_S = 1.0
#: The longest pause, in seconds, before jitter.
LONGEST_PAUSE_S = 60.0
#: If the next attempt is due in more than this many seconds, the wall clock must have been set back since it was
#: scheduled, so the attempt is made at once.
FURTHEST_DUE_S = 2 * LONGEST_PAUSE_S
#: From this attempt on, the pause no longer grows. Without this limit, the power would overflow for syncs, which are
#: retried indefinitely.
_LONGEST_FROM = 4


def pause_s(attempt: int, jitter: float) -> float:
    """Compute the seconds to wait after failed `attempt` (from 1); `jitter` in [0, 1) scales them by 0.5 to 1.5."""
    return min(FIRST_PAUSE_S * 4.0 ** min(attempt - 1, _LONGEST_FROM - 1), LONGEST_PAUSE_S) * (0.5 + jitter)


def is_last(attempt: int, max_attempts: int, *, retryable: bool) -> bool:
    return not retryable or attempt >= max_attempts


#: Bounds of the `Retry-After` estimate, in seconds. The estimate is unreliable at first, when few documents are done,
#: and without a maximum clients might wait far too long.
SHORTEST_S, LONGEST_S = 1, 30


def retry_after_s(elapsed_s: float, done: int, total: int | None) -> int:
    """Estimate the whole seconds until the remaining documents are indexed, from the speed so far."""
    if not done or total is None:
        return SHORTEST_S
    left_s = ceil(max(elapsed_s, 0.0) / done * (total - done))
    return max(SHORTEST_S, min(left_s, LONGEST_S))
