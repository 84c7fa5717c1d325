"""The types of events, which clients filter by. This module doesn't import pydantic, so that importing it is fast."""

from enum import StrEnum


class EventType(StrEnum):
    """What has happened. Later releases may add types, so clients should ignore types that they don't know."""

    #: The source is stored and waits to be indexed, for the first time or again.
    SOURCE_QUEUED = "source.queued"
    SOURCE_INDEXING = "source.indexing"
    #: The source is indexed; it is ready once the index also has its current buckets.
    SOURCE_ACTIVE = "source.active"
    SOURCE_READY = "source.ready"
    SOURCE_FAILED = "source.failed"
    #: Another source has replaced this one, which was deleted.
    SOURCE_REPLACED = "source.replaced"
    SOURCE_DELETED = "source.deleted"
    SOURCE_ATTACHED = "source.attached"
    SOURCE_DETACHED = "source.detached"
    #: The source's title, file name, tags or metadata were changed.
    SOURCE_UPDATED = "source.updated"
    BUCKET_CREATED = "bucket.created"
    BUCKET_UPDATED = "bucket.updated"
    BUCKET_ARCHIVED = "bucket.archived"
    BUCKET_DELETED = "bucket.deleted"
    #: Every file of the batch is ready, failed, canceled or deleted.
    BATCH_COMPLETED = "batch.completed"
    #: The time for uploading ended before any file of the batch was complete.
    BATCH_EXPIRED = "batch.expired"
    #: The rebuild of the team's search index has begun or ended.
    STORE_MAINTENANCE = "store.maintenance"
