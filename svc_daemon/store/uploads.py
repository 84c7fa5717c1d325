"""Upload sessions: the fields of the future source, how the session ended, and when it expires.

How many bytes are there is not stored: the size on the disk is it (`store.parts`).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from sqlite3 import Connection, Row
from typing import Any

from svc_daemon.errors import NotFound
from svc_daemon.wire.codes import ErrorCode

OPEN, FINALIZED, CANCELED, EXPIRED, FAILED = "open", "finalized", "canceled", "expired", "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadRow:
    """One session as stored."""

    id: str
    team_id: str
    #: The buckets that the source will belong to, the path's first.
    bucket_ids: tuple[str, ...]
    #: `open`, `finalized`, `canceled`, `expired` (its bytes are gone) or `failed` (finalizing it again won't help).
    status: str = OPEN
    #: Part of the upload token: a new one makes old URLs useless.
    generation: int = 1
    filename: str
    #: As declared; empty where nothing was.
    content_type: str
    size_bytes: int
    title: str
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    mapping: str | None = None
    replaces: str | None = None
    #: The hash that the sender declared, hex.
    sha256: str | None = None
    #: Once finalized.
    source_id: str | None = None
    #: `code`, `message`, `retryable`, once failed.
    error: dict[str, Any] | None = None
    batch_id: str | None = None
    client_file_id: str | None = None
    #: Place in its batch, from 0.
    position: int = 0
    #: Moves on with each accepted chunk, up to `ends_at`.
    expires_at: str
    ends_at: str
    created_at: str

    @classmethod
    def from_row(cls, row: Row) -> "UploadRow":
        values = dict(row)
        for name in ("bucket_ids", "tags"):
            values[name] = tuple(json.loads(values[name]))
        values["metadata"] = json.loads(values["metadata"])
        values["error"] = json.loads(values["error"]) if values["error"] else None
        return cls(**values)


def create_upload(connection: Connection, upload: UploadRow) -> None:
    connection.execute(
        "INSERT INTO uploads (id, team_id, bucket_ids, status, generation, filename, content_type, size_bytes, title,"
        " tags, metadata, mapping, replaces, sha256, batch_id, client_file_id, position, expires_at, ends_at,"
        " created_at) VALUES (:id, :team_id, :bucket_ids, :status, :generation, :filename, :content_type, :size_bytes,"
        " :title, :tags, :metadata, :mapping, :replaces, :sha256, :batch_id, :client_file_id, :position, :expires_at,"
        " :ends_at, :created_at)",
        {
            "id": upload.id,
            "team_id": upload.team_id,
            "bucket_ids": json.dumps(upload.bucket_ids),
            "status": upload.status,
            "generation": upload.generation,
            "filename": upload.filename,
            "content_type": upload.content_type,
            "size_bytes": upload.size_bytes,
            "title": upload.title,
            "tags": json.dumps(upload.tags),
            "metadata": json.dumps(upload.metadata),
            "mapping": upload.mapping,
            "replaces": upload.replaces,
            "sha256": upload.sha256,
            "batch_id": upload.batch_id,
            "client_file_id": upload.client_file_id,
            "position": upload.position,
            "expires_at": upload.expires_at,
            "ends_at": upload.ends_at,
            "created_at": upload.created_at,
        },
    )


def find_upload(connection: Connection, upload_id: str) -> UploadRow | None:
    """The session by id alone, because the storage address has a token instead of a team."""
    row = connection.execute("SELECT * FROM uploads WHERE id = :id", {"id": upload_id}).fetchone()
    return UploadRow.from_row(row) if row else None


def get_upload(connection: Connection, team_id: str, upload_id: str) -> UploadRow:
    """Raises NotFound."""
    upload = find_upload(connection, upload_id)
    if upload is None or upload.team_id != team_id:
        raise NotFound(ErrorCode.SESSION_NOT_FOUND, f"There is no upload session {upload_id!r}.")
    return upload


def list_uploads(connection: Connection, batch_id: str) -> list[UploadRow]:
    """The sessions of a batch in the order of its manifest."""
    rows = connection.execute(
        "SELECT * FROM uploads WHERE batch_id = :batch_id ORDER BY position", {"batch_id": batch_id}
    ).fetchall()
    return [UploadRow.from_row(row) for row in rows]


def extend_upload(connection: Connection, upload_id: str, expires_at: str) -> None:
    """Extend the session after an accepted chunk, but never beyond its end."""
    connection.execute(
        "UPDATE uploads SET expires_at = MIN(:expires_at, ends_at) WHERE id = :id AND status = 'open'",
        {"id": upload_id, "expires_at": expires_at},
    )


def renew_upload(connection: Connection, upload_id: str, expires_at: str, ends_at: str) -> None:
    """Extend an expired session and change its token; one that was finalized or canceled stays as it is."""
    connection.execute(
        "UPDATE uploads SET status = 'open', generation = generation + 1, expires_at = :expires_at, ends_at = :ends_at"
        " WHERE id = :id AND status IN ('open', 'expired')",
        {"id": upload_id, "expires_at": expires_at, "ends_at": ends_at},
    )


def finish_upload(
    connection: Connection,
    upload_id: str,
    status: str,
    source_id: str | None = None,
    error: dict[str, Any] | None = None,
) -> bool:
    """End an open session; False when it had ended already, and then nothing changes."""
    cursor = connection.execute(
        "UPDATE uploads SET status = :status, source_id = :source_id, error = :error"
        " WHERE id = :id AND status = 'open'",
        {
            "id": upload_id,
            "status": status,
            "source_id": source_id,
            "error": json.dumps(error) if error else None,
        },
    )
    return cursor.rowcount == 1


def expire_upload(connection: Connection, upload_id: str, now: str) -> bool:
    """End an open session whose time is over; False when it lives on, or had ended already."""
    cursor = connection.execute(
        "UPDATE uploads SET status = 'expired' WHERE id = :id AND status = 'open' AND expires_at <= :now",
        {"id": upload_id, "now": now},
    )
    return cursor.rowcount == 1


def list_expired_uploads(connection: Connection, now: str, limit: int) -> list[UploadRow]:
    """Open sessions whose time is over, longest ago first: their bytes can go."""
    rows = connection.execute(
        "SELECT * FROM uploads WHERE status = 'open' AND expires_at <= :now ORDER BY expires_at LIMIT :limit",
        {"now": now, "limit": limit},
    ).fetchall()
    return [UploadRow.from_row(row) for row in rows]


def list_open_uploads(connection: Connection, bucket_id: str, after_id: str, limit: int) -> list[UploadRow]:
    """Open sessions into the bucket behind `after_id`, in order.

    Written so that SQLite sorts the result instead of walking the ids of all sessions.
    """
    rows = connection.execute(
        "SELECT * FROM uploads INDEXED BY uploads_open WHERE status = 'open' AND id > :after_id"
        " AND EXISTS (SELECT 1 FROM json_each(uploads.bucket_ids) WHERE value = :bucket_id)"
        " ORDER BY id LIMIT :limit",
        {"bucket_id": bucket_id, "after_id": after_id, "limit": limit},
    ).fetchall()
    return [UploadRow.from_row(row) for row in rows]


def update_buckets(connection: Connection, upload_id: str, bucket_ids: Sequence[str]) -> None:
    """Change the buckets of an open session."""
    connection.execute(
        "UPDATE uploads SET bucket_ids = :bucket_ids WHERE id = :id AND status = 'open'",
        {"id": upload_id, "bucket_ids": json.dumps(bucket_ids)},
    )


def list_open_ids(connection: Connection) -> set[str]:
    """Every session that may own stored bytes: for the sweeper, at boot."""
    return {row["id"] for row in connection.execute("SELECT id FROM uploads WHERE status = 'open'").fetchall()}
