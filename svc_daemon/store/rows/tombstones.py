"""Tombstones of deleted sources, whose bytes and index rows may remain.

- The tombstone of a replaced source is kept, so that the source that replaced it can be found.
- When a source is fetched again, its old blob gets a tombstone too. Its `source_id` is the name of the new blob.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from svc_daemon.databases.contract import Connection


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
