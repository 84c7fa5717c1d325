"""Sources: one row for each file, page or question, with its buckets and its latest task."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from svc_daemon.core import ids, readiness
from svc_daemon.core.uploads.source_fields import Description
from svc_daemon.databases.contract import Connection, Row, values_of
from svc_daemon.errors import NotFound
from svc_daemon.store.columns import column_values, insertion, read_objects, read_texts
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.sources import (
    FetchFacts,
    QuestionFields,
    SourceError,
    StoredExtraction,
    StoredRefresh,
    WebhookCall,
)

#: The condition that a source `s` failed because nothing could recognise the text in its pictures.
UNREAD_SCAN = (
    "s.status = 'failed' AND (s.content_type = 'application/pdf' AND s.error LIKE '%they may be scanned images%'"
    " OR s.content_type IN ('image/png', 'image/jpeg', 'image/tiff', 'image/webp')"
    " AND s.error LIKE '%unsupported_format%')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow(Description):
    """A stored source with its buckets and its latest task."""

    id: str
    team_id: str
    #: `file`, `page` or `qa`.
    type: str = "file"
    #: `queued`, `indexing`, `active` or `failed`.
    status: str = "queued"
    #: Number of the current extraction. The index keeps only the chunks of the newest extraction.
    generation: int = 1
    #: Number of the first extraction from the current bytes; None if it equals `generation`.
    valid_from: int | None = None
    #: Whether to split the document again, because its bucket's chunk sizes have changed or it was read again.
    rechunk: bool = False
    #: The version of the readers that last read the source (`READER_VERSION`); 0 if none has, or none was recorded.
    reader: int = 0
    filename: str
    content_type: str
    size_bytes: int
    #: Hexadecimal SHA-256 of the stored bytes.
    sha256: str
    source_url: str | None = None
    #: The normalized URL, unique within a team.
    url_key: str | None = None
    fetched: FetchFacts | None = None
    #: The schedule of a source from a URL; None if it is fetched again only on request.
    refresh: StoredRefresh | None = None
    #: The host of its URL. Only one try at a time goes to each host.
    refresh_host: str | None = None
    #: When the next try is due.
    refresh_due_at: str | None = None
    #: For type `qa`.
    qa: QuestionFields | None = None
    webhook: WebhookCall | None = None
    #: Name of the source's blob; None means the source's id.
    blob: str | None = None
    #: Id of the batch in which the source was uploaded.
    batch_id: str | None = None
    task_id: str | None = None
    #: `code`, `message` and `retryable`, if indexing failed.
    error: SourceError | None = None
    warnings: tuple[str, ...] = ()
    #: Statistics of the extraction; None until the source is indexed.
    extraction: StoredExtraction | None = None
    created_at: str
    updated_at: str
    task_type: str | None = None
    task_status: str | None = None
    #: Maps the id of each bucket to the source's status in it (see `core.readiness`), oldest bucket first.
    places: dict[str, str] = field(default_factory=dict)
    #: Whether the team's index is being rebuilt.
    in_maintenance: bool = False

    @classmethod
    def from_row(cls, row: Row) -> "SourceRow":
        values = values_of(row)
        read_objects(values, "metadata", "error", "extraction", "fetched", "qa", "webhook", "refresh")
        values["tags"], values["warnings"] = read_texts(values["tags"]), read_texts(values["warnings"])
        values["places"] = places_of(values["places"])
        for name in ("in_maintenance", "rechunk"):
            values[name] = bool(values[name])
        return cls(**values)

    @property
    def blob_name(self) -> str:
        return self.blob or self.id

    @property
    def facts(self) -> dict[str, Any]:
        """Return the facts of the last fetch and the fields of a question in one."""
        return {**(self.fetched or {}), **(self.qa or {})}

    @property
    def is_swapping(self) -> bool:
        """Whether the index may not have the text of the stored bytes yet, but that of earlier ones."""
        return bool(self.fetched and self.fetched.get("is_swapping"))

    @property
    def recognized_pages(self) -> Mapping[str, float]:
        """Map the numbers of pages whose text was recognised in pictures to how certain it is, 0 to 1."""
        return self.extraction.get("recognized_pages", {}) if self.extraction else {}

    @property
    def generations(self) -> range:
        """Return the generation numbers of extractions from the current bytes. Splitting the text again adds one."""
        return generations_of(self.valid_from, self.generation)

    @property
    def searched_places(self) -> list[str]:
        """Return the ids of the buckets whose searches find the source (see `core.readiness.is_found_by_bucket`)."""
        return list(self.places) if readiness.is_found_by_bucket(self.type) else []

    @property
    def sync_status(self) -> str:
        return readiness.sync_status(self.places.values())

    @property
    def is_complete(self) -> bool:
        """Whether the source is active in all its buckets. Unlike `ready`, stays true during a rebuild of the index."""
        return readiness.is_ready(self.status, self.places.values())

    @property
    def ready(self) -> bool:
        return readiness.is_ready(self.status, self.places.values(), in_maintenance=self.in_maintenance)


def create_sources(connection: Connection, sources: Iterable[SourceRow]) -> None:
    connection.executemany(
        insertion(SourceRow, "sources", "task_type", "task_status", "places", "in_maintenance"),
        map(column_values, sources),
    )


def find_source(connection: Connection, team_id: str, source_id: str) -> SourceRow | None:
    row = connection.execute(
        "SELECT * FROM source_views WHERE id = :id AND team_id = :team_id", {"id": source_id, "team_id": team_id}
    ).fetchone()
    return SourceRow.from_row(row) if row else None


def find_sources(connection: Connection, team_id: str, source_ids: Sequence[str]) -> dict[str, SourceRow]:
    """Map the ids to their sources. Missing ones are left out."""
    rows = connection.execute(
        "SELECT * FROM source_views WHERE id IN (SELECT value FROM json_each(:ids)) AND team_id = :team_id",
        {"ids": json.dumps(source_ids), "team_id": team_id},
    ).fetchall()
    return {row["id"]: SourceRow.from_row(row) for row in rows}


def find_again(connection: Connection, team_id: str, known: Sequence[SourceRow]) -> dict[str, SourceRow]:
    """Read sources again that were read before. Faster than `find_sources` if few of them have changed."""
    rows = connection.execute(
        "SELECT id, title, generation, task_id, replaces, updated_at, in_maintenance, places FROM source_views"
        " WHERE id IN (SELECT value FROM json_each(:ids)) AND team_id = :team_id",
        {"ids": json.dumps([source.id for source in known]), "team_id": team_id},
    ).fetchall()
    current = {row["id"]: (*tuple(row)[1:-1], places_of(row["places"])) for row in rows}
    same: dict[str, SourceRow] = {}
    for source in known:
        dated = (source.title, source.generation, source.task_id, source.replaces, source.updated_at)
        if current.get(source.id) == (*dated, source.in_maintenance, source.places):
            same[source.id] = source
    changed = list(current.keys() - same.keys())
    return same | (find_sources(connection, team_id, changed) if changed else {})


def list_titles(connection: Connection, team_id: str, source_ids: Sequence[str]) -> dict[str, str]:
    """Map the ids to the sources' titles. Missing ones are left out."""
    rows = connection.execute(
        "SELECT id, title FROM sources WHERE id IN (SELECT value FROM json_each(:ids)) AND team_id = :team_id",
        {"ids": json.dumps(source_ids), "team_id": team_id},
    ).fetchall()
    return {row["id"]: row["title"] for row in rows}


def get_source(connection: Connection, team_id: str, source_id: str) -> SourceRow:
    """Return the source; raises NotFound."""
    source = find_source(connection, team_id, source_id)
    if source is None:
        raise NotFound(ErrorCode.SOURCE_NOT_FOUND, f"There is no source {source_id!r}.")
    return source


def list_replacing(connection: Connection, team_id: str, replaced_id: str) -> list[SourceRow]:
    """List the sources that will replace this one when they are ready."""
    rows = connection.execute(
        "SELECT * FROM source_views WHERE team_id = :team_id AND replaces = :replaces",
        {"team_id": team_id, "replaces": replaced_id},
    ).fetchall()
    return [SourceRow.from_row(row) for row in rows]


def update_description(connection: Connection, source: SourceRow) -> None:
    """Update the fields that a `PATCH` request can change."""
    values = column_values(source)
    connection.execute(
        "UPDATE sources SET title = :title, filename = :filename, tags = :tags, metadata = :metadata,"
        " updated_at = :updated_at WHERE id = :id AND team_id = :team_id",
        values,
    )
    connection.execute(
        "UPDATE memberships SET source_title = :title, source_filename = :filename, source_updated_at = :updated_at"
        " WHERE source_id = :id AND team_id = :team_id",
        values,
    )


def update_state(connection: Connection, source: SourceRow) -> None:
    """Update the columns that indexing changes."""
    values = column_values(source)
    connection.execute(
        "UPDATE sources SET status = :status, generation = :generation, valid_from = :valid_from, rechunk = :rechunk,"
        " reader = :reader,"
        " task_id = :task_id, content_type = :content_type, error = :error, warnings = :warnings, replaces = :replaces,"
        " extraction = :extraction, updated_at = :updated_at WHERE id = :id AND team_id = :team_id",
        values,
    )
    connection.execute(
        "UPDATE memberships SET source_status = :status, source_updated_at = :updated_at"
        " WHERE source_id = :id AND team_id = :team_id",
        values,
    )


def update_statuses(
    connection: Connection, team_id: str, source_ids: Sequence[str], status: str, updated_at: str
) -> None:
    """Set the status of these sources and clear their errors."""
    values = {"ids": json.dumps(source_ids), "team_id": team_id, "status": status, "updated_at": updated_at}
    connection.execute(
        "UPDATE sources SET status = :status, error = NULL, updated_at = :updated_at"
        " WHERE id IN (SELECT value FROM json_each(:ids)) AND team_id = :team_id",
        values,
    )
    connection.execute(
        "UPDATE memberships SET source_status = :status, source_updated_at = :updated_at"
        " WHERE source_id IN (SELECT value FROM json_each(:ids)) AND team_id = :team_id",
        values,
    )


def update_content(connection: Connection, source: SourceRow) -> None:
    """Update the fields that change when the source is fetched again."""
    values = column_values(source)
    connection.execute(
        "UPDATE sources SET blob = :blob, content_type = :content_type, size_bytes = :size_bytes, sha256 = :sha256,"
        " fetched = :fetched WHERE id = :id AND team_id = :team_id",
        values,
    )
    connection.execute(
        "UPDATE memberships SET source_size_bytes = :size_bytes WHERE source_id = :id AND team_id = :team_id",
        values,
    )


def find_page(connection: Connection, team_id: str, url_key: str) -> str | None:
    """Return the id of the team's page with this normalized URL, or None."""
    row = connection.execute(
        "SELECT id FROM sources WHERE team_id = :team_id AND url_key = :url_key",
        {"team_id": team_id, "url_key": url_key},
    ).fetchone()
    return row["id"] if row else None


def delete_source(connection: Connection, team_id: str, source_id: str) -> None:
    """Delete the source's row. The caller must have removed the source from all buckets."""
    where = {"id": source_id, "team_id": team_id}
    connection.execute("DELETE FROM recognized_pages WHERE source_id = :source_id", {"source_id": source_id})
    connection.execute("DELETE FROM sources WHERE id = :id AND team_id = :team_id", where)


def has_active(connection: Connection, team_id: str) -> bool:
    query = "SELECT 1 FROM sources WHERE team_id = :team_id AND status = 'active' LIMIT 1"
    return connection.execute(query, {"team_id": team_id}).fetchone() is not None


def list_active_generations(connection: Connection, team_id: str) -> dict[str, range]:
    """Map the id of each indexed source to the numbers of the extractions whose search hits are valid."""
    rows = connection.execute(
        "SELECT id, valid_from, generation FROM sources WHERE team_id = :team_id AND status = 'active'",
        {"team_id": team_id},
    ).fetchall()
    return {row["id"]: generations_of(row["valid_from"], row["generation"]) for row in rows}


def list_all_ids(connection: Connection) -> set[str]:
    """List the source ids of all teams."""
    return {row["id"] for row in connection.execute("SELECT id FROM sources").fetchall()}


def list_all_blobs(connection: Connection) -> dict[str, int]:
    """Map the blob name of every source to its size in bytes."""
    rows = connection.execute("SELECT COALESCE(blob, id) AS name, size_bytes FROM sources").fetchall()
    return {row["name"]: row["size_bytes"] for row in rows}


def list_named_blobs(connection: Connection, names: Collection[str]) -> set[str]:
    """Return the names that sources have. Names without a source id are returned too, since they can't be looked up."""
    source_ids = {name: ids.source_of(name) for name in names}
    rows = connection.execute(
        "SELECT COALESCE(blob, id) AS name FROM sources WHERE id IN (SELECT value FROM json_each(:ids))",
        {"ids": json.dumps(sorted(filter(None, source_ids.values())))},
    ).fetchall()
    return {row["name"] for row in rows} | {name for name, source_id in source_ids.items() if source_id is None}


def generations_of(valid_from: int | None, generation: int) -> range:
    """Return the generation numbers of the extractions from the source's current bytes."""
    return range(generation if valid_from is None else valid_from, generation + 1)


def places_of(text: str | None) -> dict[str, str]:
    """Parse `source_views.places` to a map of bucket id to the source's status in the bucket, oldest bucket first."""
    pairs = (place.partition(" ") for place in sorted((text or "").split(",")) if place)
    return {bucket_id: status for bucket_id, _, status in pairs}
