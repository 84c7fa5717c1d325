"""The status of a batch: computed from its items at each read, never stored.

    open                     nothing has been finalized yet
    partial                  some items are finalized, others are still waiting for their bytes
    processing               every item is finalized or given up; some are not ready yet
    completed                all ready
    completed_with_failures  all have ended, some are ready
    failed                   all have ended, none are ready
    expired                  the upload deadline passed before anything was finalized

A batch is terminal if every item is ready, failed, given up, deleted or no longer in any bucket.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

#: States of an item: those of its upload session until it is finalized, then those of its source.
PENDING, QUEUED, INDEXING, ACTIVE, FAILED = "pending", "queued", "indexing", "active", "failed"
#: States of an item that has no source: its session was abandoned, canceled or expired (`given_up`), or its source was
#: deleted (`deleted`).
GIVEN_UP, DELETED = "given_up", "deleted"
#: The source was detached from its last bucket: it is indexed, but not ready until it is attached to another.
DETACHED = "detached"

COUNTED = (QUEUED, INDEXING, ACTIVE, FAILED, PENDING)


@dataclass(frozen=True, slots=True)
class RollUp:
    """The status of a batch, computed from its items, and the number of items in each state."""

    status: str
    terminal: bool
    ready: bool
    #: Number of items by state (queued, indexing, active, failed, pending), and their `total`.
    counters: dict[str, int]


def roll_up(items: Iterable[tuple[str, bool]], *, is_expired: bool) -> RollUp:
    """Compute the status from each item's state and readiness; `is_expired` means the upload deadline has passed."""
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
