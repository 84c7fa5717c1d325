"""Upload sessions on the wire (specification, Upload session)."""

from typing import Annotated, Any, Literal

from pydantic import Field

from svc_daemon.wire.models import WireModel
from svc_daemon.wire.requests import RequestBody

#: The one strategy: bytes go to a storage address that takes them in resumable chunks.
STRATEGY = "storage_resumable"


class UploadCreate(RequestBody):
    """Body of `POST /v1/buckets/{bucket}/uploads`."""

    filename: str
    #: The extension's, then the content's, where it is missing.
    content_type: str | None = None
    size_bytes: Annotated[int, Field(ge=0)]
    title: str | None = None
    tags: list[str] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)
    sha256: str | None = None
    replaces: str | None = None
    mapping: str | None = None
    dry_run: bool = False
    #: Refused: only imports and pages are called back.
    webhook: Any = None


class Upload(WireModel):
    """Answer to a create: where to send the bytes. `upload_url` is a capability; it must not be logged."""

    session_id: str
    object: Literal["upload_session"] = "upload_session"
    upload_strategy: str = STRATEGY
    upload_url: str
    #: `pending`, `uploading`, `uploaded`, `finalized`, `expired` or `canceled`.
    status: str
    bucket_ids: list[str]
    expires_at: str
    request_id: str


class UploadStatus(WireModel):
    """How far a session is."""

    session_id: str
    object: Literal["upload_session"] = "upload_session"
    status: str
    filename: str
    size_bytes: int
    received_bytes: int
    bucket_ids: list[str]
    #: Once finalized.
    source_id: str | None
    expires_at: str
    created_at: str
    request_id: str


class UploadFinalize(RequestBody):
    """Body of a finalize: an object, which may be empty."""

    dry_run: bool = False


class StorageAnswer(WireModel):
    """Answer to a PUT after which all bytes are stored."""

    session_id: str
    status: Literal["uploaded", "finalized"]
    received_bytes: int
    sha256: str
    request_id: str
