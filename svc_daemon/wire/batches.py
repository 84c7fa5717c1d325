"""Models of batches: up to 100 files that are uploaded together."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from svc_daemon.wire.light.errors import ErrorBody
from svc_daemon.wire.requests import FileDescription, NoDryRunBody, UploadBody

ClientFileId = Annotated[str, Field(min_length=1, max_length=255)]
#: Fields that describe a file, and may be in either of its two places in a batch.
DESCRIPTION = tuple(FileDescription.model_fields)


class ItemFields(NoDryRunBody, FileDescription):
    """The fields that describe one file of the batch, in the manifest's item or in the entry of `files`."""

    client_file_id: ClientFileId
    #: Always refused: only URL imports can have a webhook.
    webhook: Any = None


class ManifestItem(ItemFields):
    """One file of the batch."""

    filename: str | None = None


class Manifest(NoDryRunBody):
    version: Annotated[int, Field(ge=1, le=1)]
    #: Used if the header Idempotency-Key is missing.
    batch_idempotency_key: str | None = None
    items: Sequence[ManifestItem]


class BatchFile(ItemFields):
    """The name and size of a file. It may be described here, too, or in the item with the same `client_file_id`."""

    filename: str
    content_type: str | None = None
    size_bytes: Annotated[int, Field(ge=0)]


class BatchFields(UploadBody):
    """The fields that all requests to create a batch have in common."""

    manifest: Manifest
    files: list[BatchFile]
    #: Whether to return a URL that takes all files in one request; each file then needs a `sha256`.
    pack: bool = False
    dry_run: bool = False


class BatchCreate(BatchFields):
    """Body of `POST /v1/buckets/{bucket}/batches`."""


class BatchTarget(TypedDict):
    """Where to send one file."""

    client_file_id: str
    session_id: str
    upload_url: str
    bucket_ids: list[str]
    #: Offset of the file in the pack (the bytes of all files joined); missing without a pack.
    offset: NotRequired[int]
    size_bytes: NotRequired[int]
    expires_at: str


class BatchPack(TypedDict):
    """Where to send the bytes of all files in one request. `upload_url` needs no API key, so don't log it."""

    upload_url: str
    size_bytes: int
    expires_at: str


class RejectedItem(TypedDict):
    client_file_id: str
    error: ErrorBody


class Batch(TypedDict):
    """Response to the creation of a batch."""

    batch_id: str
    object: Literal["batch"]
    status: str
    upload_strategy: str
    bucket_ids: list[str]
    items: list[BatchTarget]
    rejected: list[RejectedItem]
    #: Present only if a pack was requested and the batch is small enough for one request.
    pack: NotRequired[BatchPack]
    expires_at: str
    request_id: str


class BatchFinalize(UploadBody):
    """Body of a finalize request. `abandon_pending` cancels incomplete uploads, so that the batch can end."""

    mode: Literal["finalize_uploaded", "abandon_pending"] = "finalize_uploaded"
    dry_run: bool = False


class FinalizedItem(TypedDict):
    client_file_id: str
    session_id: str
    knowledge_id: str
    task_id: str


class ReplayedItem(FinalizedItem):
    #: The status of the source, or `deleted` if it was deleted since.
    status: str
    ready: bool
    #: The error code of searches, if a rebuild of the index keeps the source from being `ready`. Otherwise null.
    ready_withheld_by: str | None


class PendingItem(TypedDict):
    client_file_id: str
    session_id: str
    reason: Literal["blob_not_uploaded", "checksum_mismatch", "time_budget_exhausted"]


class FailedItem(TypedDict):
    client_file_id: str
    session_id: str
    error: ErrorBody


class BatchFinalized(TypedDict):
    """Response to a finalize request. Each file is in exactly one of the lists."""

    batch_id: str
    status: str
    finalized: list[FinalizedItem]
    pending: list[PendingItem]
    failed: list[FailedItem]
    replayed: list[ReplayedItem]
    request_id: str


class BatchItem(TypedDict):
    """The state of one file of a batch."""

    client_file_id: str
    session_id: str
    knowledge_id: str | None
    task_id: str | None
    bucket_ids: list[str]
    status: str
    ready: bool
    error: ErrorBody | None
    #: Warnings about the source, such as pages without text.
    warnings: list[str]


class BatchCounters(TypedDict):
    queued: int
    indexing: int
    active: int
    failed: int
    pending: int
    total: int


class BatchStatus(TypedDict):
    """The status of a batch, with `items` only for `include_items=true`."""

    batch_id: str
    object: Literal["batch"]
    bucket_ids: list[str]
    #: `open`, `partial` or `processing`; at the end `completed`, `completed_with_failures`, `failed` or `expired`.
    status: str
    terminal: bool
    ready: bool
    #: The error code of searches, if a rebuild of the index keeps the batch from being `ready`. Otherwise null.
    ready_withheld_by: str | None
    counters: BatchCounters
    created_at: str
    expires_at: str
    items: NotRequired[list[BatchItem]]
    request_id: str
