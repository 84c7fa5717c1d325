"""Batches: files that a client uploads together. The state of each file is in its upload session and its source."""

import json
from collections.abc import Collection
from dataclasses import dataclass

from svc_daemon.databases.contract import Connection, Row, values_of
from svc_daemon.errors import NotFound
from svc_daemon.store.columns import column_values, insertion, read_texts
from svc_daemon.wire.light.error_codes import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRow:
    """A stored batch. Its files are the upload sessions that have the batch's id."""

    id: str
    team_id: str
    bucket_ids: tuple[str, ...]
    expires_at: str
    #: When the last file was ready, failed, canceled, expired or deleted; None until then.
    ended_at: str | None = None
    #: When it was first finalized with files missing; None until then.
    finalized_at: str | None = None
    created_at: str

    @classmethod
    def from_row(cls, row: Row) -> "BatchRow":
        values = values_of(row)
        values["bucket_ids"] = read_texts(values["bucket_ids"])
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMember:
    """One file of a batch: its upload session and the state of its source."""

    session_id: str
    client_file_id: str
    bucket_ids: tuple[str, ...]
    #: Status of the upload session (see `core.uploads.sessions`).
    session_status: str
    #: When the session expires.
    expires_at: str
    session_error: str | None
    source_id: str | None
    task_id: str | None
    #: None if the source doesn't exist yet, or was deleted.
    source_status: str | None
    source_error: str | None
    source_warnings: tuple[str, ...]
    #: The source's bucket ids, and its status in each bucket, as a text that `places_of` parses.
    places: str | None
    in_maintenance: bool


def create_batch(connection: Connection, batch: BatchRow) -> None:
    connection.execute(insertion(BatchRow, "batches"), column_values(batch))


def get_batch(connection: Connection, team_id: str, batch_id: str) -> BatchRow:
    """Return the batch with this id. Raises NotFound if the team has none."""
    row = connection.execute(
        "SELECT * FROM batches WHERE id = :id AND team_id = :team_id", {"id": batch_id, "team_id": team_id}
    ).fetchone()
    if row is None:
        raise NotFound(ErrorCode.BATCH_NOT_FOUND, f"There is no batch {batch_id!r}.")
    return BatchRow.from_row(row)


def list_batch_buckets(connection: Connection, batch_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Map the ids to the batches' bucket ids. Missing ones are left out."""
    rows = connection.execute(
        "SELECT id, bucket_ids FROM batches WHERE id IN (SELECT value FROM json_each(:ids))",
        {"ids": json.dumps(sorted(batch_ids))},
    ).fetchall()
    return {row["id"]: read_texts(row["bucket_ids"]) for row in rows}


def renew_batch(connection: Connection, batch_id: str, expires_at: str) -> None:
    """Give an expired batch more time, because the client has repeated its request."""
    connection.execute(
        "UPDATE batches SET expires_at = :expires_at, ended_at = NULL, finalized_at = NULL WHERE id = :id",
        {"id": batch_id, "expires_at": expires_at},
    )


def mark_finalized(connection: Connection, batch_id: str, now: str) -> None:
    """Record that the batch was finalized, although files are missing."""
    connection.execute("UPDATE batches SET finalized_at = :now WHERE id = :id", {"id": batch_id, "now": now})


def may_have_ended(connection: Connection, batch_id: str) -> bool:
    """Whether the batch has no end time, although none of its files is being uploaded or indexed any more."""
    row = connection.execute(
        "SELECT 1 FROM batches b WHERE b.id = :id AND b.ended_at IS NULL AND NOT EXISTS ("
        "   SELECT 1 FROM uploads u LEFT JOIN sources s ON s.id = u.source_id"
        "   WHERE u.batch_id = :id AND (u.status = 'open' OR s.status IN ('queued', 'indexing')))",
        {"id": batch_id},
    ).fetchone()
    return row is not None


def end_batch(connection: Connection, batch_id: str, ended_at: str | None) -> None:
    """Record when the batch ended. None removes the time, because a file is being indexed again."""
    connection.execute("UPDATE batches SET ended_at = :ended_at WHERE id = :id", {"id": batch_id, "ended_at": ended_at})


def list_members(connection: Connection, batch_id: str) -> list[BatchMember]:
    """List the batch's files in the client's order, each with the current state of its source.

    Runs two statements, because in a join, SQLite would compute the view `source_views` for all sources.
    """
    sources = connection.execute(
        "SELECT id, task_id, status AS source_status, error AS source_error, warnings, places FROM source_views"
        " WHERE id IN (SELECT source_id FROM uploads WHERE batch_id = :batch_id)",
        {"batch_id": batch_id},
    ).fetchall()
    sessions = connection.execute(
        "SELECT u.id AS session_id, u.client_file_id, u.bucket_ids, u.status AS session_status, u.expires_at,"
        " u.error AS session_error, u.source_id,"
        " EXISTS (SELECT 1 FROM teams_in_maintenance r WHERE r.team_id = u.team_id) AS in_maintenance"
        " FROM uploads u WHERE u.batch_id = :batch_id ORDER BY u.position",
        {"batch_id": batch_id},
    ).fetchall()
    by_id = {row["id"]: row for row in sources}
    return [_member(row, by_id.get(row["source_id"])) for row in sessions]


def _member(session: Row, source: Row | None) -> BatchMember:
    values = values_of(session)
    values["bucket_ids"] = read_texts(session["bucket_ids"])
    values["in_maintenance"] = bool(session["in_maintenance"])
    for name in ("task_id", "source_status", "source_error", "places"):
        values[name] = source[name] if source else None
    values["source_warnings"] = read_texts(source["warnings"]) if source else ()
    return BatchMember(**values)
