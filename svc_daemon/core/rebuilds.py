"""When to ask again while a team's search index is made anew."""

from math import ceil

#: Bounds of the advice, seconds: an estimate from few documents is wild, and nobody should sleep past the end for long.
SHORTEST_S, LONGEST_S = 1, 30


def retry_after_s(elapsed_s: float, done: int, total: int | None) -> int:
    """Whole seconds until the rest is probably read, at the speed so far."""
    if not done or total is None:
        return SHORTEST_S
    left_s = ceil(max(elapsed_s, 0.0) / done * (total - done))
    return max(SHORTEST_S, min(left_s, LONGEST_S))
