"""Schedules of sources that are fetched again by themselves: columns of the source's own row.

So a try that finds nothing new writes one row, and a source that is deleted has no schedule left.
"""

import json
from dataclasses import replace
from typing import NamedTuple

from svc_daemon.databases.contract import Connection
from svc_daemon.store.columns import column_values
from svc_daemon.store.rows.sources.sources import SourceRow

#: 1 for a source `s` whose last try failed, else 0. A damaged schedule counts as none.
STALE = (
    "CASE WHEN s.refresh IS NULL OR NOT json_valid(s.refresh) THEN 0"
    " WHEN CAST(json_extract(s.refresh, '$.failures') AS BIGINT) > 0 THEN 1 ELSE 0 END"
)
#: Sources that can be fetched now. Others are due as soon as they are indexed, their team's index is rebuilt, or one of
#: their buckets is active again.
SETTLED = (
    " AND status IN ('active', 'failed')"
    " AND NOT EXISTS (SELECT 1 FROM teams_in_maintenance r WHERE r.team_id = sources.team_id)"
    " AND (EXISTS (SELECT 1 FROM memberships m JOIN buckets b ON b.id = m.bucket_id AND b.status = 'active'"
    "   WHERE m.source_id = sources.id) OR NOT EXISTS (SELECT 1 FROM memberships m WHERE m.source_id = sources.id))"
)
_FREE = f"{SETTLED} AND refresh_host NOT IN (SELECT value FROM json_each(:busy))"  # noqa: S608 - a condition of ours


class DueRefresh(NamedTuple):
    """A source whose next try is due."""

    team_id: str
    source_id: str
    host: str


def list_due_refreshes(connection: Connection, now: str, busy: list[str], limit: int) -> list[DueRefresh]:
    """List the longest overdue source of each host, but none of the hosts in `busy`, to which a try is going on."""
    rows = connection.execute(
        "SELECT team_id, id, refresh_host FROM ("  # noqa: S608 - a condition of ours
        "   SELECT team_id, id, refresh_host, refresh_due_at,"
        "   ROW_NUMBER() OVER (PARTITION BY refresh_host ORDER BY refresh_due_at, id) AS turn"
        f"   FROM sources WHERE refresh_due_at <= :now{_FREE}) AS waiting"
        " WHERE turn = 1 ORDER BY refresh_due_at, id LIMIT :limit",
        {"now": now, "busy": json.dumps(busy), "limit": limit},
    ).fetchall()
    return [DueRefresh(*row) for row in rows]


def next_refresh_due(connection: Connection, busy: list[str]) -> str | None:
    """Return when the next source is due, without those of hosts in `busy`; None if there is none."""
    row = connection.execute(
        f"SELECT refresh_due_at FROM sources WHERE refresh_due_at IS NOT NULL{_FREE}"  # noqa: S608
        " ORDER BY refresh_due_at LIMIT 1",
        {"busy": json.dumps(busy)},
    ).fetchone()
    return str(row["refresh_due_at"]) if row else None


def update_refresh(connection: Connection, source: SourceRow) -> None:
    """Store the source's schedule, and the facts of its last fetch."""
    connection.execute(
        "UPDATE sources SET refresh = :refresh, refresh_host = :refresh_host, refresh_due_at = :refresh_due_at,"
        " fetched = :fetched WHERE id = :id AND team_id = :team_id",
        column_values(source),
    )


def postpone_refresh(connection: Connection, source_id: str, due_at: str | None) -> None:
    """Set when the source is tried next, without reading its row; None for never."""
    connection.execute(
        "UPDATE sources SET refresh_due_at = :due_at WHERE id = :id AND refresh_due_at IS NOT NULL",
        {"id": source_id, "due_at": due_at},
    )


def end_swap(connection: Connection, source: SourceRow) -> SourceRow:
    """Record that the index has the text of the stored bytes. Returns the source's row."""
    if source.fetched is None or not source.is_swapping:
        return source
    ended = replace(source, fetched={**source.fetched, "is_swapping": False})
    update_refresh(connection, ended)
    return ended


def spare_host(connection: Connection, host: str, until: str) -> None:
    """Put off all sources of a host that are due before `until`."""
    connection.execute(
        "UPDATE sources SET refresh_due_at = :until WHERE refresh_host = :host AND refresh_due_at < :until",
        {"host": host, "until": until},
    )
