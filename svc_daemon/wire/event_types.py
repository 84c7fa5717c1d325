"""The types of events."""

from enum import StrEnum


class EventType(StrEnum):
    """The types of events. Later releases may add types, so clients should ignore unknown types."""

    #: The source is stored and waits to be indexed.
    SOURCE_QUEUED = "source.queued"
    SOURCE_INDEXING = "source.indexing"
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
