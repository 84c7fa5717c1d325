"""When a failed attempt is retried, and when a client should ask again while a search index is rebuilt."""

from math import ceil

#: The first pause, in seconds; each further one is four times as long.
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
#: Whatever is due later than this was made due by a wall clock that has been moved back since.
FURTHEST_DUE_S = 2 * LONGEST_PAUSE_S
#: From this attempt on the pause is the longest. A sync is tried without end, and a power without end overflows.
_LONGEST_FROM = 4


def pause_s(attempt: int, jitter: float) -> float:
    """Seconds to wait after `attempt` (from 1) failed; `jitter` in [0, 1) spreads it over half to one and a half."""
    return min(FIRST_PAUSE_S * 4.0 ** min(attempt - 1, _LONGEST_FROM - 1), LONGEST_PAUSE_S) * (0.5 + jitter)


def is_last(attempt: int, max_attempts: int, *, retryable: bool) -> bool:
    return not retryable or attempt >= max_attempts


#: Bounds of the advice, seconds: an estimate from few documents is wild, and nobody should sleep past the end for long.
SHORTEST_S, LONGEST_S = 1, 30


def retry_after_s(elapsed_s: float, done: int, total: int | None) -> int:
    """Whole seconds until the rest is probably read, at the speed so far."""
    if not done or total is None:
        return SHORTEST_S
    left_s = ceil(max(elapsed_s, 0.0) / done * (total - done))
    return max(SHORTEST_S, min(left_s, LONGEST_S))
