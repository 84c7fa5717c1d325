"""Sources as a search tells of them: a page of hits names dozens, and most of what a source has is not asked for."""

import json
from dataclasses import dataclass, field
from sqlite3 import Connection, Row
from typing import Any

from svc_daemon.store.sources import generations_of, places_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSource:
    """What of an indexed source is shown beside a hit, or decides whether the hit counts."""

    id: str
    title: str
    filename: str
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    source_url: str | None = None
    #: Those whose text in the index is the source's.
    generations: range
    #: Bucket id to sync status, oldest bucket first.
    places: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_row(cls, row: Row) -> "FoundSource":
        return cls(
            id=row["id"],
            title=row["title"],
            filename=row["filename"],
            tags=tuple(json.loads(row["tags"])),
            metadata=json.loads(row["metadata"]),
            source_url=row["source_url"],
            generations=generations_of(row["valid_from"], row["generation"]),
            places=places_of(row["places"]),
        )


def list_active_sources(connection: Connection, team_id: str, source_ids: list[str]) -> dict[str, FoundSource]:
    """Those of the named sources that are indexed, by id."""
    rows = connection.execute(
        "SELECT id, title, filename, tags, metadata, source_url, valid_from, generation, places FROM source_views"
        " WHERE team_id = :team_id AND status = 'active' AND id IN (SELECT value FROM json_each(:ids))",
        {"team_id": team_id, "ids": json.dumps(source_ids)},
    ).fetchall()
    return {row["id"]: FoundSource.from_row(row) for row in rows}
