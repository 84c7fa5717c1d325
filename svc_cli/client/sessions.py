"""Upload sessions, in which the upload of a file can be interrupted and resumed."""

from typing import TYPE_CHECKING

from svc_cli.client.calls import Calls, part
from svc_cli.client.contents import Content
from svc_cli.client.storage import OnSent, Storage
from svc_cli.client.transport import Reply, Transport
from svc_cli.client.uploads import Description

if TYPE_CHECKING:
    from svc_cli.client.types import (
        SourceAnswer,
        Upload,
        UploadStatus,
    )


class SessionCalls(Calls):
    """The client's methods that open, finish and cancel upload sessions, and that send the bytes of sessions and
    batches."""

    def __init__(self, transport: Transport, storage: Storage) -> None:
        super().__init__(transport)
        self._storage = storage

    def open_upload(
        self, bucket: str, description: Description, size_bytes: int, idempotency_key: str | None = None
    ) -> "Reply[Upload]":
        """Open a session.

        If the key was used before, the existing session is returned. Don't log `upload_url`: anyone who has it can
        upload.
        """
        body = {**description.body(), "size_bytes": size_bytes}
        return self._create(f"/v1/buckets/{part(bucket)}/uploads", body, idempotency_key)

    def upload_status(self, bucket: str, session_id: str) -> "UploadStatus":
        """Return how many bytes have arrived, and the id of the source if the session is finalized."""
        return self._get(_path(bucket, session_id))

    def send_bytes(
        self, upload_url: str, content: Content, *, resume: bool = False, on_sent: OnSent | None = None
    ) -> int:
        """Send the bytes that are not stored yet, reconnecting if needed, and return the number of bytes sent.

        With `resume`, ask the service first how many bytes it has. `on_sent` is called with the size of each block.
        """
        return self._storage.send(upload_url, content, resume=resume, on_sent=on_sent)

    def finalize_upload(self, bucket: str, session_id: str) -> "Reply[SourceAnswer]":
        """Create the source from an uploaded file; a second call returns the same source.

        Raises ApiError `blob_not_uploaded` if bytes are missing, and `source_not_found` if the source was deleted
        afterwards.
        """
        return self._transport.send_json("POST", f"{_path(bucket, session_id)}/finalize", {})

    def cancel_upload(self, bucket: str, session_id: str) -> "UploadStatus":
        """Cancel a session and discard its bytes."""
        return self._call("DELETE", _path(bucket, session_id))

    def upload_content(
        self, bucket: str, description: Description, content: Content, idempotency_key: str | None = None
    ) -> "SourceAnswer":
        """Open a session, send the bytes, and return the source. A call with the same key resumes the upload."""
        opened = self.open_upload(bucket, description, content.size_bytes, idempotency_key)
        if opened.body["status"] not in {"finalized", "canceled"}:
            self.send_bytes(opened.body["upload_url"], content, resume=opened.is_replay)
        return self.finalize_upload(bucket, opened.body["session_id"]).body


def _path(bucket: str, session_id: str) -> str:
    return f"/v1/buckets/{part(bucket)}/uploads/{part(session_id)}"
