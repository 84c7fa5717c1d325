"""Whether a source is ready, and the status of a bucket's store: computed, never stored.

    source      queued -> indexing -> active | failed      moved by the indexing worker
    membership  queued -> syncing -> active | failed       moved by the bucket sync worker; failed is retried

`ready` needs status `active`, at least one membership, every membership `active`, and an index that is not in
maintenance. Q and A sources are never found through a bucket, but they are as ready as they get by the same rule.
"""

from collections.abc import Collection

QUEUED, INDEXING, ACTIVE, FAILED = "queued", "indexing", "active", "failed"
SYNCING = "syncing"
MAINTENANCE = "maintenance"
#: A bucket that is none of these is ACTIVE.
ARCHIVED, DELETING = "archived", "deleting"
FILE, PAGE, QA = "file", "page", "qa"

#: The least advanced first: a source's sync status is that of its slowest membership.
_SYNC_ORDER = (FAILED, QUEUED, SYNCING, ACTIVE)


def sync_status(memberships: Collection[str]) -> str:
    """One status for all memberships; `queued` for a source that belongs nowhere."""
    return min(memberships, key=_SYNC_ORDER.index, default=QUEUED)


def is_ready(status: str, memberships: Collection[str], *, in_maintenance: bool = False) -> bool:
    return status == ACTIVE and sync_status(memberships) == ACTIVE and not in_maintenance


def store_status(indexed: int, pending: int, failed_syncs: int, *, in_maintenance: bool = False) -> str:
    """`maintenance` while the team's index is rebuilt, `degraded` while a sync fails, `indexing` while something is
    on its way, else `active`, or `empty`.
    """
    if in_maintenance:
        return MAINTENANCE
    if failed_syncs:
        return "degraded"
    if pending:
        return "indexing"
    return "active" if indexed else "empty"
