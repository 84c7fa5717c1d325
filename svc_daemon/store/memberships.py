"""Memberships: a source in a bucket, and how far its sync into the search index is.

queued -> syncing -> active          the sync worker claims, writes to the provider, then activates
syncing -> queued                    the lease ran out, or the process died
syncing -> failed -> syncing         the provider refused; tried again after a pause, without end
"""

from dataclasses import dataclass
from sqlite3 import Connection

from svc_daemon.store.buckets import touch_bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncClaim:
    """A membership that this worker may write; `attempt` is the fencing token."""

    source_id: str
    bucket_id: str
    team_id: str
    attempt: int


def create_membership(connection: Connection, team_id: str, source_id: str, bucket_id: str, created_at: str) -> bool:
    """True when it was made; False when the source is a member already."""
    cursor = connection.execute(
        "INSERT INTO memberships (source_id, bucket_id, team_id, sync_status, attempt, created_at)"
        " VALUES (:source_id, :bucket_id, :team_id, 'queued', 0, :created_at)"
        " ON CONFLICT (source_id, bucket_id) DO NOTHING",
        {"source_id": source_id, "bucket_id": bucket_id, "team_id": team_id, "created_at": created_at},
    )
    if cursor.rowcount == 1:
        touch_bucket(connection, bucket_id)
    return cursor.rowcount == 1


def delete_membership(connection: Connection, source_id: str, bucket_id: str) -> bool:
    """True when there was one."""
    cursor = connection.execute(
        "DELETE FROM memberships WHERE source_id = :source_id AND bucket_id = :bucket_id",
        {"source_id": source_id, "bucket_id": bucket_id},
    )
    if cursor.rowcount == 1:
        touch_bucket(connection, bucket_id)
    return cursor.rowcount == 1


def claim_syncs(connection: Connection, now: str, lease_until_s: float, limit: int) -> list[SyncClaim]:
    """Take memberships of indexed sources whose turn has come, oldest first."""
    rows = connection.execute(
        "UPDATE memberships SET sync_status = 'syncing', attempt = attempt + 1, lease_until_s = :lease_until_s"
        " WHERE (source_id, bucket_id) IN ("
        "   SELECT m.source_id, m.bucket_id FROM memberships m JOIN sources s ON s.id = m.source_id"
        "   WHERE m.sync_status IN ('queued', 'failed') AND s.status = 'active'"
        "   AND (m.next_attempt_at IS NULL OR m.next_attempt_at <= :now) ORDER BY m.source_id LIMIT :limit)"
        " RETURNING source_id, bucket_id, team_id, attempt",
        {"now": now, "lease_until_s": lease_until_s, "limit": limit},
    ).fetchall()
    return [SyncClaim(**dict(row)) for row in rows]


def activate_membership(connection: Connection, claim: SyncClaim) -> bool:
    """False when the claim is stale: the membership is gone or another holds it."""
    cursor = connection.execute(
        "UPDATE memberships SET sync_status = 'active', lease_until_s = NULL, next_attempt_at = NULL"
        " WHERE source_id = :source_id AND bucket_id = :bucket_id AND attempt = :attempt AND sync_status = 'syncing'",
        {"source_id": claim.source_id, "bucket_id": claim.bucket_id, "attempt": claim.attempt},
    )
    if cursor.rowcount == 1:
        touch_bucket(connection, claim.bucket_id)
    return cursor.rowcount == 1


def fail_membership(connection: Connection, claim: SyncClaim, next_attempt_at: str) -> None:
    """The provider refused; another attempt follows."""
    connection.execute(
        "UPDATE memberships SET sync_status = 'failed', lease_until_s = NULL, next_attempt_at = :next_attempt_at"
        " WHERE source_id = :source_id AND bucket_id = :bucket_id AND attempt = :attempt AND sync_status = 'syncing'",
        {
            "source_id": claim.source_id,
            "bucket_id": claim.bucket_id,
            "attempt": claim.attempt,
            "next_attempt_at": next_attempt_at,
        },
    )


def requeue_memberships(connection: Connection, source_id: str) -> None:
    """The content is being indexed anew: it must be synced again before it is ready."""
    connection.execute(
        "UPDATE memberships SET sync_status = 'queued', lease_until_s = NULL, next_attempt_at = NULL,"
        " attempt = attempt + 1 WHERE source_id = :source_id",
        {"source_id": source_id},
    )


def release_expired_syncs(connection: Connection, now_s: float) -> int:
    """Put back what its worker has left; with `now_s` infinite, everything (at boot)."""
    cursor = connection.execute(
        "UPDATE memberships SET sync_status = 'queued', lease_until_s = NULL"
        " WHERE sync_status = 'syncing' AND lease_until_s <= :now_s",
        {"now_s": now_s},
    )
    return cursor.rowcount


def next_sync_at(connection: Connection) -> str | None:
    """When the earliest refused sync is due; None when none waits for its time."""
    row = connection.execute(
        "SELECT MIN(next_attempt_at) AS due FROM memberships WHERE sync_status = 'failed'"
    ).fetchone()
    due: str | None = row["due"]
    return due
