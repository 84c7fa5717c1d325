"""Upload sessions, in the table `uploads`: the fields of the future source, how it ended, and when it expires.

The number of received bytes isn't stored in the row, because it is the size of the session's file (see
`store.files.parts`).
"""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from typing_extensions import TypedDict

from svc_daemon.core.uploads.sessions import OPEN
from svc_daemon.core.uploads.source_fields import Description
from svc_daemon.databases.contract import Connection, Row, values_of
from svc_daemon.errors import NotFound
from svc_daemon.store.columns import column_values, insertion, read_objects, read_texts
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.sources import SourceError


class MadeSource(TypedDict):
    """The fields of a new source that its session doesn't have."""

    content_type: str
    sha256: str
    task_id: str | None
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow(Description):
    """A stored upload session, with the fields of the future source."""

    id: str
    team_id: str
    #: Ids of the future source's buckets. The bucket in the request's path is the first.
    bucket_ids: tuple[str, ...]
    #: One of the statuses in `core.uploads.sessions`.
    status: str = OPEN
    #: Part of the secret token of the upload URL. Incrementing it makes earlier upload URLs invalid.
    generation: int = 1
    filename: str
    #: The media type that the sender declared, or empty.
    content_type: str
    size_bytes: int
    #: The hash that the sender declared.
    sha256: str | None = None
    #: Id of the created source; None until finalized.
    source_id: str | None = None
    #: `code`, `message` and `retryable`, if the session failed.
    error: SourceError | None = None
    #: What was known of the source when it was created, for requests that are repeated after it was deleted.
    made: MadeSource | None = None
    batch_id: str | None = None
    client_file_id: str | None = None
    #: Position of the file in its batch, from 0.
    position: int = 0
    #: When the session expires. Each chunk extends this, at most to `ends_at`.
    expires_at: str
    ends_at: str
    created_at: str

    @classmethod
    def from_row(cls, row: Row) -> "SessionRow":
        values = values_of(row)
        values["bucket_ids"], values["tags"] = read_texts(values["bucket_ids"]), read_texts(values["tags"])
        read_objects(values, "metadata", "error", "made")
        return cls(**values)

    def first_source(self) -> MadeSource:
        """Return what is known of the source when it was created. An older release noted nothing."""
        sha256 = self.sha256 or ""
        known = MadeSource(content_type=self.content_type, sha256=sha256, task_id=None, created_at=self.created_at)
        return {**known, **self.made} if self.made else known


def create_sessions(connection: Connection, sessions: Iterable[SessionRow]) -> None:
    connection.executemany(insertion(SessionRow, "uploads"), map(column_values, sessions))


def find_session(connection: Connection, session_id: str) -> SessionRow | None:
    """Find a session by its id in any team. Upload URLs name no team."""
    row = connection.execute("SELECT * FROM uploads WHERE id = :id", {"id": session_id}).fetchone()
    return SessionRow.from_row(row) if row else None


def get_session(connection: Connection, team_id: str, session_id: str) -> SessionRow:
    """Return the session with this id. Raises NotFound if the team has none."""
    session = find_session(connection, session_id)
    if session is None or session.team_id != team_id:
        raise NotFound(ErrorCode.SESSION_NOT_FOUND, f"There is no upload session {session_id!r}.")
    return session


def get_sessions(connection: Connection, session_ids: Sequence[str]) -> list[SessionRow]:
    """Return the sessions with these ids, in this order. Raises NotFound."""
    rows = connection.execute(
        "SELECT * FROM uploads WHERE id IN (SELECT value FROM json_each(:ids))", {"ids": json.dumps(session_ids)}
    ).fetchall()
    found = {row["id"]: SessionRow.from_row(row) for row in rows}
    if missing := next((each for each in session_ids if each not in found), None):
        raise NotFound(ErrorCode.SESSION_NOT_FOUND, f"There is no upload session {missing!r}.")
    return [found[session_id] for session_id in session_ids]


def list_sessions(connection: Connection, batch_id: str) -> list[SessionRow]:
    """List the upload sessions of a batch in the client's order."""
    rows = connection.execute(
        "SELECT * FROM uploads WHERE batch_id = :batch_id ORDER BY position", {"batch_id": batch_id}
    ).fetchall()
    return [SessionRow.from_row(row) for row in rows]


def extend_session(connection: Connection, session_id: str, expires_at: str) -> None:
    """Extend an open session after an accepted chunk, at most to `ends_at`."""
    connection.execute(
        "UPDATE uploads SET expires_at = CASE WHEN ends_at < :expires_at THEN ends_at ELSE :expires_at END"
        " WHERE id = :id AND status = 'open'",
        {"id": session_id, "expires_at": expires_at},
    )


def renew_session(connection: Connection, session_id: str, expires_at: str, ends_at: str) -> None:
    """Extend the session and change its token, if it is open or expired."""
    connection.execute(
        "UPDATE uploads SET status = 'open', generation = generation + 1, expires_at = :expires_at, ends_at = :ends_at"
        " WHERE id = :id AND status IN ('open', 'expired')",
        {"id": session_id, "expires_at": expires_at, "ends_at": ends_at},
    )


def finish_session(
    connection: Connection,
    session: SessionRow,
    status: str,
    *,
    source_id: str | None = None,
    made: MadeSource | None = None,
    error: SourceError | None = None,
) -> bool:
    """End an open session. Returns False if it has ended or was renewed since `session` was read."""
    cursor = connection.execute(
        "UPDATE uploads SET status = :status, source_id = :source_id, made = :made, error = :error"
        " WHERE id = :id AND status = 'open' AND generation = :generation",
        {
            "id": session.id,
            "generation": session.generation,
            "status": status,
            "source_id": source_id,
            "made": json.dumps(made) if made else None,
            "error": json.dumps(error) if error else None,
        },
    )
    return cursor.rowcount == 1


def expire_session(connection: Connection, session_id: str, now: str) -> bool:
    """End an open session as `expired`. Returns False if it hasn't expired or has ended."""
    cursor = connection.execute(
        "UPDATE uploads SET status = 'expired' WHERE id = :id AND status = 'open' AND expires_at <= :now",
        {"id": session_id, "now": now},
    )
    return cursor.rowcount == 1


def list_expired_ids(connection: Connection, now: str) -> list[str]:
    """List the ids of open sessions that have expired, longest expired first."""
    rows = connection.execute(
        "SELECT id FROM uploads WHERE status = 'open' AND expires_at <= :now ORDER BY expires_at", {"now": now}
    ).fetchall()
    return [row["id"] for row in rows]


def list_open_of_bucket(connection: Connection, bucket_id: str, after_id: str, limit: int) -> list[SessionRow]:
    """List the bucket's open sessions, ordered by id, after `after_id`.

    The cast makes SQLite sort the few open sessions instead of scanning all sessions by id.
    """
    rows = connection.execute(
        "SELECT * FROM uploads WHERE status = 'open' AND CAST(id AS TEXT) > :after_id"
        " AND EXISTS (SELECT 1 FROM json_each(uploads.bucket_ids) WHERE value = :bucket_id)"
        " ORDER BY CAST(id AS TEXT) LIMIT :limit",
        {"bucket_id": bucket_id, "after_id": after_id, "limit": limit},
    ).fetchall()
    return [SessionRow.from_row(row) for row in rows]


def list_open_of_team(connection: Connection, team_id: str, after_id: str, limit: int) -> list[SessionRow]:
    rows = connection.execute(
        "SELECT * FROM uploads WHERE status = 'open' AND team_id = :team_id AND id > :after ORDER BY id LIMIT :limit",
        {"team_id": team_id, "after": after_id, "limit": limit},
    ).fetchall()
    return [SessionRow.from_row(row) for row in rows]


def list_of_team_among(connection: Connection, team_id: str, session_ids: Collection[str]) -> list[str]:
    """Return which of the upload sessions belong to the team."""
    rows = connection.execute(
        "SELECT id FROM uploads WHERE team_id = :team_id AND id IN (SELECT value FROM json_each(:ids))",
        {"team_id": team_id, "ids": json.dumps(sorted(session_ids))},
    ).fetchall()
    return [row["id"] for row in rows]


def update_buckets(connection: Connection, session_id: str, bucket_ids: Sequence[str]) -> None:
    """Change the buckets of an open session."""
    connection.execute(
        "UPDATE uploads SET bucket_ids = :bucket_ids WHERE id = :id AND status = 'open'",
        {"id": session_id, "bucket_ids": json.dumps(bucket_ids)},
    )


def list_open_ids(connection: Connection) -> set[str]:
    """List the ids of the open sessions of all teams."""
    return {row["id"] for row in connection.execute("SELECT id FROM uploads WHERE status = 'open'").fetchall()}


def list_open_among(connection: Connection, session_ids: Collection[str]) -> set[str]:
    """Return which of the upload sessions are open."""
    rows = connection.execute(
        "SELECT id FROM uploads WHERE status = 'open' AND id IN (SELECT value FROM json_each(:ids))",
        {"ids": json.dumps(sorted(session_ids))},
    ).fetchall()
    return {row["id"] for row in rows}


@dataclass(frozen=True, slots=True)
class PackMember:
    """The columns of an upload session that are needed to receive a pack."""

    id: str
    #: Status of the session (see `core.uploads.sessions`).
    status: str
    generation: int
    size_bytes: int
    expires_at: str


def list_pack_members(connection: Connection, batch_id: str) -> list[PackMember]:
    """List the upload sessions of a batch in the client's order."""
    rows = connection.execute(
        "SELECT id, status, generation, size_bytes, expires_at FROM uploads WHERE batch_id = :batch_id"
        " ORDER BY position",
        {"batch_id": batch_id},
    ).fetchall()
    return [PackMember(*row) for row in rows]
