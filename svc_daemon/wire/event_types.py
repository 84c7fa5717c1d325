"""The types of events. This module is fast to import, since it doesn't import pydantic."""

from enum import StrEnum


class EventType(StrEnum):
    """What has happened. Later releases may add types, so ignore unknown ones."""

    #: The source is stored and waits to be indexed.
    SOURCE_QUEUED = "source.queued"
    SOURCE_INDEXING = "source.indexing"
    #: The source is indexed. It is ready once the search index also lists it in its buckets.
    SOURCE_ACTIVE = "source.active"
    SOURCE_READY = "source.ready"
    SOURCE_FAILED = "source.failed"
    #: Another source has replaced this one.
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
    #: No file of the batch was complete in time.
    BATCH_EXPIRED = "batch.expired"
    #: A rebuild of the team's search index has begun or ended.
    STORE_MAINTENANCE = "store.maintenance"
