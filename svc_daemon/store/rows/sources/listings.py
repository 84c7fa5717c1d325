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
from svc_daemon.store.rows.sources.refreshes import STALE
from svc_daemon.store.rows.sources.sources import UNREAD_SCAN, SourceRow

#: So many sources are looked at in the wanted order. If too few of them match a filter to fill a page, all sources that
#: match are found first and sorted then.
LOOKED_AT = 4000


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
    conditions, values = _select_members(bucket_id, chosen)
    is_filtered = len(conditions) > 1 or chosen.first_status is not None
    if chosen.first_status is not None:
        conditions.append("m.source_status = :status")
    way, beyond = (" DESC", "<") if chosen.descending else ("", ">")
    order, column = f"m.source_id{way}", f"m.source_{chosen.sort}"
    if chosen.sort and not is_filtered:
        tries = [("memberships", column)]
    elif chosen.sort:
        behind = f" AND ({column}, m.source_id) {beyond} (:after_value, :after)" if chosen.after else ""
        first = (
            f"(SELECT * FROM memberships m WHERE m.bucket_id = :bucket_id{behind}"  # noqa: S608
            f" ORDER BY {column}{way}, {order} LIMIT {LOOKED_AT})"
        )
        tries = [(first, column), ("memberships", f"s.{chosen.sort}")]
    else:
        tries = [("memberships", "")]
        # It is compared in both tables, so that PostgreSQL skips the earlier rows of each.
        conditions += ["m.source_id > :after AND s.id > :after"] if chosen.after else []
    for members, by in tries:
        behind = f" AND ({by}, m.source_id) {beyond} (:after_value, :after)" if by and chosen.after else ""
        rows = connection.execute(
            f"SELECT v.* FROM (SELECT m.source_id FROM {members} m JOIN sources s ON s.id = m.source_id"  # noqa: S608
            f" WHERE {' AND '.join(conditions)}{behind} ORDER BY {f'{by}{way}, ' if by else ''}{order} LIMIT :limit)"
            " AS page JOIN source_views v ON v.id = page.source_id",
            values,
        ).fetchall()
        if len(rows) == chosen.limit:
            break
    listed = [SourceRow.from_row(row) for row in rows if row["team_id"] == team_id]
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
    conditions, values = _select_members(bucket_id, replace(chosen, status=readiness.FAILED))
    values["team_id"] = team_id
    rows = connection.execute(
        "SELECT json_extract(s.error, '$.code') AS code, COUNT(*) AS members, MAX(s.id) AS example_id,"  # noqa: S608
        " SUM(CASE WHEN json_type(s.error, '$.retryable') = 'true' THEN 1 ELSE 0 END) AS retryable"
        " FROM memberships m JOIN sources s ON s.id = m.source_id"
        f" WHERE m.team_id = :team_id AND m.source_status = :status AND {' AND '.join(conditions)}"
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


def _select_members(bucket_id: str, chosen: SourceFilter) -> tuple[list[str], dict[str, Any]]:
    """Return the conditions and the parameters that select the bucket's sources, but for their status and order."""
    conditions = ["m.bucket_id = :bucket_id"]
    if chosen.status == "ready":
        conditions.append("m.sync_status = 'active'")
    if chosen.status == "unread_scan":
        conditions.append(UNREAD_SCAN)
    if chosen.tag is not None:
        # The first condition is implied, and spares parsing the tags of most sources.
        conditions.append("like(:tag_json, s.tags, '\\')")
        conditions.append("EXISTS (SELECT 1 FROM json_each(s.tags) WHERE value = :tag)")
    if chosen.error_code is not None:
        conditions.append("json_extract(s.error, '$.code') = :error_code")
    if chosen.stale is not None:
        conditions.append(f"{STALE} = {int(chosen.stale)}")
    if chosen.title:
        # As in `memberships`, whose index has it.
        conditions.append("m.source_title = :title")
    conditions += [f"s.{name} = :{name}" for name in ("type", "sha256", "mapping") if getattr(chosen, name)]
    values = {
        name: getattr(chosen, name) for name in chosen.__slots__ if name not in ("words", "sort", "descending", "stale")
    }
    values["tag_json"] = _contains(json.dumps(chosen.tag))
    for place, word in enumerate(chosen.words):
        values[f"word{place}"] = _contains(word.lower())
        # ASCII letters need no `lowercase`, which costs more than all the rest.
        case = "{}" if word.isascii() else "lowercase({})"
        matches = (f"like(:word{place}, {case.format(name)}, '\\')" for name in ("m.source_title", "m.source_filename"))
        conditions.append(f"({' OR '.join(matches)})")
    return conditions, {**values, "bucket_id": bucket_id, "status": chosen.first_status}


def _contains(text: str) -> str:
    """Return the pattern of LIKE for texts that contain this one."""
    return "%" + re.sub(r"[\\%_]", r"\\\g<0>", text) + "%"


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
