"""Rows that ended long ago, which sweeping deletes: upload sessions, batches, tasks and webhook deliveries.

While a source exists, its latest task and its deliveries are kept. The row of a delivery prevents a second webhook call
for the same event.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from svc_daemon.databases.contract import Connection


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
