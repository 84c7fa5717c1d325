"""Models of upload sessions."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from svc_daemon.wire.requests import FileDescription, UploadBody

#: The only strategy: send the bytes to an upload URL, in chunks that can be resumed.
STRATEGY = "storage_resumable"


class UploadCreate(UploadBody, FileDescription):
    """Body of `POST /v1/buckets/{bucket}/uploads`."""

    filename: str
    #: If omitted, the service derives the type from the file's extension or content.
    content_type: str | None = None
    size_bytes: Annotated[int, Field(ge=0)]
    dry_run: bool = False


class Upload(TypedDict):
    """Response to the creation of an upload session. `upload_url` needs no API key, so don't log it."""

    session_id: str
    object: Literal["upload_session"]
    upload_strategy: str
    upload_url: str
    #: `pending`, `uploading`, `uploaded`, `finalized`, `expired` or `canceled`.
    status: str
    bucket_ids: list[str]
    expires_at: str
    request_id: str


class UploadStatus(TypedDict):
    """The progress of an upload session."""

    session_id: str
    object: Literal["upload_session"]
    status: str
    filename: str
    size_bytes: int
    received_bytes: int
    bucket_ids: list[str]
    #: The source created from the upload; null until the session is finalized.
    source_id: str | None
    expires_at: str
    created_at: str
    request_id: str


class UploadFinalize(UploadBody):
    """Body of a finalize request, which may be empty."""

    dry_run: bool = False


class StorageAnswer(TypedDict):
    """Response to the PUT request that sends the last missing bytes of a session."""

    session_id: str
    status: Literal["uploaded", "finalized"]
    received_bytes: int
    sha256: str
    request_id: str


class PackAnswer(TypedDict):
    """Response to a PUT request to a pack's `upload_url`, if all bytes of the batch are stored."""

    batch_id: str
    object: Literal["pack"]
    status: Literal["uploaded", "finalized"]
    received_bytes: int
    request_id: str
