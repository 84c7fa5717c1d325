"""When a failed attempt is retried, and when a client should ask again while a search index is rebuilt."""

from math import ceil

#: The first pause, in seconds; each further one is four times as long.
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
#: A longer pause can only result from a wall clock that was set back.
FURTHEST_DUE_S = 2 * LONGEST_PAUSE_S
#: From this attempt on the pause does not grow: a sync is retried without end, and the power would overflow.
_LONGEST_FROM = 4


def pause_s(attempt: int, jitter: float) -> float:
    """Seconds to wait after `attempt` (from 1) failed; `jitter` in [0, 1) spreads it over half to one and a half."""
    return min(FIRST_PAUSE_S * 4.0 ** min(attempt - 1, _LONGEST_FROM - 1), LONGEST_PAUSE_S) * (0.5 + jitter)


def is_last(attempt: int, max_attempts: int, *, retryable: bool) -> bool:
    return not retryable or attempt >= max_attempts


#: Bounds of the estimate, in seconds: with few documents it is unreliable, and clients should not wait much too long.
SHORTEST_S, LONGEST_S = 1, 30


def retry_after_s(elapsed_s: float, done: int, total: int | None) -> int:
    """Whole seconds until the rest is probably indexed, at the speed so far."""
    if not done or total is None:
        return SHORTEST_S
    left_s = ceil(max(elapsed_s, 0.0) / done * (total - done))
    return max(SHORTEST_S, min(left_s, LONGEST_S))
