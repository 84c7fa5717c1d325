"""Models of tasks: background work on a source, bucket or index."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from svc_daemon.wire.buckets import Deletion
from svc_daemon.wire.sources import Shortage, SourceError

INDEXING = "provider_file_search_indexing"
CASCADE = "bucket_delete_cascade"
REBUILD = "store_rebuild"
TEAM_REMOVAL = "team_removal"


class TaskProgress(TypedDict):
    #: `extract`, `ocr`, `chunk`, `embed`, `index` or `bucket_sync` for a source, `delete` for a bucket's deletion, and
    #: `clear` or `index` for a rebuild of the index. Null before the first stage.
    stage: str | None
    #: Number of finished chunks of a source. For a bucket's deletion, it is the number of sources, and for a rebuild of
    #: the index, the number of documents.
    chunks_done: int
    #: What `chunks_done` will be at the end; null until known.
    chunks_total: int | None
    #: Number of scanned pages whose text is recognised. This field and the next two are there for scans alone.
    pages_done: NotRequired[int]
    #: What `pages_done` will be at the end.
    pages_total: NotRequired[int]
    #: Estimated seconds until all pages are read, apart from those of other scans; null if unknown.
    seconds_left: NotRequired[int | None]


class Task(TypedDict):
    id: str
    object: Literal["task"]
    type: str
    #: `queued`, `running`, `succeeded`, `failed` or `canceled`.
    status: str
    source_id: str | None
    #: The bucket that this task deletes, if any.
    bucket_id: str | None
    #: The progress of a bucket's deletion.
    deletion: Deletion | None
    attempt: int
    max_attempts: int
    progress: TaskProgress
    error: SourceError | None
    next_attempt_at: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None


class TaskAnswer(Task):
    #: The resource that the task waits for, if the daemon has too little of it.
    waits_for: Shortage | None
    request_id: str
