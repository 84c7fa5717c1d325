"""Marks and finds sources that must be split into chunks again, because their bucket's chunk sizes have changed."""

from svc_daemon.databases.contract import Connection


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
