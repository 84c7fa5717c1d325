"""Tasks on the wire: one run of work on a source, with its attempts and progress."""

from typing import Literal

from svc_daemon.wire.buckets import Deletion
from svc_daemon.wire.models import WireModel
from svc_daemon.wire.sources import Shortage, SourceError

INDEXING = "provider_file_search_indexing"
CASCADE = "bucket_delete_cascade"
REBUILD = "store_rebuild"


class TaskProgress(WireModel):
    #: `extract`, `chunk`, `embed`, `index` or `bucket_sync`; `delete` of a bucket; `clear`, then `index` of a rebuild;
    #: null before the first.
    stage: str | None
    #: Of a bucket's deletion, these are members; of a rebuild, documents.
    chunks_done: int
    chunks_total: int | None


class Task(WireModel):
    id: str
    object: Literal["task"] = "task"
    type: str
    #: `queued`, `running`, `succeeded`, `failed` or `canceled`.
    status: str
    source_id: str | None
    #: The bucket that is deleted.
    bucket_id: str | None = None
    #: How far a bucket's deletion is.
    deletion: Deletion | None = None
    attempt: int
    max_attempts: int
    progress: TaskProgress
    error: SourceError | None
    next_attempt_at: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None


class TaskAnswer(Task):
    #: What the service is short of, while a task that has not ended waits for it.
    waits_for: Shortage | None = None
    request_id: str
