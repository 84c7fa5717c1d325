"""Models of tasks: background work on a source, bucket or index, with its attempts and progress."""

from typing import Literal

from svc_daemon.wire.buckets import Deletion
from svc_daemon.wire.models import WireModel
from svc_daemon.wire.sources import Shortage, SourceError

INDEXING = "provider_file_search_indexing"
CASCADE = "bucket_delete_cascade"
REBUILD = "store_rebuild"
TEAM_REMOVAL = "team_removal"


class TaskProgress(WireModel):
    #: `extract`, `chunk`, `embed`, `index` or `bucket_sync`; `delete` for the deletion of a bucket; `clear` and then
    #: `index` for a rebuild. Null before the first stage.
    stage: str | None
    #: Number of finished chunks; for the deletion of a bucket, of finished sources; for a rebuild, of finished
    #: documents.
    chunks_done: int
    #: Total number of chunks, sources or documents; null until it is known.
    chunks_total: int | None


class Task(WireModel):
    id: str
    object: Literal["task"] = "task"
    type: str
    #: `queued`, `running`, `succeeded`, `failed` or `canceled`.
    status: str
    source_id: str | None
    #: The bucket that this task deletes; null for other tasks.
    bucket_id: str | None = None
    #: The progress of a bucket's deletion; null for other tasks.
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
    #: The resource for which this task is waiting, if there is a shortage of one.
    waits_for: Shortage | None = None
    request_id: str
