"""SQL for removing a team: ends its work, then deletes its rows."""

import json
from collections.abc import Collection, Sequence

from svc_daemon.databases.contract import Connection
from svc_daemon.store.tables import Table, delete_team_rows
from svc_daemon.store.uploads import UploadRow
from svc_daemon.wire.tasks import TEAM_REMOVAL

#: Tables whose rows are deleted together with the team, because a team without them counts as damaged.
_LAST = ("usage", "agents", "tasks")


def find_removal(connection: Connection, team_id: str) -> str | None:
    """Return the id of the unfinished task that removes the team, or None."""
    row = connection.execute(
        "SELECT id FROM tasks WHERE type = :type AND finished_at IS NULL AND team_id = :team_id",
        {"type": TEAM_REMOVAL, "team_id": team_id},
    ).fetchone()
    return row["id"] if row else None


def revoke_keys(connection: Connection, team_id: str, revoked_at: str) -> None:
    """Revoke all keys of the team."""
    connection.execute(
        "UPDATE keys SET revoked_at = :revoked_at WHERE team_id = :team_id AND revoked_at IS NULL",
        {"team_id": team_id, "revoked_at": revoked_at},
    )


def list_open_uploads(connection: Connection, team_id: str, after_id: str, limit: int) -> list[UploadRow]:
    rows = connection.execute(
        "SELECT * FROM uploads WHERE status = 'open' AND team_id = :team_id AND id > :after ORDER BY id LIMIT :limit",
        {"team_id": team_id, "after": after_id, "limit": limit},
    ).fetchall()
    return [UploadRow.from_row(row) for row in rows]


def list_uploads_among(connection: Connection, team_id: str, upload_ids: Collection[str]) -> list[str]:
    """Return which of the upload sessions belong to the team."""
    rows = connection.execute(
        "SELECT id FROM uploads WHERE team_id = :team_id AND id IN (SELECT value FROM json_each(:ids))",
        {"team_id": team_id, "ids": json.dumps(sorted(upload_ids))},
    ).fetchall()
    return [row["id"] for row in rows]


def list_idle_sources(connection: Connection, team_id: str, limit: int) -> list[str]:
    """List up to `limit` of the team's sources that no worker is processing."""
    rows = connection.execute(
        "SELECT s.id FROM sources s WHERE s.team_id = :team_id"
        " AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.source_id = s.id AND t.status = 'running')"
        " ORDER BY s.id LIMIT :limit",
        {"team_id": team_id, "limit": limit},
    ).fetchall()
    return [row["id"] for row in rows]


def is_busy(connection: Connection, team_id: str) -> bool:
    """Whether the team has sources, open uploads, or unfinished tasks other than its removal."""
    (count,) = connection.execute(
        "SELECT (SELECT COUNT(*) FROM sources WHERE team_id = :team_id)"
        " + (SELECT COUNT(*) FROM uploads WHERE status = 'open' AND team_id = :team_id)"
        " + (SELECT COUNT(*) FROM tasks WHERE finished_at IS NULL AND team_id = :team_id AND type <> :type)",
        {"team_id": team_id, "type": TEAM_REMOVAL},
    ).fetchone()
    return bool(count)


def has_uncleaned(connection: Connection, team_id: str) -> bool:
    """Whether bytes of the team's deleted sources remain."""
    row = connection.execute(
        "SELECT 1 FROM tombstones WHERE cleaned_at IS NULL AND team_id = :team_id LIMIT 1", {"team_id": team_id}
    ).fetchone()
    return row is not None


def delete_most_rows(connection: Connection, tables: Sequence[Table], team_id: str, limit: int) -> int:
    """Delete at most `limit` rows of the team, and return how many. Rows that `delete_team` deletes are kept.

    In `tables`, each table must come before those that refer to it.
    """
    kept = {"tasks": f"type = '{TEAM_REMOVAL}'", "agents": "1 = 1", "usage": "1 = 1"}
    deleted = 0
    for table in reversed(tables):
        deleted += delete_team_rows(
            connection, table, team_id, limit - deleted, except_for=kept.get(table.name, "1 = 0")
        )
        if deleted >= limit:
            break
    return deleted


def delete_team(connection: Connection, team_id: str) -> None:
    """Delete the team, and its rows in the tables `_LAST`. Its rows in all other tables must already be deleted."""
    for table in _LAST:
        connection.execute(f"DELETE FROM {table} WHERE team_id = :team_id", {"team_id": team_id})  # noqa: S608
    connection.execute("DELETE FROM teams WHERE id = :team_id", {"team_id": team_id})
