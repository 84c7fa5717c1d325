"""Lists a bucket's sources: which of them, in which order, and how many failed for which reason.

Lists are sorted by the copies of `SORTED` in `memberships`, whose indexes give a page without the rest of the bucket.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from svc_daemon.core import readiness
from svc_daemon.databases.contract import MOST_ROWS, Connection
from svc_daemon.store.rows.refreshes import STALE
from svc_daemon.store.rows.sources import UNREAD_SCAN, SourceRow

#: Up to so many sources with the wanted status are found first and sorted then. If there are more, all sources are read
#: in the wanted order.
MOST_SORTED = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFilter:
    """Which of a bucket's sources to list; None means any."""

    #: `ready` (searches of this bucket find the source), `all`, `unread_scan`, or a status of `SourceRow`.
    status: str = "ready"
    type: str | None = None
    tag: str | None = None
    #: Words that stand in the title or in the file name. Upper and lower case are the same.
    words: tuple[str, ...] = ()
    title: str | None = None
    sha256: str | None = None
    mapping: str | None = None
    #: Code of the error of a failed source.
    error_code: str | None = None
    #: Whether the last scheduled refresh failed.
    stale: bool | None = None
    #: One of `SORTED`; None means by id, which is nearly by `created_at`. Sources with equal values are ordered by id.
    sort: str | None = None
    descending: bool = False
    #: List only what follows this source's id in the order, and this value if the list is sorted.
    after: str = ""
    after_value: str | int | None = None
    limit: int = MOST_ROWS

    @property
    def first_status(self) -> str | None:
        """Return the status that all listed sources have; None if they may have any."""
        statuses = {"all": None, "ready": readiness.ACTIVE, "unread_scan": readiness.FAILED}
        return statuses.get(self.status, self.status)


def list_sources(connection: Connection, team_id: str, bucket_id: str, chosen: SourceFilter) -> list[SourceRow]:
    """List the bucket's sources that match the filter, by default oldest first."""
    conditions, values = _select_members(team_id, bucket_id, chosen)
    # Reading a bucket in the order of its ids is the fastest way to find what few of its sources have.
    is_rare = len(conditions) > len(_select_members(team_id, bucket_id, SourceFilter(status=chosen.status))[0])
    if chosen.first_status is not None:
        conditions.append("m.source_status = :status")
        has_many = "SELECT 1 FROM memberships m WHERE m.bucket_id = :bucket_id AND m.source_status = :status"
        if chosen.sort and not is_rare:
            found = connection.execute(f"{has_many} LIMIT 1 OFFSET :few", {**values, "few": MOST_SORTED})
            is_rare = found.fetchone() is None
    way, beyond = (" DESC", "<") if chosen.descending else ("", ">")
    column = f"m.source_{chosen.sort}"
    if chosen.sort and is_rare:
        # As an expression, the column hides its index from the planner.
        column = f"COALESCE({column}, {column})"
    order = f"m.source_id{way}"
    if chosen.sort:
        order = f"{column}{way}, {order}"
    if chosen.sort and chosen.after:
        conditions.append(f"({column}, m.source_id) {beyond} (:after_value, :after)")
    elif chosen.after:
        # It is compared in both tables, so that PostgreSQL skips the earlier rows of each.
        conditions.append("m.source_id > :after AND s.id > :after")
    rows = connection.execute(
        "SELECT v.* FROM (SELECT m.source_id FROM memberships m JOIN sources s ON s.id = m.source_id"  # noqa: S608
        f" WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT :limit) AS page"
        " JOIN source_views v ON v.id = page.source_id",
        values,
    ).fetchall()
    listed = [SourceRow.from_row(row) for row in rows]
    # A join may change the order of the rows, though it seldom does. Python compares texts as the databases do.
    return sorted(listed, key=lambda each: (getattr(each, chosen.sort or "id"), each.id), reverse=chosen.descending)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """Failed sources of a bucket whose errors have the same code."""

    code: str
    count: int
    #: How many of them another try can help.
    retryable: int
    #: The id of one of them.
    example_id: str


def group_failures(connection: Connection, team_id: str, bucket_id: str, chosen: SourceFilter) -> list[FailureGroup]:
    """Count the bucket's failed sources that match the filter by the code of their error, the most first."""
    conditions, values = _select_members(team_id, bucket_id, replace(chosen, status=readiness.FAILED))
    rows = connection.execute(
        "SELECT json_extract(s.error, '$.code') AS code, COUNT(*) AS members, MAX(s.id) AS example_id,"  # noqa: S608
        " SUM(CASE WHEN json_type(s.error, '$.retryable') = 'true' THEN 1 ELSE 0 END) AS retryable"
        " FROM memberships m JOIN sources s ON s.id = m.source_id"
        f" WHERE m.source_status = :status AND {' AND '.join(conditions)}"
        " GROUP BY json_extract(s.error, '$.code') ORDER BY COUNT(*) DESC, json_extract(s.error, '$.code')",
        values,
    ).fetchall()
    return [
        FailureGroup(
            code=row["code"] or "",
            count=int(row["members"]),
            retryable=int(row["retryable"]),
            example_id=row["example_id"],
        )
        for row in rows
    ]


def _select_members(team_id: str, bucket_id: str, chosen: SourceFilter) -> tuple[list[str], dict[str, Any]]:
    """Return the conditions and the parameters that select the bucket's sources, but for their status and order."""
    conditions = ["m.bucket_id = :bucket_id", "m.team_id = :team_id"]
    if chosen.status == "ready":
        conditions.append("m.sync_status = 'active'")
    if chosen.status == "unread_scan":
        conditions.append(UNREAD_SCAN)
    if chosen.tag is not None:
        conditions.append("EXISTS (SELECT 1 FROM json_each(s.tags) WHERE value = :tag)")
    if chosen.error_code is not None:
        conditions.append("json_extract(s.error, '$.code') = :error_code")
    if chosen.stale is not None:
        conditions.append(f"{STALE} = {int(chosen.stale)}")
    conditions += [f"s.{name} = :{name}" for name in ("type", "title", "sha256", "mapping") if getattr(chosen, name)]
    values = {
        name: getattr(chosen, name) for name in chosen.__slots__ if name not in ("words", "sort", "descending", "stale")
    }
    for place, word in enumerate(chosen.words):
        # Escape the wildcards of LIKE.
        values[f"word{place}"] = "%" + re.sub(r"[\\%_]", r"\\\g<0>", word.lower()) + "%"
        within = f"LIKE :word{place} ESCAPE '\\'"
        conditions.append(f"(lowercase(s.title) {within} OR lowercase(s.filename) {within})")
    return conditions, {**values, "team_id": team_id, "bucket_id": bucket_id, "status": chosen.first_status}


def count_unfinished(connection: Connection, bucket_ids: Sequence[str]) -> dict[str, int]:
    """Return how many sources of these buckets are queued, and how many are being indexed, as tasks are counted."""
    rows = connection.execute(
        "SELECT source_status AS status, COUNT(DISTINCT source_id) AS sources FROM memberships"
        " WHERE bucket_id IN (SELECT value FROM json_each(:ids)) AND source_status IN ('queued', 'indexing')"
        " GROUP BY source_status",
        {"ids": json.dumps(bucket_ids)},
    ).fetchall()
    counts = {row["status"]: int(row["sources"]) for row in rows}
    return {"queued": counts.get(readiness.QUEUED, 0), "running": counts.get(readiness.INDEXING, 0)}
