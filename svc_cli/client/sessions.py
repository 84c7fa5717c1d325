"""Sends files, in one request or in an upload session that can be resumed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from svc_cli.client.calls import Calls, key_or_random, part
from svc_cli.client.contents import Content, OpenFileContent
from svc_cli.client.new_files import Description, NewFile
from svc_cli.client.storage import OnSent, Storage
from svc_cli.client.transport import Reply, Request, Transport

#: Larger files are sent in an upload session.
ONE_REQUEST_BYTES = 8 * 1024 * 1024

if TYPE_CHECKING:
    from os import PathLike

    from svc_cli.client.types import (
        SourceAnswerDict,
        UploadDict,
        UploadStatusDict,
    )


class SessionCalls(Calls):
    """The client's methods for upload sessions and for sending files."""

    def __init__(self, transport: Transport, storage: Storage) -> None:
        super().__init__(transport)
        self._storage = storage

    def open_upload(
        self, bucket: str, description: Description, size_bytes: int, idempotency_key: str | None = None
    ) -> "Reply[UploadDict]":
        """Open an upload session, or return the session with this idempotency key.

        Don't log `upload_url`: anyone who has it can upload.
        """
        body = {**description.body(), "size_bytes": size_bytes}
        return self._create(f"/v1/buckets/{part(bucket)}/uploads", body, idempotency_key)

    def upload_status(self, bucket: str, session_id: str) -> "UploadStatusDict":
        """Return the number of received bytes and, once finalized, the source's id."""
        return self._get(_path(bucket, session_id))

    def send_bytes(
        self, upload_url: str, content: Content, *, resume: bool = False, on_sent: OnSent | None = None
    ) -> int:
        """Send the missing bytes, reconnecting if needed, and return how many were sent.

        With `resume`, ask first how many bytes the service has. `on_sent` is called with the size of each block.
        Bytes are sent only to the service's own address, whatever address is in `upload_url`.
        """
        asked = urlsplit(upload_url)
        own_url = f"{self._transport.base_url}{asked.path}" + (f"?{asked.query}" if asked.query else "")
        return self._storage.send(own_url, content, resume=resume, on_sent=on_sent)

    def finalize_upload(self, bucket: str, session_id: str) -> "Reply[SourceAnswerDict]":
        """Create the source from an uploaded file; a second call returns the same source.

        Raises ApiError `blob_not_uploaded` if bytes are missing, and `source_not_found` if the source has
        been deleted.
        """
        return self._transport.send_json("POST", f"{_path(bucket, session_id)}/finalize", {})

    def cancel_upload(self, bucket: str, session_id: str) -> "UploadStatusDict":
        """Cancel an upload session and discard its bytes."""
        return self._call("DELETE", _path(bucket, session_id))

    def upload_content(
        self, bucket: str, description: Description, content: Content, idempotency_key: str | None = None
    ) -> "SourceAnswerDict":
        """Upload the bytes and return the source. A call with the same key resumes the session."""
        opened = self.open_upload(bucket, description, content.size_bytes, idempotency_key)
        if opened.body["status"] not in {"finalized", "canceled"}:
            self.send_bytes(opened.body["upload_url"], content, resume=opened.is_replay)
        return self.finalize_upload(bucket, opened.body["session_id"]).body

    def upload_file(
        self,
        bucket: str,
        path: "str | PathLike[str]",
        *,
        title: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        replaces: str | None = None,
        idempotency_key: str | None = None,
    ) -> "SourceAnswerDict":
        """Send a file, and return the new source, which is queued but not yet searchable.

        The title is the file's name unless given. `replaces` is the id of a source to replace as soon as the
        new one is ready.
        Raises OSError if the file can't be read.
        """
        name = Path(path).name
        with Path(path).open("rb") as file:
            content = OpenFileContent(file)
            description = Description(
                filename=name,
                title=title or name,
                tags=tuple(tags),
                metadata=dict(metadata or {}),
                sha256=content.sha256(),
                replaces=replaces,
            )
            if content.size_bytes > ONE_REQUEST_BYTES:
                return self.upload_content(bucket, description, content, idempotency_key)
            whole = NewFile(**vars(description), data=b"".join(content.blocks(0)))
            return self.upload(bucket, whole, idempotency_key)

    def upload(self, bucket: str, file: NewFile, idempotency_key: str | None = None) -> "SourceAnswerDict":
        """Send a file in one request, and return the new source, which is not yet searchable."""
        return self.send_upload(bucket, file, idempotency_key).body

    def send_upload(self, bucket: str, file: NewFile, idempotency_key: str | None = None) -> "Reply[SourceAnswerDict]":
        """Like `upload`, but return the whole reply. `is_replay` is true if the key was used before."""
        return self._transport.send(
            Request(
                method="POST",
                path=f"/v1/buckets/{part(bucket)}/files",
                form=file.form(),
                file=(file.filename, file.data),
                idempotency_key=key_or_random(idempotency_key),
                is_create=True,
            )
        )


def _path(bucket: str, session_id: str) -> str:
    return f"/v1/buckets/{part(bucket)}/uploads/{part(session_id)}"
