"""Sends files, in one request or in an upload session that can be resumed.

Anyone who has an upload URL can use it without an API key, so upload URLs never appear in errors or logs.
"""

import http.client
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from svc_cli.client.calls import Calls, key_or_random, part
from svc_cli.client.connection_pools import ConnectionFailed, ConnectionPool, MakeTls, Proof
from svc_cli.client.new_files import (
    Content,
    Description,
    NewFile,
    OnConflict,
    OpenFileContent,
    decide,
    find_twin,
    lacks,
    title_conflict,
)
from svc_cli.client.retries import Attempts, RetryPolicy, Stopped, odd_response, refusal
from svc_cli.client.transport import AWAY, Reply, Request, Transport
from svc_cli.daemon.probes import tls_context
from svc_cli.deadlines import Deadline
from svc_cli.errors import BadAnswer, NetworkFailed, SvcError
from svc_cli.given_files import title_of
from svc_cli.http_responses import OddResponse, parse_answer

if TYPE_CHECKING:
    from os import PathLike

    from svc_cli.client.types import (
        SourceAnswerDict,
        UploadDict,
        UploadStatusDict,
    )


TIMEOUT_S = 60.0
#: A body up to this size is sent together with its headers.
SMALL_BYTES = 1024 * 1024
#: An upload URL, with its path and query as the group.
_UPLOAD_URL = re.compile(r"(?:[^/?#]*//[^/?#]*)?(/[!-~]*)")
#: The number of bytes in a header.
_COUNT = re.compile(r"[0-9]{1,18}")

OnSent = Callable[[int], None]


class Storage:
    """Sends bytes to upload URLs. Threads may share it."""

    def __init__(
        self,
        policy: RetryPolicy | None = None,
        make_tls: MakeTls = tls_context,
        proof: Proof | None = None,
    ) -> None:
        self._policy = policy or RetryPolicy()
        self._pool = ConnectionPool(TIMEOUT_S, make_tls, proof)
        self._stopped = threading.Event()
        #: The time in which all bytes have to be sent.
        self.deadline = Deadline()

    def close(self) -> None:
        self._pool.close()

    def stop(self) -> None:
        """Make all calls of `send` raise `pacing.Stopped`, now and later. Sent bytes stay stored."""
        self._stopped.set()

    def send(self, url: str, content: Content, *, resume: bool = False, on_sent: OnSent | None = None) -> int:
        """Send the missing bytes, reconnecting if needed, and return how many were sent.

        With `resume`, ask first how many bytes the service has. Raises NetworkFailed and ApiError, such as
        `checksum_mismatch`.
        """
        offset: int | None = None if resume else 0
        first: int | None = offset
        attempts, stuck, most = Attempts(self._policy, self.deadline, self._stopped), 0, 0
        while True:
            before = offset
            try:
                offset = self._exchange(url, content, offset, on_sent)
            except SvcError as error:
                attempts.pause(error)
                offset = None
                continue
            first = offset if first is None else first
            if offset >= content.size_bytes:
                return offset - first
            if offset > most:
                attempts, stuck, most = Attempts(self._policy, self.deadline, self._stopped), 0, offset
            stuck += before is not None
            if stuck > self._policy.attempts:
                raise BadAnswer("The storage address accepts no more bytes, but reports that some are missing.")

    def _exchange(self, url: str, content: Content, offset: int | None, on_sent: OnSent | None) -> int:
        """PUT the bytes from `offset` on, and return how many bytes are stored. If `offset` is None, send none."""
        self.deadline.check()
        if self._stopped.is_set():
            raise Stopped
        total, address = content.size_bytes, urlsplit(url)
        span, length, blocks = f"bytes */{total}", 0, iter(list[bytes]())
        if offset is not None:
            span, length = f"bytes {offset}-{total - 1}/{total}", total - offset
            blocks = self._watched(content, offset, on_sent)
        headers = {"Content-Range": span, "Content-Length": str(length)}
        body = b"".join(blocks) if length <= SMALL_BYTES else blocks
        within_s = self.deadline.grace_s
        try:
            with self._pool.exchange("PUT", address, body, headers, min(TIMEOUT_S, within_s), within_s) as response:
                reply = response.read_whole()
        except (ConnectionFailed, OSError, http.client.HTTPException) as error:
            self.deadline.check()
            if isinstance(error, OddResponse):
                raise odd_response("The storage address", error) from error
            cause = error.__cause__ or error
            what = str(cause).strip() or type(cause).__name__
            failure = NetworkFailed(f"Sending bytes to {address.hostname}:{address.port} failed: {what}.", hint=AWAY)
            failure.is_dead = isinstance(cause, ConnectionRefusedError)
            raise failure from error
        if response.status not in {200, 308}:
            answer: Any = None
            with suppress(ValueError):
                answer = parse_answer(reply)
            is_ours = isinstance(answer, dict) and "error" in answer
            raise refusal("The storage address", response.status, answer if is_ours else None, response.headers)
        # `Range: bytes=0-N` shows the stored bytes. Without this header, no bytes are stored.
        last = (response.getheader("Range") or "").removeprefix("bytes=0-")
        return total if response.status == 200 else int(last) + 1 if _COUNT.fullmatch(last) else 0

    def _watched(self, content: Content, offset: int, on_sent: OnSent | None) -> Iterator[bytes]:
        for block in content.blocks(offset):
            # The bytes that were sent stay stored, and a later run continues after them.
            self.deadline.check()
            if self._stopped.is_set():
                raise Stopped
            yield block
            if on_sent is not None:
                on_sent(len(block))


#: Larger files are sent in an upload session.
ONE_REQUEST_BYTES = 8 * 1024 * 1024


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
        asked = _UPLOAD_URL.fullmatch(str(upload_url))
        if asked is None:
            raise BadAnswer("The service answered with an upload URL that does not come from svc.")
        return self._storage.send(f"{self._transport.base_url}{asked[1]}", content, resume=resume, on_sent=on_sent)

    def finalize_upload(self, bucket: str, session_id: str) -> "Reply[SourceAnswerDict]":
        """Create the source from an uploaded file; a second call returns the same source, even if it was deleted.

        Raises ApiError `blob_not_uploaded` if bytes are missing.
        """
        return self._transport.send(Request(method="POST", path=f"{_path(bucket, session_id)}/finalize", json={}))

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
        on_conflict: OnConflict = "ask",
        idempotency_key: str | None = None,
    ) -> "SourceAnswerDict":
        """Send a file, and return the new source, which is queued but not yet searchable.

        The title is that of `svc upload` unless given. If the bucket has the file already, nothing is sent, and its
        source is returned, with these tags and metadata added. If it has other bytes under this title, TitleConflict
        is raised, unless `on_conflict` is `replace` or `as_new`.
        With `replaces`, the id of a source to replace as soon as the new one is ready, or with an `idempotency_key`,
        the file is always sent.
        Raises OSError if the file can't be read.
        """
        with Path(path).open("rb") as file:
            content = OpenFileContent(file)
            description = Description(
                filename=Path(path).name,
                title=title or title_of(Path(path)),
                tags=tuple(tags),
                metadata=dict(metadata or {}),
                sha256=content.sha256(),
                replaces=replaces,
            )
            if replaces is None and idempotency_key is None:
                found, description = self._compare(bucket, description, on_conflict)
                if found is not None:
                    return found
            if content.size_bytes > ONE_REQUEST_BYTES:
                return self.upload_content(bucket, description, content, idempotency_key)
            whole = NewFile(**vars(description), data=b"".join(content.blocks(0)))
            return self.upload(bucket, whole, idempotency_key)

    def _compare(
        self, bucket: str, file: Description, on_conflict: OnConflict
    ) -> "tuple[SourceAnswerDict | None, Description]":
        """Return the source that a file has already; otherwise None, and what to send. Raises TitleConflict."""
        path, digest = f"/v1/buckets/{part(bucket)}/sources", str(file.sha256)
        known = self._get(path, {"status": "all", "title": file.title})["sources"]
        action, source = decide(known, digest, on_conflict)
        if action in ("created", "conflict") and on_conflict != "as_new":
            same = self._get(path, {"status": "all", "sha256": digest})["sources"]
            action, source = find_twin(file.title, digest, same) or (action, source)
        if source is None:
            return None, file
        if action == "conflict":
            raise title_conflict(source, 'on_conflict="replace" replaces it, on_conflict="as_new" keeps both.')
        if action == "replaced":
            tags = tuple(dict.fromkeys((*source["tags"], *file.tags)))
            metadata = {**source["metadata"], **file.metadata}
            return None, replace(file, tags=tags, metadata=metadata, replaces=source["id"])
        changes, own = lacks(source, file.tags, file.metadata), f"/v1/sources/{part(source['id'])}"
        answer = self._call("PATCH", own, json=changes) if changes else self._get(own)
        return (self._call("POST", f"{own}/retry", json={}) if action == "retried" else answer), file

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
