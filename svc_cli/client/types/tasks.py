"""Types of tasks. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Literal, TypedDict

from svc_cli.client.types.buckets import DeletionDict
from svc_cli.client.types.sources import ShortageDict, SourceErrorDict


class TaskProgressDict(TypedDict):
    stage: str | None
    """`extract`, `chunk`, `embed`, `index` or `bucket_sync` for a source, `delete` for a bucket's deletion, and
    `clear` or `index` for a rebuild of the index. Null before the first stage.
    """
    chunks_done: int
    """Number of finished chunks of a source. For a bucket's deletion, it is the number of sources, and for a rebuild
    of the index, the number of documents.
    """
    chunks_total: int | None
    """What `chunks_done` will be at the end; null until known."""


class TaskDict(TypedDict):
    id: str
    object: Literal["task"]
    type: str
    status: str
    """`queued`, `running`, `succeeded`, `failed` or `canceled`."""
    source_id: str | None
    bucket_id: str | None
    """The bucket that this task deletes, if any."""
    deletion: DeletionDict | None
    """The progress of a bucket's deletion."""
    attempt: int
    max_attempts: int
    progress: TaskProgressDict
    error: SourceErrorDict | None
    next_attempt_at: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None


class TaskAnswerDict(TaskDict):
    waits_for: ShortageDict | None
    """The resource that the task waits for, if the daemon has too little of it."""
    request_id: str
