"""Buckets: named collections of sources, and the progress of their deletions.

Each node counts its changes in a row of its own, so that nodes don't wait for each other. The revision is the sum of
these rows. Don't read the sum in a transaction that writes: it would conflict with all other changes of the bucket.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from svc_daemon.core import readiness
from svc_daemon.core.text.chunking import READER_VERSION, ChunkingOptions
from svc_daemon.databases.contract import Connection, Parameters, Row, values_of
from svc_daemon.errors import NotFound
from svc_daemon.store.columns import column_values, insertion, read_objects
from svc_daemon.store.rows.sources.recognized_pages import count_scans
from svc_daemon.store.rows.sources.refreshes import STALE
from svc_daemon.store.rows.sources.sources import UNREAD_SCAN
from svc_daemon.store.rows.tasks import TaskRow
from svc_daemon.wire.buckets import ChunkSizes
from svc_daemon.wire.light.error_codes import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRow:
    """A stored bucket and its settings."""

    id: str
    team_id: str
    slug: str
    name: str
    description: str = ""
    #: `active`, `archived` or `deleting`.
    status: str = readiness.ACTIVE
    metadata: dict[str, Any]
    #: Chunk sizes for documents; None means the defaults.
    chunking: ChunkSizes | None = None
    #: A part of the bucket's revision: `list_revisions` also adds counts of changes.
    revision: int = 1
    last_delete_error: str | None = None
    created_at: str
    updated_at: str

    @classmethod
    def from_row(cls, row: Row) -> "BucketRow":
        values = values_of(row)
        read_objects(values, "metadata", "chunking")
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """Counts of a bucket's members (its sources), all at one moment."""

    #: A number that grows with each change of the members.
    revision: int = 1
    #: Ids of the members that are completely in the search index, oldest first; empty if not requested.
    active_ids: tuple[str, ...]
    #: Number of members by source type.
    types: dict[str, int]
    #: Number of members that searches of the bucket can find (see `core.readiness.is_found_by_bucket`).
    retrievable: int
    #: Number of members that are completely in the search index.
    indexed: int
    #: Number of members that are not completely in the search index yet.
    pending: int
    #: Number of members whose indexing failed.
    failed: int
    #: Number of pending members whose last update in the search index failed. It will be retried.
    failed_syncs: int
    #: Whether the team's index is being rebuilt.
    in_maintenance: bool = False
    #: Number of members to be split again with other chunk sizes.
    rechunking: int = 0
    #: Number of indexed members that an older version of the readers has read.
    older_reader: int = 0
    #: Number of members that keep themselves up to date and could not: their last refresh failed.
    stale: int = 0
    #: Number of members that wait until text is recognised on their pages, and of these pages.
    scans: int = 0
    scan_pages: int = 0
    #: Number of members that failed because nothing could recognise their text.
    unread_scans: int = 0
    #: Total size of the members' files.
    size_bytes: int = 0

    @property
    def total(self) -> int:
        return sum(self.types.values())


def create_bucket(connection: Connection, bucket: BucketRow) -> bool:
    """Create the bucket. Returns False if the team already has a bucket with this slug."""
    statement = f"{insertion(BucketRow, 'buckets')} ON CONFLICT (team_id, slug) DO NOTHING"
    cursor = connection.execute(statement, column_values(bucket))
    return cursor.rowcount == 1


def find_bucket(connection: Connection, team_id: str, bucket: str) -> BucketRow | None:
    """Find a bucket by its id or slug, in any status."""
    row = connection.execute(
        "SELECT * FROM buckets WHERE team_id = :team_id AND (id = :bucket OR slug = :bucket)",
        {"team_id": team_id, "bucket": bucket},
    ).fetchone()
    return BucketRow.from_row(row) if row else None


def get_bucket(connection: Connection, team_id: str, bucket: str) -> BucketRow:
    """Find a bucket by its id or slug, in any status; raises NotFound."""
    found = find_bucket(connection, team_id, bucket)
    if found is None:
        raise NotFound(ErrorCode.BUCKET_NOT_FOUND, f"There is no bucket {bucket!r}.", bucket=bucket)
    return found


def list_buckets(connection: Connection, team_id: str, statuses: Collection[str]) -> list[BucketRow]:
    """List the team's buckets that have one of the statuses, oldest first."""
    rows = connection.execute(
        "SELECT * FROM buckets WHERE team_id = :team_id ORDER BY id", {"team_id": team_id}
    ).fetchall()
    return [BucketRow.from_row(row) for row in rows if row["status"] in statuses]


def chunking_of(bucket: BucketRow) -> ChunkingOptions:
    """Return the chunk sizes for the bucket's documents: the defaults if none are stored, or damaged ones."""
    try:
        return ChunkingOptions(**bucket.chunking) if bucket.chunking else ChunkingOptions()
    except (TypeError, ValueError):
        return ChunkingOptions()


def update_bucket(connection: Connection, bucket: BucketRow) -> None:
    """Update the fields that a `PATCH` request can change."""
    connection.execute(
        "UPDATE buckets SET name = :name, description = :description, metadata = :metadata, status = :status,"
        " chunking = :chunking, updated_at = :updated_at WHERE team_id = :team_id AND id = :id",
        column_values(replace(bucket, chunking=bucket.chunking or None)),
    )


def mark_deleting(connection: Connection, bucket: BucketRow, updated_at: str) -> None:
    """Set the bucket's status to `deleting`, and clear the error of an earlier deletion."""
    connection.execute(
        "UPDATE buckets SET status = 'deleting', last_delete_error = NULL, updated_at = :updated_at"
        " WHERE team_id = :team_id AND id = :id",
        {"id": bucket.id, "team_id": bucket.team_id, "updated_at": updated_at},
    )
    touch_bucket(connection, bucket.id)


def restore_bucket(connection: Connection, bucket_id: str, reason: str, updated_at: str) -> None:
    """Make the bucket active again and record why its deletion failed."""
    connection.execute(
        "UPDATE buckets SET status = 'active', last_delete_error = :reason, updated_at = :updated_at"
        " WHERE id = :id AND status = 'deleting'",
        {"id": bucket_id, "reason": reason, "updated_at": updated_at},
    )
    touch_bucket(connection, bucket_id)


def delete_bucket(connection: Connection, bucket_id: str) -> None:
    """Delete the bucket's row, so that its slug can be used again. The bucket must have no sources."""
    connection.execute(
        "DELETE FROM bucket_changes WHERE bucket_id IN (SELECT id FROM buckets WHERE id = :id AND status = 'deleting')",
        {"id": bucket_id},
    )
    connection.execute("DELETE FROM buckets WHERE id = :id AND status = 'deleting'", {"id": bucket_id})


def touch_bucket(connection: Connection, bucket_id: str) -> None:
    """Increment the bucket's revision, after a change that is visible in its list of sources."""
    _touch(connection, "id = :id", {"id": bucket_id})


def touch_buckets(connection: Connection, bucket_ids: Iterable[str]) -> None:
    """Increment the revision of each of these buckets once."""
    for bucket_id in sorted(set(bucket_ids)):
        touch_bucket(connection, bucket_id)


def raise_revisions(connection: Connection, least: int) -> None:
    """Raise the revision of every bucket to at least this number."""
    connection.execute("UPDATE buckets SET revision = :least WHERE revision < :least", {"least": least})


def touch_buckets_of(connection: Connection, source_id: str) -> None:
    """Increment the revision of every bucket of the source."""
    _touch(connection, "id IN (SELECT bucket_id FROM memberships WHERE source_id = :id)", {"id": source_id})


def touch_buckets_of_team(connection: Connection, team_id: str) -> None:
    """Increment the revision of all the team's buckets, because their sources became ready or unready."""
    _touch(connection, "team_id = :id", {"id": team_id})


def _touch(connection: Connection, condition: str, parameters: Parameters) -> None:
    """Increment the revisions of the selected buckets. Each process has its own rows, so processes don't conflict."""
    connection.execute(
        "INSERT INTO bucket_changes (bucket_id, writer, changes)"  # noqa: S608 - one of three conditions of ours
        f" SELECT id, writer_number(), 1 FROM buckets WHERE {condition}"
        " ON CONFLICT (bucket_id, writer) DO UPDATE SET changes = bucket_changes.changes + 1",
        parameters,
    )


def list_revisions(connection: Connection, bucket_ids: Collection[str]) -> dict[str, int]:
    """Map the bucket ids to their revisions. Buckets that don't exist are left out."""
    rows = connection.execute(
        "SELECT b.id, b.revision + COALESCE("
        "   (SELECT SUM(c.changes) FROM bucket_changes c WHERE c.bucket_id = b.id), 0) AS revision"
        " FROM buckets b WHERE b.id IN (SELECT value FROM json_each(:ids))",
        {"ids": json.dumps(list(bucket_ids))},
    ).fetchall()
    return {row["id"]: row["revision"] for row in rows}


def take_census(connection: Connection, bucket_id: str, *, members: bool = True) -> Census:
    """Count the bucket's members. With `members`, also list the ids of those in the search index."""
    groups = connection.execute(
        "SELECT s.type, s.status, m.sync_status, COUNT(*) AS members, SUM(s.rechunk) AS rechunking,"  # noqa: S608
        " SUM(CASE WHEN s.reader < :reader AND s.status = 'active' THEN 1 ELSE 0 END) AS older_reader,"
        f" SUM({STALE}) AS stale, SUM(CASE WHEN {UNREAD_SCAN} THEN 1 ELSE 0 END) AS unread_scans,"
        " SUM(s.size_bytes) AS size_bytes FROM memberships m"
        " JOIN sources s ON s.id = m.source_id WHERE m.bucket_id = :bucket_id GROUP BY s.type, s.status, m.sync_status",
        {"bucket_id": bucket_id, "reader": READER_VERSION},
    ).fetchall()
    maintenance = connection.execute(
        "SELECT 1 FROM buckets b JOIN teams_in_maintenance r ON r.team_id = b.team_id WHERE b.id = :id",
        {"id": bucket_id},
    ).fetchone()
    scans, scan_pages = count_scans(connection, bucket_id)
    types, sums = dict[str, int](), ("rechunking", "older_reader", "stale", "unread_scans", "size_bytes")
    counts = dict.fromkeys(("indexed", "pending", "failed", "failed_syncs", "retrievable"), 0)
    for group in groups:
        count = group["members"]
        types[group["type"]] = types.get(group["type"], 0) + count
        if group["status"] == readiness.ACTIVE and group["sync_status"] == readiness.ACTIVE:
            counts["indexed"] += count
            counts["retrievable"] += count if readiness.is_found_by_bucket(group["type"]) else 0
        elif group["status"] == readiness.FAILED:
            counts["failed"] += count
        else:
            counts["pending"] += count
            counts["failed_syncs"] += count if group["sync_status"] == readiness.FAILED else 0
    return Census(
        revision=list_revisions(connection, [bucket_id]).get(bucket_id, 1),
        active_ids=_list_active(connection, bucket_id) if members else (),
        types=types,
        **counts,
        in_maintenance=maintenance is not None,
        scans=scans,
        scan_pages=scan_pages,
        **{name: sum(int(group[name]) for group in groups) for name in sums},
    )


def _list_active(connection: Connection, bucket_id: str) -> tuple[str, ...]:
    rows = connection.execute(
        "SELECT m.source_id FROM memberships m JOIN sources s ON s.id = m.source_id"
        " WHERE m.bucket_id = :bucket_id AND m.sync_status = 'active' AND s.status = 'active' ORDER BY m.source_id",
        {"bucket_id": bucket_id},
    ).fetchall()
    return tuple(row["source_id"] for row in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """The progress of a bucket's deletion."""

    task_id: str
    team_id: str
    bucket_id: str
    #: Sources with ids up to this one have been processed.
    after_id: str = ""
    #: Number of the bucket's sources when its deletion was requested.
    total: int
    #: Number of sources deleted, because they were in no other bucket.
    deleted: int = 0
    #: Number of sources only detached, because they are in another bucket.
    detached: int = 0
    #: Number of sources that could not be deleted.
    failed: int = 0
    #: The last failure, as a sentence.
    reason: str | None = None

    @classmethod
    def from_row(cls, row: Row) -> "Cascade":
        return cls(**dict(row))


def create_cascade(connection: Connection, cascade: Cascade) -> None:
    connection.execute(
        "INSERT INTO cascades (task_id, team_id, bucket_id, after_id, total, deleted, detached, failed)"
        " VALUES (:task_id, :team_id, :bucket_id, '', :total, 0, 0, 0)",
        {
            "task_id": cascade.task_id,
            "team_id": cascade.team_id,
            "bucket_id": cascade.bucket_id,
            "total": cascade.total,
        },
    )


def find_cascade(connection: Connection, task_id: str) -> Cascade | None:
    row = connection.execute("SELECT * FROM cascades WHERE task_id = :task_id", {"task_id": task_id}).fetchone()
    return Cascade.from_row(row) if row else None


def find_running_cascade(connection: Connection, bucket_id: str) -> Cascade | None:
    """Return the bucket's unfinished deletion, or None."""
    row = connection.execute(
        "SELECT c.* FROM cascades c JOIN tasks t ON t.id = c.task_id"
        " WHERE c.bucket_id = :bucket_id AND t.finished_at IS NULL",
        {"bucket_id": bucket_id},
    ).fetchone()
    return Cascade.from_row(row) if row else None


def update_cascade(connection: Connection, task: TaskRow, cascade: Cascade) -> None:
    """Store the progress, unless the worker has lost its claim on `task`."""
    held = {"id": task.id, "token": task.token}
    connection.execute(
        "UPDATE cascades SET after_id = :after_id, deleted = :deleted, detached = :detached, failed = :failed,"
        " reason = :reason WHERE task_id = :id"
        " AND EXISTS (SELECT 1 FROM tasks t WHERE t.id = :id AND t.token = :token AND t.status = 'running')",
        held
        | {
            "after_id": cascade.after_id,
            "deleted": cascade.deleted,
            "detached": cascade.detached,
            "failed": cascade.failed,
            "reason": cascade.reason,
        },
    )
