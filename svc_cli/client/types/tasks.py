"""Types of tasks. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Literal, TypedDict

from svc_cli.client.types.buckets import DeletionDict
from svc_cli.client.types.sources import ShortageDict, SourceErrorDict


class TaskProgressDict(TypedDict):
    stage: str | None
    """`extract`, `chunk`, `embed`, `index` or `bucket_sync`; `delete` for the deletion of a bucket; `clear` and then
    `index` for a rebuild. Null before the first stage.
    """
    chunks_done: int
    """Number of finished chunks; for the deletion of a bucket, of finished sources; for a rebuild, of finished
    documents.
    """
    chunks_total: int | None
    """Total number of chunks, sources or documents; null until it is known."""


class TaskDict(TypedDict):
    id: str
    object: Literal["task"]
    type: str
    status: str
    """`queued`, `running`, `succeeded`, `failed` or `canceled`."""
    source_id: str | None
    bucket_id: str | None
    """The bucket that this task deletes; null for other tasks."""
    deletion: DeletionDict | None
    """The progress of a bucket's deletion; null for other tasks."""
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
    """The resource for which this task is waiting, if there is a shortage of one."""
    request_id: str
