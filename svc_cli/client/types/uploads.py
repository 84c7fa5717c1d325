"""Types of uploads. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Literal, TypedDict


class UploadDict(TypedDict):
    """Response to the creation of an upload session. `upload_url` needs no API key, so don't log it."""

    session_id: str
    object: Literal["upload_session"]
    upload_strategy: str
    upload_url: str
    status: str
    """`pending`, `uploading`, `uploaded`, `finalized`, `expired` or `canceled`."""
    bucket_ids: list[str]
    expires_at: str
    request_id: str


class UploadStatusDict(TypedDict):
    """The progress of an upload session."""

    session_id: str
    object: Literal["upload_session"]
    status: str
    filename: str
    size_bytes: int
    received_bytes: int
    bucket_ids: list[str]
    source_id: str | None
    """The source created from the upload; null until the session is finalized."""
    expires_at: str
    created_at: str
    request_id: str


class StorageAnswerDict(TypedDict):
    """Response to the PUT request that sends the last missing bytes of a session."""

    session_id: str
    status: Literal["uploaded", "finalized"]
    received_bytes: int
    sha256: str
    request_id: str


class PackAnswerDict(TypedDict):
    """Response to a PUT request to a pack's `upload_url`, if all bytes of the batch are stored."""

    batch_id: str
    object: Literal["pack"]
    status: Literal["uploaded", "finalized"]
    received_bytes: int
    request_id: str
