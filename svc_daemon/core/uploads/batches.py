"""The batch: its status, rolled up from its items at each read and never stored.

    open                     nothing was finalized yet
    partial                  some items are finalized, others still lack their bytes
    processing               every item is finalized or given up; some are on their way to ready
    completed                all ready
    completed_with_failures  all ended, some ready, some not
    failed                   all ended, none ready
    expired                  the time to upload ran out before anything was finalized

Terminal means: every item is ready, failed, given up, deleted or in no bucket any more. While one is outstanding, no
status is terminal.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

#: States of one item: its session's until it is finalized, then its source's.
PENDING, QUEUED, INDEXING, ACTIVE, FAILED = "pending", "queued", "indexing", "active", "failed"
#: Ended without a source: abandoned, canceled or expired, or its source was deleted since.
GIVEN_UP, DELETED = "given_up", "deleted"
#: Its source was taken out of its last bucket: indexed, and never ready unless it is put into another.
DETACHED = "detached"

COUNTED = (QUEUED, INDEXING, ACTIVE, FAILED, PENDING)


@dataclass(frozen=True, slots=True)
class RollUp:
    """What a batch's status answer says."""

    status: str
    terminal: bool
    ready: bool
    #: queued, indexing, active, failed, pending, total.
    counters: dict[str, int]


def roll_up(items: Iterable[tuple[str, bool]], *, is_expired: bool) -> RollUp:
    """From each item's state and readiness; `is_expired` tells whether the time to upload is over."""
    listed = list(items)
    states = Counter(state for state, _ in listed)
    ready = sum(is_ready for _, is_ready in listed)
    outstanding = _outstanding(listed)
    counters = {state: states[state] for state in COUNTED}
    counters[FAILED] += states[GIVEN_UP] + states[DELETED] + states[DETACHED]
    counters["total"] = len(listed)
    status = _status(states, ready, outstanding, len(listed), is_expired=is_expired)
    return RollUp(status, terminal=not outstanding, ready=ready == len(listed), counters=counters)


def _outstanding(items: list[tuple[str, bool]]) -> int:
    """An active item counts until it is ready."""
    return sum(state in (PENDING, QUEUED, INDEXING) or (state == ACTIVE and not ready) for state, ready in items)


def _status(states: Counter[str], ready: int, outstanding: int, total: int, *, is_expired: bool) -> str:
    if outstanding:
        return _open_status(states, total)
    if is_expired and states[GIVEN_UP] == total:
        return "expired"
    if ready == total:
        return "completed"
    return "completed_with_failures" if ready else "failed"


def _open_status(states: Counter[str], total: int) -> str:
    if states[PENDING] == 0:
        return "processing"
    return "open" if states[PENDING] + states[GIVEN_UP] == total else "partial"
