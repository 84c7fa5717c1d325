"""The event log: the types of events, and what has happened in a team, in commit order."""

from enum import StrEnum
from typing import Any, Literal

from typing_extensions import TypedDict


class LogEvent(TypedDict):
    """Something that has happened in a team."""

    id: str
    object: Literal["event"]
    #: An `EventType`; later releases may add more types.
    type: str
    created_at: str
    #: The bucket, if the event concerns exactly one.
    bucket_id: str | None
    #: The buckets that the event concerns, as far as the key can access them. Null if it concerns the whole team.
    bucket_ids: list[str] | None
    source_id: str | None
    #: The batch of the event or of its source; null if there is none, or if the key can't reach its buckets.
    batch_id: str | None
    #: The key whose request caused the event; null if no request did, or if the caller may not see the key.
    key_id: str | None
    #: What has changed, such as a source's new `status`, `ready`, `title` and `error`.
    data: dict[str, Any]


class EventList(TypedDict):
    object: Literal["list"]
    data: list[LogEvent]
    #: Whether more events that the key may see are already stored.
    has_more: bool
    #: A cursor: the value of `after` for the next request. Null if there are no events yet.
    last_id: str | None
    request_id: str


class EventType(StrEnum):
    """The types of events. Later releases may add types, so clients should ignore unknown types."""

    #: The source is stored and waits to be indexed.
    SOURCE_QUEUED = "source.queued"
    SOURCE_INDEXING = "source.indexing"
    #: A page of a scan was recognised: `data` has `pages_done`, `pages_total` and `seconds_left`.
    SOURCE_SCANNING = "source.scanning"
    #: The source is indexed. `source.ready` follows as soon as searches in the source's buckets find the source.
    SOURCE_ACTIVE = "source.active"
    SOURCE_READY = "source.ready"
    SOURCE_FAILED = "source.failed"
    #: Another source has replaced the source.
    SOURCE_REPLACED = "source.replaced"
    SOURCE_DELETED = "source.deleted"
    SOURCE_ATTACHED = "source.attached"
    SOURCE_DETACHED = "source.detached"
    #: Title, file name, tags or metadata were changed.
    SOURCE_UPDATED = "source.updated"
    BUCKET_CREATED = "bucket.created"
    BUCKET_UPDATED = "bucket.updated"
    BUCKET_ARCHIVED = "bucket.archived"
    BUCKET_DELETED = "bucket.deleted"
    #: Every file of the batch is ready, failed, canceled or deleted.
    BATCH_COMPLETED = "batch.completed"
    #: The batch's time for uploads ended before any file was finalized.
    BATCH_EXPIRED = "batch.expired"
    #: A rebuild of the team's search index has begun or ended.
    STORE_MAINTENANCE = "store.maintenance"
