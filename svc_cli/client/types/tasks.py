"""Types of tasks. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Literal, TypedDict

from svc_cli.client.types.buckets import DeletionDict
from svc_cli.client.types.sources import ShortageDict, SourceErrorDict


class TaskProgressDict(TypedDict):
    stage: str | None
    """`extract`, `chunk`, `embed`, `index` or `bucket_sync`; `delete` for a bucket; `clear`, then `index` for a
    rebuild. Null at first.
    """
    chunks_done: int
    """Finished chunks; for a bucket's deletion, sources; for a rebuild, documents."""
    chunks_total: int | None
    """Total number of these; null until known."""


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
    """What the task is waiting for, if there is a shortage."""
    request_id: str
