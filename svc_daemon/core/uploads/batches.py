"""The status of a batch, computed from its files.

    open                     the batch has not been finalized yet, nor has any file
    partial                  the batch or some files were finalized, others are still waiting for their bytes
    processing               every file is finalized or given up; some are not ready yet
    completed                all files are ready
    completed_with_failures  all files have ended, some of them are ready
    failed                   all files have ended, none of them is ready
    expired                  the upload deadline passed before any file was finalized

A file has ended if it is ready, failed, given up, deleted or in no bucket any more. What a batch may contain is
judged in `core.uploads.manifests`.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

#: States of a file. It is `pending` until its upload session is finalized; then it has the state of its source.
PENDING, QUEUED, INDEXING, ACTIVE, FAILED = "pending", "queued", "indexing", "active", "failed"
#: States of a file without a source: its session ended without success, or the source was deleted.
GIVEN_UP, DELETED = "given_up", "deleted"
#: State of a file whose source is in no bucket any more.
DETACHED = "detached"

COUNTED = (QUEUED, INDEXING, ACTIVE, FAILED, PENDING)


@dataclass(frozen=True, slots=True)
class RollUp:
    """The status of a batch, and the number of files in each state."""

    status: str
    terminal: bool
    ready: bool
    #: How many files are in each state, and how many there are (`total`).
    counters: dict[str, int]


def roll_up(items: Iterable[tuple[str, bool]], *, is_expired: bool, is_finalized: bool = False) -> RollUp:
    """Compute the status from the state and readiness of each file.

    `is_expired`: the upload deadline has passed. `is_finalized`: the batch was finalized with files missing.
    """
    listed = list(items)
    states = Counter(state for state, _ in listed)
    ready = sum(is_ready for _, is_ready in listed)
    # A file whose source is active counts as outstanding until the source is ready.
    outstanding = states[PENDING] + states[QUEUED] + states[INDEXING] + listed.count((ACTIVE, False))
    counters = {state: states[state] for state in COUNTED}
    counters[FAILED] += states[GIVEN_UP] + states[DELETED] + states[DETACHED]
    counters["total"] = len(listed)
    if outstanding and not states[PENDING]:
        status = "processing"
    elif outstanding:
        is_begun = is_finalized or states[PENDING] + states[GIVEN_UP] < len(listed)
        status = "partial" if is_begun else "open"
    elif is_expired and states[GIVEN_UP] == len(listed):
        status = "expired"
    elif ready == len(listed):
        status = "completed"
    else:
        status = "completed_with_failures" if ready else "failed"
    return RollUp(status, terminal=not outstanding, ready=ready == len(listed), counters=counters)
