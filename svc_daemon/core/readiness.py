"""Whether a source is ready, which searches find it, and the status of a bucket's search index.

All three are computed, never stored.

A source has a status, and so has each of its memberships. A membership connects a source with one of its buckets.

    source      queued -> indexing -> active | failed   changed by the indexing worker
    membership  queued -> active                        changed by the indexing worker, together with the source
                queued -> syncing -> active | failed    changed by the sync worker, if the buckets have changed since

A source is ready if it and all its memberships (at least one) are `active`, and the team's index is not being rebuilt.
"""

from collections.abc import Collection

QUEUED, INDEXING, ACTIVE, FAILED = "queued", "indexing", "active", "failed"
SYNCING = "syncing"
MAINTENANCE = "maintenance"
#: Statuses of buckets that are archived or being deleted. All other buckets have the status ACTIVE.
ARCHIVED, DELETING = "archived", "deleting"
FILE, PAGE, QA = "file", "page", "qa"

#: A source has a status in each of its buckets. Its sync status is the first status of this list that occurs.
_SYNC_ORDER = (FAILED, QUEUED, SYNCING, ACTIVE)


def is_found_by_bucket(source_type: str) -> bool:
    """Whether searches of a bucket find sources of this type.

    They find no Q&A sources: only searches that don't go by bucket (`RetrievalPolicy.goes_by_bucket`) find these.
    """
    return source_type != QA


def sync_status(memberships: Collection[str]) -> str:
    """Combine the statuses that a source has in its buckets into one status; `queued` without buckets."""
    return min(memberships, key=_SYNC_ORDER.index, default=QUEUED)


def is_ready(status: str, memberships: Collection[str], *, in_maintenance: bool = False) -> bool:
    return status == ACTIVE and sync_status(memberships) == ACTIVE and not in_maintenance


def store_status(indexed: int, pending: int, failed_syncs: int, *, in_maintenance: bool = False) -> str:
    """Return `maintenance`, `degraded`, `indexing`, `active` or `empty`.

    `maintenance`: the team's index is being rebuilt. `degraded`: a sync is failing. `indexing`: sources are pending.
    """
    if in_maintenance:
        return MAINTENANCE
    if failed_syncs:
        return "degraded"
    if pending:
        return "indexing"
    return "active" if indexed else "empty"
