"""Memberships: which source is in which bucket, and which must be split into chunks again.

A membership is synced when the search index has it too. Its sync status changes like this:

    queued -> active               the document was indexed with all its current buckets
    queued -> syncing -> active    the sync worker claimed the membership and updated the index
    syncing -> queued              the lease expired, or the process died
    syncing -> failed -> syncing   the index failed; retried after a delay, without limit

A membership is claimed only once its source is indexed. While a team's index is being rebuilt, its syncs wait.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from svc_daemon.core import readiness
from svc_daemon.databases.contract import Connection
from svc_daemon.store.rows.buckets import touch_bucket, touch_buckets
from svc_daemon.store.schemas import COPIED


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncClaim:
    """A worker's claim on a membership. Every claim increments `attempt`, which makes earlier claims invalid."""

    source_id: str
    bucket_id: str
    team_id: str
    attempt: int = 0


def create_memberships(
    connection: Connection, claims: Sequence[SyncClaim], created_at: str, due_at: str | None = None
) -> bool:
    """Create the memberships of stored sources. Returns False if all exist already."""
    copies = ", ".join(f"source_{name}" for name in COPIED)
    cursor = connection.executemany(
        "INSERT INTO memberships"  # noqa: S608
        f" (source_id, bucket_id, team_id, sync_status, attempt, due_at, created_at, {copies})"
        " SELECT s.id, :bucket_id, :team_id, 'queued', CAST(:attempt AS BIGINT), CAST(:due_at AS TEXT), :created_at,"
        f" {', '.join(f's.{name}' for name in COPIED)} FROM sources s WHERE s.id = :source_id"
        " ON CONFLICT (source_id, bucket_id) DO NOTHING",
        [
            {
                "source_id": claim.source_id,
                "bucket_id": claim.bucket_id,
                "team_id": claim.team_id,
                "attempt": claim.attempt,
                "due_at": due_at,
                "created_at": created_at,
            }
            for claim in claims
        ],
    )
    if cursor.rowcount > 0:
        touch_buckets(connection, (claim.bucket_id for claim in claims))
    return cursor.rowcount > 0


def delete_membership(connection: Connection, source_id: str, bucket_id: str) -> str | None:
    """Delete the membership and return its sync status; None if it didn't exist."""
    rows = connection.execute(
        "DELETE FROM memberships WHERE source_id = :source_id AND bucket_id = :bucket_id RETURNING sync_status",
        {"source_id": source_id, "bucket_id": bucket_id},
    ).fetchall()
    if not rows:
        return None
    touch_bucket(connection, bucket_id)
    status: str = rows[0]["sync_status"]
    return status


def delete_memberships(connection: Connection, source_id: str) -> None:
    """Delete all memberships of the source."""
    rows = connection.execute(
        "DELETE FROM memberships WHERE source_id = :source_id RETURNING bucket_id", {"source_id": source_id}
    ).fetchall()
    for row in rows:
        touch_bucket(connection, row["bucket_id"])


def list_unplaced(connection: Connection, team_id: str, source_ids: list[str]) -> set[str]:
    """Return which of the sources are in no bucket, not even one being deleted."""
    rows = connection.execute(
        "SELECT s.id FROM sources s WHERE s.team_id = :team_id AND s.id IN (SELECT value FROM json_each(:ids))"
        " AND NOT EXISTS (SELECT 1 FROM memberships m WHERE m.source_id = s.id)",
        {"team_id": team_id, "ids": json.dumps(source_ids)},
    ).fetchall()
    return {row["id"] for row in rows}


def count_members(connection: Connection, bucket_id: str) -> int:
    row = connection.execute(
        "SELECT COUNT(*) AS members FROM memberships WHERE bucket_id = :bucket_id", {"bucket_id": bucket_id}
    ).fetchone()
    return int(row["members"])


def list_member_ids(connection: Connection, bucket_id: str, after_id: str, limit: int) -> list[str]:
    """List the ids of the bucket's sources in any state, sorted, after `after_id`."""
    rows = connection.execute(
        "SELECT source_id FROM memberships WHERE bucket_id = :bucket_id AND source_id > :after_id"
        " ORDER BY source_id LIMIT :limit",
        {"bucket_id": bucket_id, "after_id": after_id, "limit": limit},
    ).fetchall()
    return [row["source_id"] for row in rows]


def list_searched_places(connection: Connection, team_id: str) -> dict[str, tuple[str, ...] | None]:
    """Map each source of the team to the sorted ids of the buckets that the search index must have for it.

    A source is mapped to None until the index is up to date with all its buckets. Q&A sources are left out, by the rule
    of `core.readiness.is_found_by_bucket`.
    """
    rows = connection.execute(
        "SELECT m.source_id, m.bucket_id, m.sync_status FROM memberships m JOIN sources s ON s.id = m.source_id"
        " WHERE m.team_id = :team_id AND s.type <> :unsearched ORDER BY m.source_id, m.bucket_id",
        {"team_id": team_id, "unsearched": readiness.QA},
    )
    places: dict[str, tuple[str, ...] | None] = {}
    for source_id, bucket_id, status in rows:
        before = places.get(source_id, ())
        places[source_id] = None if before is None or status != readiness.ACTIVE else (*before, bucket_id)
    return places


def schedule_syncs(connection: Connection, source_id: str, due_at: str) -> None:
    """Schedule the source's memberships to be written to the search index at `due_at`."""
    connection.execute(
        "UPDATE memberships SET sync_status = 'queued', due_at = :due_at, lease_until_s = NULL"
        " WHERE source_id = :source_id",
        {"source_id": source_id, "due_at": due_at},
    )


def claim_syncs(connection: Connection, now: str, lease_until_s: float, limit: int) -> list[SyncClaim]:
    """Claim memberships that are due, the longest overdue first."""
    rows = connection.execute(
        "UPDATE memberships SET sync_status = 'syncing', attempt = attempt + 1, due_at = NULL,"
        " lease_until_s = :lease_until_s WHERE (source_id, bucket_id) IN ("
        "   SELECT source_id, bucket_id FROM memberships WHERE due_at IS NOT NULL AND due_at <= :now"
        "   AND NOT EXISTS (SELECT 1 FROM teams_in_maintenance r WHERE r.team_id = memberships.team_id)"
        "   ORDER BY due_at LIMIT :limit)"
        " RETURNING source_id, bucket_id, team_id, attempt",
        {"now": now, "lease_until_s": lease_until_s, "limit": limit},
    ).fetchall()
    return [SyncClaim(**dict(row)) for row in rows]


def activate_membership(connection: Connection, claim: SyncClaim) -> bool:
    """Set the membership to `active`. Returns False if this claim is no longer the latest."""
    cursor = connection.execute(
        "UPDATE memberships SET sync_status = 'active', lease_until_s = NULL"
        " WHERE source_id = :source_id AND bucket_id = :bucket_id AND attempt = :attempt AND sync_status = 'syncing'",
        {"source_id": claim.source_id, "bucket_id": claim.bucket_id, "attempt": claim.attempt},
    )
    return cursor.rowcount == 1


def activate_memberships(connection: Connection, source_ids: Sequence[str]) -> None:
    """Set all memberships of these sources to `active`. The index must already have their current buckets."""
    connection.execute(
        "UPDATE memberships SET sync_status = 'active', lease_until_s = NULL, due_at = NULL"
        " WHERE source_id IN (SELECT value FROM json_each(:ids))",
        {"ids": json.dumps(source_ids)},
    )


def reschedule_sync(connection: Connection, claim: SyncClaim, due_at: str, *, has_failed: bool) -> None:
    """Schedule another attempt to write the membership to the index at `due_at`, and record whether this one failed."""
    connection.execute(
        "UPDATE memberships SET sync_status = :status, lease_until_s = NULL, due_at = :due_at"
        " WHERE source_id = :source_id AND bucket_id = :bucket_id AND attempt = :attempt AND sync_status = 'syncing'",
        {
            "source_id": claim.source_id,
            "bucket_id": claim.bucket_id,
            "attempt": claim.attempt,
            "status": "failed" if has_failed else "queued",
            "due_at": due_at,
        },
    )


def suspend_syncs(connection: Connection, source_id: str) -> None:
    """Unschedule the source's memberships, because the source is indexed again. Workers lose their claims."""
    connection.execute(
        "UPDATE memberships SET sync_status = 'queued', lease_until_s = NULL, due_at = NULL, attempt = attempt + 1"
        " WHERE source_id = :source_id",
        {"source_id": source_id},
    )


def renew_syncs(connection: Connection, bucket_id: str, due_at: str) -> None:
    """Schedule the bucket's indexed sources again, because a failed deletion may have removed some from the index."""
    connection.execute(
        "UPDATE memberships SET sync_status = 'queued', lease_until_s = NULL, due_at = :due_at, attempt = attempt + 1"
        " WHERE bucket_id = :bucket_id AND source_id IN (SELECT id FROM sources WHERE status = 'active')",
        {"bucket_id": bucket_id, "due_at": due_at},
    )


def withdraw_syncs(connection: Connection, team_id: str, due_at: str) -> None:
    """Requeue the team's claimed memberships, because its index is about to be removed. Workers lose their claims."""
    connection.execute(
        "UPDATE memberships SET sync_status = 'queued', lease_until_s = NULL, due_at = :due_at, attempt = attempt + 1"
        " WHERE team_id = :team_id AND sync_status = 'syncing'",
        {"team_id": team_id, "due_at": due_at},
    )


def has_expired_syncs(connection: Connection, now_s: float, latest_s: float = inf) -> bool:
    row = connection.execute(
        "SELECT 1 FROM memberships WHERE lease_until_s IS NOT NULL"
        " AND (lease_until_s <= :now_s OR lease_until_s > :latest_s) LIMIT 1",
        {"now_s": now_s, "latest_s": latest_s},
    ).fetchone()
    return row is not None


def release_expired_syncs(connection: Connection, now: str, now_s: float, latest_s: float = inf) -> int:
    """Release expired claims on memberships, or all claims if `now_s` is infinite.

    A claim that ends after `latest_s` counts as expired: its end was computed before the clock was set back.
    """
    cursor = connection.execute(
        "UPDATE memberships SET sync_status = 'queued', lease_until_s = NULL, due_at = :now"
        " WHERE lease_until_s IS NOT NULL AND (lease_until_s <= :now_s OR lease_until_s > :latest_s)",
        {"now": now, "now_s": now_s, "latest_s": latest_s},
    )
    return cursor.rowcount


def next_sync_due(connection: Connection) -> str | None:
    """Return when the next membership is due, or None. Teams whose index is being rebuilt don't count."""
    row = connection.execute(
        "SELECT MIN(due_at) AS due FROM memberships WHERE due_at IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM teams_in_maintenance r WHERE r.team_id = memberships.team_id)"
    ).fetchone()
    due: str | None = row["due"]
    return due


def mark_rechunks(connection: Connection, team_id: str, bucket_id: str) -> int:
    """Mark the sources whose oldest bucket is this one, so that they are split again. Returns their number.

    A source has the chunk sizes of its oldest bucket.
    """
    cursor = connection.execute(
        "UPDATE sources SET rechunk = 1 WHERE team_id = :team_id"
        " AND id IN (SELECT source_id FROM memberships WHERE bucket_id = :bucket_id)"
        " AND NOT EXISTS (SELECT 1 FROM memberships m JOIN buckets b ON b.id = m.bucket_id AND b.status <> 'deleting'"
        "   WHERE m.source_id = sources.id AND m.bucket_id < :bucket_id)",
        {"team_id": team_id, "bucket_id": bucket_id},
    )
    return cursor.rowcount


def find_next_older(connection: Connection, reader: int, after: tuple[int, str]) -> tuple[str, str] | None:
    """Find the next indexed or failed source that a reader older than `reader` has read. Returns team id and source id.

    The sources are in the order of their reader and id; `after` is this pair of the last one. Teams whose index is
    being rebuilt are skipped.
    """
    row = connection.execute(
        "SELECT team_id, id FROM sources WHERE reader < :reader AND (reader, id) > (:after_reader, :after_id)"
        " AND status IN ('active', 'failed')"
        " AND NOT EXISTS (SELECT 1 FROM teams_in_maintenance r WHERE r.team_id = sources.team_id)"
        " ORDER BY reader, id LIMIT 1",
        {"reader": reader, "after_reader": after[0], "after_id": after[1]},
    ).fetchone()
    return (row["team_id"], row["id"]) if row else None


def find_next_rechunk(connection: Connection, after_id: str) -> tuple[str, str] | None:
    """Find the next indexed source after `after_id` that must be split again. Returns team id and source id, or None.

    Teams whose index is being rebuilt are skipped.
    """
    row = connection.execute(
        "SELECT team_id, id FROM sources WHERE rechunk = 1 AND id > :after_id AND status = 'active'"
        " AND NOT EXISTS (SELECT 1 FROM teams_in_maintenance r WHERE r.team_id = sources.team_id)"
        " ORDER BY id LIMIT 1",
        {"after_id": after_id},
    ).fetchone()
    return (row["team_id"], row["id"]) if row else None
