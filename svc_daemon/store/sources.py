"""Sources: one row for each file, page or question, with its buckets, their sync state and its latest task."""

import json
from dataclasses import dataclass, field
from sqlite3 import Connection, Row
from typing import Any

from svc_daemon.core import readiness
from svc_daemon.errors import NotFound
from svc_daemon.store.tombstones import find_successor
from svc_daemon.wire.codes import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """One source as stored, seen with its memberships and task."""

    id: str
    team_id: str
    #: `file`, `page` or `qa`.
    type: str = "file"
    #: `queued`, `indexing`, `active` or `failed`.
    status: str = "queued"
    #: Incremented with each indexing; the provider keeps only the newest.
    generation: int = 1
    #: The first generation that was read from the present bytes; None if that is `generation`.
    valid_from: int | None = None
    #: Its bucket's chunking has changed, and it is still cut the old way.
    rechunk: bool = False
    title: str
    filename: str
    content_type: str
    size_bytes: int
    #: Hex.
    sha256: str
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    #: The sync mapping that owns it.
    mapping: str | None = None
    source_url: str | None = None
    #: The same text for every spelling of its URL; a team has one page under each.
    url_key: str | None = None
    #: What the host reported at the last fetch: `final_url`, `http_status`, `etag`, `last_modified`, `fetched_at`.
    fetched: dict[str, Any] | None = None
    #: `question`, `answer` and `alternate_questions` of a Q and A.
    qa: dict[str, Any] | None = None
    #: `url` and `metadata` of the webhook to call when it is ready or failed.
    webhook: dict[str, Any] | None = None
    #: Name of its bytes, where that is not its id: they came with a refresh.
    blob: str | None = None
    #: The source that it replaces when it becomes ready.
    replaces: str | None = None
    task_id: str | None = None
    #: `code`, `message`, `retryable`, once failed.
    error: dict[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    #: Facts of the extraction, once indexed.
    extraction: dict[str, Any] | None = None
    created_at: str
    updated_at: str
    task_type: str | None = None
    task_status: str | None = None
    #: Bucket id to sync status, oldest bucket first.
    places: dict[str, str] = field(default_factory=dict)
    #: The team's search index is being rebuilt.
    in_maintenance: bool = False

    @classmethod
    def from_row(cls, row: Row) -> "SourceRow":
        values = dict(row)
        for name in ("metadata", "error", "extraction", "fetched", "qa", "webhook"):
            values[name] = json.loads(values[name]) if values[name] else None
        for name in ("tags", "warnings"):
            values[name] = tuple(json.loads(values[name]))
        values["places"] = places_of(values["places"])
        values["in_maintenance"] = bool(values["in_maintenance"])
        values["rechunk"] = bool(values["rechunk"])
        return cls(**values)

    @property
    def blob_name(self) -> str:
        return self.blob or self.id

    @property
    def generations(self) -> range:
        """The generations in the index that have its present text: several if it was rechunked."""
        return generations_of(self.valid_from, self.generation)

    @property
    def searched_places(self) -> list[str]:
        """The buckets in which a search finds it: a Q and A is a member that is found outside of buckets only."""
        return [] if self.type == readiness.QA else list(self.places)

    @property
    def sync_status(self) -> str:
        return readiness.sync_status(self.places.values())

    @property
    def is_complete(self) -> bool:
        """Whether it is indexed and synced by its own rows: ready, unless the index is being rebuilt."""
        return readiness.is_ready(self.status, self.places.values())

    @property
    def ready(self) -> bool:
        return readiness.is_ready(self.status, self.places.values(), in_maintenance=self.in_maintenance)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFilter:
    """What a listing of a bucket's sources shows; None is any."""

    #: `ready` (active in this bucket), `all`, or an indexing status.
    status: str = "ready"
    type: str | None = None
    tag: str | None = None
    #: Part of the title or file name, in any case.
    q: str | None = None
    title: str | None = None
    sha256: str | None = None
    mapping: str | None = None
    #: Only sources after this id.
    after: str = ""
    #: At most so many; -1 is all.
    limit: int = -1


def create_source(connection: Connection, source: SourceRow) -> None:
    connection.execute(
        "INSERT INTO sources (id, team_id, type, status, generation, title, filename, content_type, size_bytes, sha256,"
        " tags, metadata, mapping, source_url, url_key, fetched, qa, webhook, replaces, task_id, warnings, created_at,"
        " updated_at)"
        " VALUES (:id, :team_id, :type, :status, :generation, :title, :filename, :content_type, :size_bytes, :sha256,"
        " :tags, :metadata, :mapping, :source_url, :url_key, :fetched, :qa, :webhook, :replaces, :task_id, '[]',"
        " :created_at, :updated_at)",
        {
            "id": source.id,
            "team_id": source.team_id,
            "type": source.type,
            "status": source.status,
            "generation": source.generation,
            "title": source.title,
            "filename": source.filename,
            "content_type": source.content_type,
            "size_bytes": source.size_bytes,
            "sha256": source.sha256,
            "tags": json.dumps(source.tags),
            "metadata": json.dumps(source.metadata),
            "mapping": source.mapping,
            "source_url": source.source_url,
            "url_key": source.url_key,
            "fetched": _json(source.fetched),
            "qa": _json(source.qa),
            "webhook": _json(source.webhook),
            "replaces": source.replaces,
            "task_id": source.task_id,
            "created_at": source.created_at,
            "updated_at": source.updated_at,
        },
    )


def find_source(connection: Connection, team_id: str, source_id: str) -> SourceRow | None:
    row = connection.execute(
        "SELECT * FROM source_views WHERE id = :id AND team_id = :team_id", {"id": source_id, "team_id": team_id}
    ).fetchone()
    return SourceRow.from_row(row) if row else None


def get_source(connection: Connection, team_id: str, source_id: str) -> SourceRow:
    """Raises NotFound; a source that was replaced names its successor in `details.replaced_by`."""
    source = find_source(connection, team_id, source_id)
    if source is None:
        successor = find_successor(connection, team_id, source_id)
        raise NotFound(
            ErrorCode.SOURCE_NOT_FOUND,
            f"There is no source {source_id!r}.",
            **({"replaced_by": successor} if successor else {}),
        )
    return source


def list_sources(connection: Connection, team_id: str, bucket_id: str, chosen: SourceFilter) -> list[SourceRow]:
    """Members of the bucket that pass the filter, oldest first."""
    rows = connection.execute(
        "SELECT s.* FROM memberships m JOIN source_views s ON s.id = m.source_id"
        " WHERE m.bucket_id = :bucket_id AND m.team_id = :team_id AND m.source_id > :after"
        " AND (CASE :status WHEN 'all' THEN 1"
        "   WHEN 'ready' THEN m.sync_status = 'active' AND s.status = 'active' ELSE s.status = :status END)"
        " AND (:type IS NULL OR s.type = :type)"
        " AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(s.tags) WHERE value = :tag))"
        " AND (:q IS NULL OR lower(s.title) LIKE :q ESCAPE '\\' OR lower(s.filename) LIKE :q ESCAPE '\\')"
        " AND (:title IS NULL OR s.title = :title)"
        " AND (:sha256 IS NULL OR s.sha256 = :sha256)"
        " AND (:mapping IS NULL OR s.mapping = :mapping)"
        " ORDER BY m.source_id LIMIT :limit",
        {
            "bucket_id": bucket_id,
            "team_id": team_id,
            "after": chosen.after,
            "status": chosen.status,
            "type": chosen.type,
            "tag": chosen.tag,
            "q": None if chosen.q is None else f"%{_literal(chosen.q.lower())}%",
            "title": chosen.title,
            "sha256": chosen.sha256,
            "mapping": chosen.mapping,
            "limit": chosen.limit,
        },
    ).fetchall()
    return [SourceRow.from_row(row) for row in rows]


def list_replacing(connection: Connection, team_id: str, replaced_id: str) -> list[SourceRow]:
    """Sources that will replace `replaced_id` when they are ready."""
    rows = connection.execute(
        "SELECT * FROM source_views WHERE team_id = :team_id AND replaces = :replaces",
        {"team_id": team_id, "replaces": replaced_id},
    ).fetchall()
    return [SourceRow.from_row(row) for row in rows]


def update_description(connection: Connection, source: SourceRow) -> None:
    """Write what `PATCH` may change."""
    connection.execute(
        "UPDATE sources SET title = :title, filename = :filename, tags = :tags, metadata = :metadata,"
        " updated_at = :updated_at WHERE id = :id AND team_id = :team_id",
        {
            "id": source.id,
            "team_id": source.team_id,
            "title": source.title,
            "filename": source.filename,
            "tags": json.dumps(source.tags),
            "metadata": json.dumps(source.metadata),
            "updated_at": source.updated_at,
        },
    )


def update_state(connection: Connection, source: SourceRow) -> None:
    """Write what indexing changes: status, generations, task, media type, error, warnings, extraction, replaces."""
    connection.execute(
        "UPDATE sources SET status = :status, generation = :generation, valid_from = :valid_from, rechunk = :rechunk,"
        " task_id = :task_id,"
        " content_type = :content_type, error = :error, warnings = :warnings, extraction = :extraction,"
        " replaces = :replaces, updated_at = :updated_at WHERE id = :id AND team_id = :team_id",
        {
            "id": source.id,
            "team_id": source.team_id,
            "status": source.status,
            "generation": source.generation,
            "valid_from": source.valid_from,
            "rechunk": int(source.rechunk),
            "task_id": source.task_id,
            "content_type": source.content_type,
            "error": _json(source.error),
            "warnings": json.dumps(source.warnings),
            "extraction": _json(source.extraction),
            "replaces": source.replaces,
            "updated_at": source.updated_at,
        },
    )


def update_content(connection: Connection, source: SourceRow) -> None:
    """Write what a refresh changes: the facts about the bytes and the fetch."""
    connection.execute(
        "UPDATE sources SET blob = :blob, content_type = :content_type, size_bytes = :size_bytes, sha256 = :sha256,"
        " fetched = :fetched WHERE id = :id AND team_id = :team_id",
        {
            "id": source.id,
            "team_id": source.team_id,
            "blob": source.blob,
            "content_type": source.content_type,
            "size_bytes": source.size_bytes,
            "sha256": source.sha256,
            "fetched": _json(source.fetched),
        },
    )


def find_page(connection: Connection, team_id: str, url_key: str) -> str | None:
    """The id of the team's page of this URL."""
    row = connection.execute(
        "SELECT id FROM sources WHERE team_id = :team_id AND url_key = :url_key",
        {"team_id": team_id, "url_key": url_key},
    ).fetchone()
    return row["id"] if row else None


def delete_source(connection: Connection, team_id: str, source_id: str) -> None:
    """Remove the row; its memberships must be gone."""
    connection.execute(
        "DELETE FROM sources WHERE id = :id AND team_id = :team_id", {"id": source_id, "team_id": team_id}
    )


def has_active(connection: Connection, team_id: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM sources WHERE team_id = :team_id AND status = 'active' LIMIT 1", {"team_id": team_id}
    ).fetchone()
    return row is not None


def list_active_generations(connection: Connection, team_id: str) -> dict[str, range]:
    """The generations in which the index may hold each of the team's indexed sources, by id."""
    rows = connection.execute(
        "SELECT id, valid_from, generation FROM sources WHERE team_id = :team_id AND status = 'active'",
        {"team_id": team_id},
    ).fetchall()
    return {row["id"]: generations_of(row["valid_from"], row["generation"]) for row in rows}


def list_all_ids(connection: Connection) -> set[str]:
    """Every team's source ids: for the sweeper, which compares them with the index."""
    return {row["id"] for row in connection.execute("SELECT id FROM sources").fetchall()}


def list_all_blobs(connection: Connection) -> dict[str, int]:
    """The names of every source's bytes, each with their size."""
    rows = connection.execute("SELECT COALESCE(blob, id) AS name, size_bytes FROM sources").fetchall()
    return {row["name"]: row["size_bytes"] for row in rows}


def generations_of(valid_from: int | None, generation: int) -> range:
    """Those whose text in the index is the source's, by the two columns of its row."""
    return range(generation if valid_from is None else valid_from, generation + 1)


def _json(value: dict[str, Any] | None) -> str | None:
    return json.dumps(value) if value else None


def places_of(text: str | None) -> dict[str, str]:
    """Bucket id to sync status, oldest bucket first, by the column of `source_views`."""
    pairs = (place.partition(" ") for place in sorted((text or "").split(",")) if place)
    return {bucket_id: status for bucket_id, _, status in pairs}


def _literal(text: str) -> str:
    """The text with LIKE's wild cards escaped."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def mark_rechunks(connection: Connection, team_id: str, bucket_id: str) -> int:
    """Mark every source whose chunk sizes come from this bucket: those without an older one. Returns how many."""
    cursor = connection.execute(
        "UPDATE sources SET rechunk = 1 WHERE team_id = :team_id"
        " AND id IN (SELECT source_id FROM memberships WHERE bucket_id = :bucket_id)"
        " AND NOT EXISTS (SELECT 1 FROM memberships m JOIN buckets b ON b.id = m.bucket_id AND b.status <> 'deleting'"
        "   WHERE m.source_id = sources.id AND m.bucket_id < :bucket_id)",
        {"team_id": team_id, "bucket_id": bucket_id},
    )
    return cursor.rowcount


def find_next_rechunk(connection: Connection, after_id: str) -> tuple[str, str] | None:
    """Team and id of the next marked source behind `after_id` that is indexed, and whose team is not in maintenance."""
    row = connection.execute(
        "SELECT team_id, id FROM sources WHERE rechunk = 1 AND id > :after_id AND status = 'active'"
        " AND NOT EXISTS (SELECT 1 FROM teams_in_maintenance r WHERE r.team_id = sources.team_id)"
        " ORDER BY id LIMIT 1",
        {"after_id": after_id},
    ).fetchone()
    return (row["team_id"], row["id"]) if row else None
