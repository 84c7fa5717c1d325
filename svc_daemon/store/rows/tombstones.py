"""What sweeping works through: tombstones of deleted sources, rows that ended long ago, and objects without a row.

- The tombstone of a replaced source is kept, so that the source that replaced it can be found.
- When a source is fetched again, its old blob gets a tombstone too. Its `source_id` is the name of the new blob.
- A detachment records that a source's buckets or title must be updated in the index.
- A process that changes a title holds a lease on a detachment, because it writes the title to the index first. If the
  process dies before it writes the title to the database, the sweeper restores the old title in the index.

While a source exists, its latest task and its deliveries are kept. The row of a delivery prevents a second webhook call
for the same event.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import inf

from svc_daemon.core import ids
from svc_daemon.databases.contract import Connection
from svc_daemon.store.rows.sources.refreshes import SETTLED


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    source_id: str
    team_id: str
    #: Name of the blob to delete; None means `source_id`.
    blob: str | None = None

    @property
    def blob_name(self) -> str:
        return self.blob or self.source_id


def create_tombstone(
    connection: Connection,
    team_id: str,
    source_id: str,
    replaced_by: str | None,
    created_at: str,
    blob: str | None = None,
) -> None:
    connection.execute(
        "INSERT INTO tombstones (source_id, team_id, blob, replaced_by, created_at)"
        " VALUES (:source_id, :team_id, :blob, :replaced_by, :created_at)"
        " ON CONFLICT (source_id) DO UPDATE SET replaced_by = excluded.replaced_by",
        {
            "source_id": source_id,
            "team_id": team_id,
            "blob": blob,
            "replaced_by": replaced_by,
            "created_at": created_at,
        },
    )


def find_successor(connection: Connection, team_id: str, source_id: str) -> str | None:
    """Return the latest existing source that replaced this one, directly or in steps; None if there is none."""
    rows = connection.execute(
        "WITH RECURSIVE line (id, step) AS ("
        " SELECT replaced_by, 1 FROM tombstones"
        "   WHERE source_id = :source_id AND team_id = :team_id AND replaced_by IS NOT NULL"
        " UNION ALL"
        " SELECT t.replaced_by, line.step + 1 FROM tombstones t JOIN line ON t.source_id = line.id"
        "   WHERE t.team_id = :team_id AND t.replaced_by IS NOT NULL AND line.step < 1000)"
        " SELECT s.id FROM line JOIN sources s ON s.id = line.id AND s.team_id = :team_id"
        " ORDER BY line.step DESC LIMIT 1",
        {"source_id": source_id, "team_id": team_id},
    ).fetchall()
    return rows[0]["id"] if rows else None


def find_successors(connection: Connection, team_id: str, source_ids: Sequence[str]) -> dict[str, str]:
    """Map the id of each replaced source to the id of its latest replacement. Other ids are left out."""
    found = {source_id: find_successor(connection, team_id, source_id) for source_id in source_ids}
    return {source_id: successor for source_id, successor in found.items() if successor is not None}


def list_to_clean(connection: Connection, *, after: str = "", limit: int) -> list[Tombstone]:
    """List up to `limit` deleted sources whose bytes or index rows may remain, ordered by id, after `after`."""
    rows = connection.execute(
        "SELECT source_id, team_id, blob FROM tombstones WHERE cleaned_at IS NULL AND source_id > :after"
        " ORDER BY source_id LIMIT :limit",
        {"after": after, "limit": limit},
    ).fetchall()
    return [Tombstone(**dict(row)) for row in rows]


def list_deleted_blobs(connection: Connection) -> set[str]:
    """List the names of blobs that were deleted on purpose."""
    rows = connection.execute("SELECT COALESCE(blob, source_id) AS name FROM tombstones").fetchall()
    return {row["name"] for row in rows}


def finish_tombstone(connection: Connection, source_id: str, cleaned_at: str) -> None:
    """Delete the source's tombstone after the cleanup. If the source was replaced, only set `cleaned_at`."""
    connection.execute(
        "DELETE FROM tombstones WHERE source_id = :source_id AND replaced_by IS NULL", {"source_id": source_id}
    )
    connection.execute(
        "UPDATE tombstones SET cleaned_at = :cleaned_at WHERE source_id = :source_id",
        {"source_id": source_id, "cleaned_at": cleaned_at},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Detachment:
    source_id: str
    team_id: str


def create_detachment(connection: Connection, team_id: str, source_id: str) -> None:
    connection.execute(
        "INSERT INTO detachments (source_id, team_id) VALUES (:source_id, :team_id) ON CONFLICT (source_id) DO NOTHING",
        {"source_id": source_id, "team_id": team_id},
    )


def begin_retitle(connection: Connection, team_id: str, source_id: str, *, now_s: float, lease_until_s: float) -> None:
    """Record that a change of the source's title begins, by a pending index update (detachment) with a lease."""
    connection.execute(
        "INSERT INTO detachments (source_id, team_id, retitles, lease_until_s)"
        " VALUES (:source_id, :team_id, 1, :lease_until_s)"
        " ON CONFLICT (source_id) DO UPDATE SET lease_until_s = excluded.lease_until_s,"
        # Changes with an expired lease don't count, because their process may have died.
        " retitles = CASE WHEN detachments.lease_until_s > :now_s THEN detachments.retitles + 1 ELSE 1 END",
        {"source_id": source_id, "team_id": team_id, "now_s": now_s, "lease_until_s": lease_until_s},
    )


def end_retitle(connection: Connection, source_id: str) -> None:
    """Record that a change of the source's title has ended. If no other title change is running, end the lease."""
    connection.execute(
        "UPDATE detachments SET retitles = retitles - 1,"
        " lease_until_s = CASE WHEN retitles > 1 THEN lease_until_s ELSE NULL END"
        " WHERE source_id = :source_id AND retitles > 0",
        {"source_id": source_id},
    )


def has_expired_retitles(connection: Connection, now_s: float, latest_s: float = inf) -> bool:
    row = connection.execute(
        "SELECT 1 FROM detachments WHERE lease_until_s IS NOT NULL"
        " AND (lease_until_s <= :now_s OR lease_until_s > :latest_s) LIMIT 1",
        {"now_s": now_s, "latest_s": latest_s},
    ).fetchone()
    return row is not None


def end_retitles(connection: Connection, now_s: float, latest_s: float = inf) -> None:
    """End the expired leases of title changes, or all leases if `now_s` is infinite.

    A lease that ends after `latest_s` counts as expired: its end was computed before the clock was set back.
    """
    connection.execute(
        "UPDATE detachments SET retitles = 0, lease_until_s = NULL"
        " WHERE lease_until_s IS NOT NULL AND (lease_until_s <= :now_s OR lease_until_s > :latest_s)",
        {"now_s": now_s, "latest_s": latest_s},
    )


def list_detached(connection: Connection, source_ids: Sequence[str]) -> set[str]:
    """Return which of the sources have a detachment (a pending index update)."""
    rows = connection.execute(
        "SELECT source_id FROM detachments WHERE source_id IN (SELECT value FROM json_each(:ids))",
        {"ids": json.dumps(source_ids)},
    ).fetchall()
    return {row["source_id"] for row in rows}


def list_detachments(connection: Connection, *, now_s: float, after: str = "", limit: int) -> list[Detachment]:
    """List up to `limit` detachments (pending index updates) without a lease, ordered by source id, after `after`.

    Teams whose index is being rebuilt are skipped.
    """
    rows = connection.execute(
        "SELECT source_id, team_id FROM detachments WHERE source_id > :after"
        " AND (lease_until_s IS NULL OR lease_until_s <= :now_s)"
        " AND NOT EXISTS (SELECT 1 FROM teams_in_maintenance r WHERE r.team_id = detachments.team_id)"
        " ORDER BY source_id LIMIT :limit",
        {"after": after, "limit": limit, "now_s": now_s},
    ).fetchall()
    return [Detachment(**dict(row)) for row in rows]


def delete_detachment(connection: Connection, source_id: str, now_s: float) -> None:
    """Delete the source's detachment (its pending index update), unless a title change has a lease on it."""
    connection.execute(
        "DELETE FROM detachments WHERE source_id = :source_id AND (lease_until_s IS NULL OR lease_until_s <= :now_s)",
        {"source_id": source_id, "now_s": now_s},
    )


def list_named_blobs(connection: Connection, names: Collection[str]) -> set[str]:
    """Return the names that sources have. Names without a source id are returned too, since they can't be looked up."""
    source_ids = {name: ids.source_of(name) for name in names}
    rows = connection.execute(
        "SELECT COALESCE(blob, id) AS name FROM sources WHERE id IN (SELECT value FROM json_each(:ids))",
        {"ids": json.dumps(sorted(filter(None, source_ids.values())))},
    ).fetchall()
    return {row["name"] for row in rows} | {name for name, source_id in source_ids.items() if source_id is None}


@dataclass(frozen=True, slots=True)
class _Kind:
    """SQL that finds and deletes the old rows of one kind."""

    #: The statement that selects the ids of old rows, sorted.
    listing: str
    #: The statements that delete one old row, dependent rows first.
    deletions: Sequence[str]


_CALLS_OF_ENDED = (
    "DELETE FROM delivery_attempts WHERE delivery_id = :id"
    " AND EXISTS (SELECT 1 FROM deliveries d WHERE d.id = :id AND d.due_at IS NULL)"
)
_KINDS = {
    "uploads": _Kind(
        "SELECT u.id FROM uploads u WHERE u.batch_id IS NULL AND u.status <> 'open'"
        " AND u.ends_at < :oldest AND u.expires_at < :oldest AND u.id > :after ORDER BY u.id LIMIT :limit",
        ["DELETE FROM uploads WHERE id = :id"],
    ),
    "batches": _Kind(
        "SELECT b.id FROM batches b WHERE b.expires_at < :oldest AND b.id > :after AND NOT EXISTS"
        " (SELECT 1 FROM uploads u WHERE u.batch_id = b.id AND (u.status = 'open' OR u.expires_at >= :oldest))"
        " ORDER BY b.id LIMIT :limit",
        ["DELETE FROM uploads WHERE batch_id = :id", "DELETE FROM batches WHERE id = :id"],
    ),
    "tasks": _Kind(
        "SELECT t.id FROM tasks t WHERE t.finished_at < :oldest AND t.id > :after AND NOT EXISTS"
        " (SELECT 1 FROM sources s WHERE s.id = t.source_id AND s.task_id = t.id) ORDER BY t.id LIMIT :limit",
        ["DELETE FROM cascades WHERE task_id = :id", "DELETE FROM tasks WHERE id = :id"],
    ),
    # A delivery with a due time was scheduled again, so it is kept.
    "deliveries": _Kind(
        "SELECT d.id FROM deliveries d WHERE d.due_at IS NULL AND d.created_at < :oldest AND d.id > :after"
        " AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.id = d.source_id) ORDER BY d.id LIMIT :limit",
        [
            _CALLS_OF_ENDED,
            "DELETE FROM deliveries WHERE id = :id AND due_at IS NULL",
        ],
    ),
}
KINDS = tuple(_KINDS)


def list_ended(connection: Connection, kind: str, oldest: str, *, after: str, limit: int) -> list[str]:
    """List ids of rows that ended before `oldest`, in all teams, after the id `after`. `kind` is one of `KINDS`."""
    rows = connection.execute(_KINDS[kind].listing, {"oldest": oldest, "after": after, "limit": limit})
    return [row["id"] for row in rows]


def delete_ended(connection: Connection, kind: str, ids: Sequence[str]) -> None:
    """Delete rows that `list_ended` returned."""
    for statement in _KINDS[kind].deletions:
        connection.executemany(statement, [{"id": each} for each in ids])


#: For leases, see `tasks.list_expired`.
_LEASE_ENDED = "(lease_until_s <= :now_s OR lease_until_s > :latest_s)"
#: Work that a node should have begun by `:before`, or that a node has begun whose lease has expired.
_OVERLOOKED = (
    f"tasks WHERE finished_at IS NULL AND status = 'running' AND {_LEASE_ENDED}",
    "tasks WHERE finished_at IS NULL AND status = 'queued' AND created_at < :before AND next_attempt_at IS NULL",
    "tasks WHERE finished_at IS NULL AND (next_attempt_at < :before OR next_attempt_at > :far)",
    f"memberships WHERE lease_until_s IS NOT NULL AND {_LEASE_ENDED}",
    "memberships WHERE due_at IS NOT NULL AND (due_at < :before OR due_at > :far)",
    "deliveries WHERE due_at IS NOT NULL AND (due_at < :before OR due_at > :far)",
    f"sources WHERE refresh_due_at < :before{SETTLED}",
    "uploads WHERE status = 'open' AND expires_at < :before",
    "tombstones WHERE cleaned_at IS NULL",
    "detachments",
)


def has_overlooked(connection: Connection, before: str, far: str, now_s: float, latest_s: float) -> bool:
    """Whether work was due before the time `before`, is due after `far`, or has an expired lease.

    Work is due later than `far` only if the clock was set back.
    """
    query = "SELECT " + " OR ".join(f"EXISTS (SELECT 1 FROM {each})" for each in _OVERLOOKED) + " AS found"  # noqa: S608
    times = {"before": before, "far": far, "now_s": now_s, "latest_s": latest_s}
    return bool(connection.execute(query, times).fetchone()["found"])


def has_far_pauses(connection: Connection, latest: str, latest_call: str, latest_refresh: str) -> bool:
    """Whether a retry or a refresh is due later than any pause lasts."""
    row = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM tasks"
        "   WHERE finished_at IS NULL AND status = 'queued' AND next_attempt_at > :latest)"
        " OR EXISTS (SELECT 1 FROM memberships WHERE due_at > :latest)"
        " OR EXISTS (SELECT 1 FROM deliveries WHERE due_at > :latest_call)"
        " OR EXISTS (SELECT 1 FROM sources WHERE refresh_due_at > :latest_refresh) AS found",
        {"latest": latest, "latest_call": latest_call, "latest_refresh": latest_refresh},
    ).fetchone()
    return bool(row["found"])


def recall_far_pauses(connection: Connection, now: str, latest: str, latest_call: str, latest_refresh: str) -> int:
    """Make what is due later than any pause lasts due now, because the clock was set back. Returns how many."""
    attempts = connection.execute(
        "UPDATE tasks SET next_attempt_at = NULL"
        " WHERE finished_at IS NULL AND status = 'queued' AND next_attempt_at > :latest",
        {"latest": latest},
    )
    due = {"now": now, "latest": latest, "latest_call": latest_call, "latest_refresh": latest_refresh}
    syncs = connection.execute("UPDATE memberships SET due_at = :now WHERE due_at > :latest", due)
    calls = connection.execute("UPDATE deliveries SET due_at = :now WHERE due_at > :latest_call", due)
    refreshes = connection.execute(
        "UPDATE sources SET refresh_due_at = :now WHERE refresh_due_at > :latest_refresh", due
    )
    return sum(each.rowcount for each in (attempts, syncs, calls, refreshes))
