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
#: Its source was detached from its last bucket: indexed, but not ready unless it is attached to another.
DETACHED = "detached"

COUNTED = (QUEUED, INDEXING, ACTIVE, FAILED, PENDING)


@dataclass(frozen=True, slots=True)
class RollUp:
    """A batch's status."""

    status: str
    terminal: bool
    ready: bool
    #: queued, indexing, active, failed, pending, total.
    counters: dict[str, int]


def roll_up(items: Iterable[tuple[str, bool]], *, is_expired: bool) -> RollUp:
    """From each item's state and readiness; `is_expired` is whether the time to upload is over."""
    listed = list(items)
    states = Counter(state for state, _ in listed)
    ready = sum(is_ready for _, is_ready in listed)
    # An active item is outstanding until it is ready.
    outstanding = states[PENDING] + states[QUEUED] + states[INDEXING] + listed.count((ACTIVE, False))
    counters = {state: states[state] for state in COUNTED}
    counters[FAILED] += states[GIVEN_UP] + states[DELETED] + states[DETACHED]
    counters["total"] = len(listed)
    if outstanding and not states[PENDING]:
        status = "processing"
    elif outstanding:
        status = "open" if states[PENDING] + states[GIVEN_UP] == len(listed) else "partial"
    elif is_expired and states[GIVEN_UP] == len(listed):
        status = "expired"
    elif ready == len(listed):
        status = "completed"
    else:
        status = "completed_with_failures" if ready else "failed"
    return RollUp(status, terminal=not outstanding, ready=ready == len(listed), counters=counters)
