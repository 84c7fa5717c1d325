"""Detachments: sources whose buckets or title must still be updated in the index.

A process that changes a title holds a lease on a detachment, because it writes the title to the index first. If the
process dies before it writes the title to the database, the sweeper restores the old title in the index.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from svc_daemon.databases.contract import Connection


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
