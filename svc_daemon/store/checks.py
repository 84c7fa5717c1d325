"""Checks of the rows in the state database, for all teams. Most checks are SQL statements that select faulty rows."""

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from svc_daemon.core.lanes import LANES
from svc_daemon.core.problems import Problem, Repair
from svc_daemon.databases.contract import MOST_ROWS, Connection
from svc_daemon.store.migrations import list_tables
from svc_daemon.store.rows.agents import list_agents
from svc_daemon.store.rows.sources.sources import SourceRow
from svc_daemon.store.rows.teams import list_team_ids
from svc_daemon.store.tables import count_unreferred
from svc_daemon.wire.events import EventType
from svc_daemon.wire.light.parsing import MOST_LEVELS, parse_json
from svc_daemon.wire.tasks import CASCADE, INDEXING, REBUILD, TEAM_REMOVAL


@dataclass(frozen=True, slots=True)
class RowCheck:
    """A check that all rows satisfy an invariant."""

    invariant: str
    #: Selects the faulty rows. Its columns fill the placeholders of the message.
    statement: str
    message: str
    repair: Repair | None = None


ROW_CHECKS = (
    RowCheck(
        "I13",
        "SELECT s.id AS source_id, s.team_id, s.status FROM sources s LEFT JOIN tasks t ON t.id = s.task_id"
        " AND t.source_id = s.id AND t.type = :indexing"
        " WHERE s.status IN ('queued', 'indexing') AND (t.id IS NULL OR t.finished_at IS NOT NULL"
        " OR t.status <> CASE s.status WHEN 'queued' THEN 'queued' ELSE 'running' END"
        " OR t.status = 'running' AND t.lease_until_s IS NULL)",
        "source {source_id} is {status}, and no task moves it on",
        Repair.QUEUE_SOURCE,
    ),
    RowCheck(
        "I13",
        "SELECT t.id AS task_id, t.team_id, t.status FROM tasks t LEFT JOIN sources s ON s.id = t.source_id"
        " AND s.task_id = t.id AND s.status IN ('queued', 'indexing')"
        " WHERE t.finished_at IS NULL AND t.type = :indexing AND s.id IS NULL",
        "task {task_id} is {status}, and no source waits for it",
    ),
    RowCheck(
        "I13",
        "SELECT t.id AS task_id, t.team_id, t.status FROM tasks t"
        " WHERE (t.finished_at IS NULL) <> (t.status IN ('queued', 'running'))",
        "task {task_id} is {status}, and its time of ending does not match that",
    ),
    RowCheck(
        "I13",
        "SELECT m.source_id, m.bucket_id, m.team_id, m.sync_status FROM memberships m"
        " JOIN sources s ON s.id = m.source_id WHERE s.status = 'active' AND m.sync_status <> 'active'"
        " AND m.due_at IS NULL AND m.lease_until_s IS NULL",
        "the sync of source {source_id} into bucket {bucket_id} is {sync_status}, and is never due",
        Repair.SYNC_SOURCE,
    ),
    RowCheck(
        "I13",
        "SELECT b.id AS bucket_id, b.team_id FROM buckets b WHERE b.status = 'deleting' AND NOT EXISTS ("
        " SELECT 1 FROM cascades c JOIN tasks t ON t.id = c.task_id WHERE c.bucket_id = b.id"
        " AND t.finished_at IS NULL AND (t.status = 'queued' OR t.lease_until_s IS NOT NULL))",
        "bucket {bucket_id} is being deleted, and no task does it",
    ),
    RowCheck(
        "I13",
        "SELECT t.id AS task_id, t.team_id FROM tasks t WHERE t.finished_at IS NULL AND t.type = :cascade"
        " AND NOT EXISTS (SELECT 1 FROM cascades c JOIN buckets b ON b.id = c.bucket_id AND b.status = 'deleting'"
        " WHERE c.task_id = t.id)",
        "task {task_id} deletes a bucket that is not being deleted",
    ),
    RowCheck(
        "I13",
        "SELECT d.id AS event_id, d.team_id FROM deliveries d WHERE d.status = 'pending' AND d.due_at IS NULL",
        "event {event_id} is pending, and its call is never due",
    ),
    RowCheck(
        "I5",
        "SELECT json_extract(i.answer, '$.id') AS source_id, MIN(i.key) AS first_key, MAX(i.key) AS last_key"
        " FROM idempotency i JOIN sources s ON s.id = json_extract(i.answer, '$.id')"
        " GROUP BY json_extract(i.answer, '$.id') HAVING COUNT(*) > 1",
        "source {source_id} answers two idempotency keys, {first_key} and {last_key}",
    ),
    RowCheck(
        "I5",
        "SELECT k.id AS key_id, i.key, s.id AS source_id FROM idempotency i JOIN keys k ON k.id = i.key_id"
        " JOIN sources s ON s.id = json_extract(i.answer, '$.id') WHERE s.team_id <> k.team_id",
        "the idempotency key {key} of {key_id} answers with source {source_id} of another team",
    ),
    RowCheck(
        "I5",
        "SELECT u.source_id, MIN(u.id) AS first_id, MAX(u.id) AS last_id FROM uploads u"
        " WHERE u.source_id IS NOT NULL GROUP BY u.source_id HAVING COUNT(*) > 1",
        "source {source_id} was made of two sessions, {first_id} and {last_id}",
    ),
    RowCheck(
        "I7",
        "SELECT u.id AS session_id, u.team_id, u.status FROM uploads u"
        " WHERE (u.status = 'finalized') <> (u.source_id IS NOT NULL)"
        " OR (u.status = 'failed') <> (u.error IS NOT NULL)",
        "session {session_id} is {status}, and its outcome does not match that",
    ),
    RowCheck(
        "I7",
        "SELECT u.batch_id, u.client_file_id FROM uploads u WHERE u.batch_id IS NOT NULL"
        " GROUP BY u.batch_id, u.client_file_id HAVING COUNT(*) > 1",
        "batch {batch_id} counts the file {client_file_id} more than once",
    ),
    RowCheck(
        "I7",
        "SELECT c.task_id, c.team_id, c.bucket_id FROM cascades c WHERE c.deleted + c.detached + c.failed > c.total",
        "task {task_id} has counted more members of bucket {bucket_id} than there were",
    ),
    RowCheck(
        "I8",
        "SELECT t.source_id, t.team_id FROM tombstones t JOIN sources s ON s.id = t.source_id",
        "source {source_id} was deleted, and its row is still there",
    ),
    RowCheck(
        "I9",
        "SELECT s.id AS source_id, s.team_id, s.status FROM sources s WHERE s.webhook IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.source_id = s.id"
        "   AND d.event = CASE s.status WHEN 'failed' THEN 'source.failed' ELSE 'source.ready' END)"
        " AND (s.status = 'failed' OR s.status = 'active'"
        "   AND EXISTS (SELECT 1 FROM memberships m WHERE m.source_id = s.id)"
        # Sources in a bucket that is being deleted are left out, because the deletion records their events.
        "   AND NOT EXISTS (SELECT 1 FROM memberships m JOIN buckets b ON b.id = m.bucket_id"
        "     WHERE m.source_id = s.id AND (m.sync_status <> 'active' OR b.status = 'deleting')))",
        "source {source_id} is {status}, and its webhook was not called",
    ),
    RowCheck(
        "I9",
        "SELECT d.id AS event_id, d.team_id, d.source_id FROM deliveries d WHERE json_extract(d.body, '$.id') <> d.id",
        "event {event_id} of source {source_id} goes out under another id",
    ),
)

#: Columns that hold JSON, by table.
JSON_COLUMNS = {
    "keys": ("capabilities", "models", "buckets"),
    "buckets": ("metadata", "chunking"),
    "sources": ("tags", "metadata", "error", "warnings", "extraction", "fetched", "qa", "webhook", "refresh"),
    "tasks": ("error",),
    "idempotency": ("answer",),
    "batches": ("bucket_ids",),
    "uploads": ("bucket_ids", "tags", "metadata", "error", "made"),
    "deliveries": ("body",),
    "delivery_attempts": ("error",),
    "events": ("data",),
    "watchers": ("mappings",),
}
#: Those of them that hold lists; the others hold objects.
JSON_LISTS = ("capabilities", "models", "buckets", "tags", "warnings", "bucket_ids", "mappings")
#: The valid values of status columns, by table and column.
STATES = {
    ("buckets", "status"): ("active", "archived", "deleting"),
    ("sources", "type"): ("file", "page", "qa"),
    ("sources", "status"): ("queued", "indexing", "active", "failed"),
    ("memberships", "sync_status"): ("queued", "syncing", "active", "failed"),
    ("tasks", "status"): ("queued", "running", "succeeded", "failed", "canceled"),
    ("tasks", "type"): (INDEXING, CASCADE, REBUILD, TEAM_REMOVAL),
    ("tasks", "lane"): LANES,
    ("uploads", "status"): ("open", "finalized", "canceled", "expired", "failed"),
    ("deliveries", "status"): ("pending", "delivered", "failed"),
    ("deliveries", "event"): ("source.ready", "source.failed"),
    ("events", "type"): tuple(EventType),
}


def check_file(connection: Connection) -> list[Problem]:
    """Run SQLite's own integrity check. If it finds problems, the other checks can't be run."""
    try:
        if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
            return [Problem("I10", "the state database is empty: it has no tables")]
        messages = [row[0] for row in connection.execute("PRAGMA integrity_check").fetchall()]
    except sqlite3.DatabaseError as error:
        messages = [str(error)]
    return [Problem("I10", f"the state database is damaged: {message}") for message in messages if message != "ok"]


def check_words(connection: Connection) -> list[Problem]:
    """Check that columns have valid values. A flipped bit on the disk can make a value invalid.

    SQLite doesn't detect this: its pages have no checksums, and it ignores CHECK constraints in a read-only database.
    """
    wrong = []
    for table, columns in JSON_COLUMNS.items():
        for column in columns:
            kind, opening = ("a list", "[") if column in JSON_LISTS else ("an object", "{")
            statement = (
                f"SELECT count(*) FROM {table} WHERE {column} IS NOT NULL"  # noqa: S608
                f" AND (NOT json_valid({column}) OR substr({column}, 1, 1) <> '{opening}')"
            )
            (count,) = connection.execute(statement).fetchone()
            wrong += [f"{count} rows of {table} have {column} that is not JSON or not {kind}"] if count else []
    wrong += [f"{table} has {column} that is nested too deeply" for table, column in list_deep_columns(connection)]
    for (table, column), known in STATES.items():
        statement = f"SELECT count(*) FROM {table} WHERE {column} NOT IN (SELECT value FROM json_each(:known))"  # noqa: S608
        (count,) = connection.execute(statement, {"known": json.dumps(known)}).fetchone()
        wrong += [f"{count} rows of {table} have an unknown {column}"] if count else []
    return [Problem("I10", f"the state database is damaged: {message}") for message in wrong]


def list_deep_columns(
    connection: Connection, tables: Mapping[str, Collection[str]] = JSON_COLUMNS
) -> list[tuple[str, str]]:
    """List columns with JSON that is nested more deeply than the service reads, each after its table.

    `tables` has the columns that exist in each table, of which those with JSON are searched.
    """
    found = []
    for table, columns in tables.items():
        for column in (each for each in JSON_COLUMNS.get(table, ()) if each in columns):
            # Only documents with many brackets can be deep.
            brackets = f"length({column}) - length(replace(replace({column}, '[', ''), '{{', ''))"
            statement = f"SELECT {column} AS document FROM {table} WHERE {brackets} > :levels AND json_valid({column})"  # noqa: S608
            for row in connection.execute(statement, {"levels": MOST_LEVELS}):
                try:
                    parse_json(row["document"])
                except ValueError:
                    found.append((table, column))
                    break
    return found


def check_references(connection: Connection) -> Iterator[Problem]:
    """Find rows that refer to missing rows."""
    for table in list_tables():
        for reference in table.references:
            for _ in range(count_unreferred(connection, table, reference)):
                message = f"a row of {table.name} names nothing in {reference.parent}"
                yield Problem("I10", message, about={"table": table.name})


def check_rows(connection: Connection) -> Iterator[Problem]:
    """Find rows that violate the invariants in `ROW_CHECKS`."""
    for check in ROW_CHECKS:
        for row in connection.execute(check.statement, {"indexing": INDEXING, "cascade": CASCADE}):
            ids = {name: row[name] for name in row.keys() if name.endswith("_id") and row[name]}  # noqa: SIM118
            yield Problem(check.invariant, check.message.format(**dict(row)), check.repair, ids)


def check_agents(connection: Connection) -> Iterator[Problem]:
    """Find agents that retrieve nothing, because their policy is invalid or their database row is missing."""
    for team_id in list_team_ids(connection):
        try:
            agents = list_agents(connection, team_id)
        except sqlite3.OperationalError as error:
            # For example, a text may not be valid UTF-8.
            yield Problem("I15", f"the agents of {team_id} can't be read: {error}", about={"team_id": team_id})
            continue
        for agent in agents:
            if agent.policy_fault is not None:
                what = "it" if agent.created_at == "" else "its stored policy"
                message = f"agent {agent.id} of {team_id} retrieves nothing: {what} {agent.policy_fault}"
                yield Problem("I15", message, about={"agent_id": agent.id, "team_id": team_id})


class BlobRow(NamedTuple):
    """The columns of a source that describe its stored bytes."""

    source_id: str
    team_id: str
    blob_name: str
    size_bytes: int
    sha256: str
    #: The error of a failed source, as JSON.
    error: str | None


def list_blob_rows(connection: Connection, after_id: str, limit: int) -> list[BlobRow]:
    """Describe the stored bytes of up to `limit` sources of all teams, ordered by source id, after `after_id`."""
    rows = connection.execute(
        "SELECT id, team_id, COALESCE(blob, id), size_bytes, sha256, CASE status WHEN 'failed' THEN error END"
        " FROM sources WHERE id > :after ORDER BY id LIMIT :limit",
        {"after": after_id, "limit": limit},
    ).fetchall()
    return [BlobRow(*row) for row in rows]


def list_every_source(
    connection: Connection, team_id: str | None = None, *, after_id: str = "", limit: int = MOST_ROWS
) -> list[SourceRow]:
    """List the sources of the team, or of all teams if None, ordered by id, after `after_id`."""
    of_team = "" if team_id is None else "AND team_id = :team_id"
    rows = connection.execute(
        f"SELECT * FROM source_views WHERE id > :after {of_team} ORDER BY id LIMIT :limit",  # noqa: S608
        {"after": after_id, "limit": limit, "team_id": team_id},
    ).fetchall()
    return [SourceRow.from_row(row) for row in rows]


def count_every_source(connection: Connection) -> int:
    (count,) = connection.execute("SELECT COUNT(*) FROM sources").fetchone()
    return int(count)


def list_stored(connection: Connection, limit: int = 20) -> tuple[list[str], list[str]]:
    """List the ids of some sources whose bytes should be stored, and of some teams that should have an index."""
    rows = connection.execute(
        "SELECT id, team_id, status FROM sources WHERE status <> 'failed' ORDER BY id LIMIT :limit", {"limit": limit}
    ).fetchall()
    return [row["id"] for row in rows], sorted({row["team_id"] for row in rows if row["status"] == "active"})


def list_uncleaned(connection: Connection) -> dict[str, str]:
    """Map the ids of deleted sources to their blob names, if the bytes are not deleted yet."""
    rows = connection.execute(
        "SELECT source_id, COALESCE(blob, source_id) AS name FROM tombstones WHERE cleaned_at IS NULL"
    )
    return {row["source_id"]: row["name"] for row in rows}


def list_awaiting_index(connection: Connection) -> set[str]:
    """List the ids of sources whose title or buckets are not up to date in the index."""
    return {row["source_id"] for row in connection.execute("SELECT source_id FROM detachments")}


def list_deleting_buckets(connection: Connection) -> set[str]:
    return {row["id"] for row in connection.execute("SELECT id FROM buckets WHERE status = 'deleting'")}


def list_rebuilding(connection: Connection) -> set[str]:
    """List the ids of teams whose index is being rebuilt."""
    return {row["team_id"] for row in connection.execute("SELECT team_id FROM teams_in_maintenance")}
