"""Types of batches. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Literal, NotRequired, TypedDict

from svc_cli.client.types.errors import ErrorBodyDict


class BatchTargetDict(TypedDict):
    """Where to send one file."""

    client_file_id: str
    session_id: str
    upload_url: str
    bucket_ids: list[str]
    offset: NotRequired[int]
    """Offset of the file in the pack (the bytes of all files joined); missing without a pack."""
    size_bytes: NotRequired[int]
    expires_at: str


class BatchPackDict(TypedDict):
    """Where to send the bytes of all files in one request. `upload_url` needs no API key, so don't log it."""

    upload_url: str
    size_bytes: int
    expires_at: str


class RejectedItemDict(TypedDict):
    client_file_id: str
    error: ErrorBodyDict


class BatchDict(TypedDict):
    """Response to the creation of a batch."""

    batch_id: str
    object: Literal["batch"]
    status: str
    upload_strategy: str
    bucket_ids: list[str]
    items: list[BatchTargetDict]
    rejected: list[RejectedItemDict]
    pack: NotRequired[BatchPackDict]
    """Present only if a pack was requested and the batch is small enough for one request."""
    expires_at: str
    request_id: str


class FinalizedItemDict(TypedDict):
    client_file_id: str
    session_id: str
    knowledge_id: str
    task_id: str


class ReplayedItemDict(FinalizedItemDict):
    status: str
    ready: bool
    ready_withheld_by: str | None
    """The error code of searches, if a rebuild of the index keeps the source from being `ready`. Otherwise null."""


class PendingItemDict(TypedDict):
    client_file_id: str
    session_id: str
    reason: Literal["blob_not_uploaded", "checksum_mismatch", "time_budget_exhausted"]


class FailedItemDict(TypedDict):
    client_file_id: str
    session_id: str
    error: ErrorBodyDict


class BatchFinalizedDict(TypedDict):
    """Response to a finalize request. Each file is in exactly one of the lists."""

    batch_id: str
    status: str
    finalized: list[FinalizedItemDict]
    pending: list[PendingItemDict]
    failed: list[FailedItemDict]
    replayed: list[ReplayedItemDict]
    request_id: str


class BatchItemDict(TypedDict):
    """The state of one file of a batch."""

    client_file_id: str
    session_id: str
    knowledge_id: str | None
    task_id: str | None
    bucket_ids: list[str]
    status: str
    ready: bool
    error: ErrorBodyDict | None
    warnings: list[str]
    """Warnings about the source, such as pages without text."""


class BatchCountersDict(TypedDict):
    queued: int
    indexing: int
    active: int
    failed: int
    pending: int
    total: int


class BatchStatusDict(TypedDict):
    """The status of a batch, with `items` only for `include_items=true`."""

    batch_id: str
    object: Literal["batch"]
    bucket_ids: list[str]
    status: str
    """`open`, `partial` or `processing`; at the end `completed`, `completed_with_failures`, `failed` or `expired`."""
    terminal: bool
    ready: bool
    ready_withheld_by: str | None
    """The error code of searches, if a rebuild of the index keeps the batch from being `ready`. Otherwise null."""
    counters: BatchCountersDict
    created_at: str
    expires_at: str
    items: NotRequired[list[BatchItemDict]]
    request_id: str
