"""Upload sessions and batches as a client makes them, for tests of any layer above the store."""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import httpx

from svc_daemon.core.uploads.packs import place_items
from tests.api.answers import body_of
from tests.api.daemons import NOTES, Daemon


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def session_body(data: bytes = NOTES, **fields: Any) -> dict[str, Any]:
    """The body of a create for these bytes; a field of None is left out."""
    body = {"filename": "notes.md", "size_bytes": len(data)} | fields
    return {name: value for name, value in body.items() if value is not None}


def ask_session(
    daemon: Daemon, data: bytes = NOTES, *, bucket: str = "inbox", repeat_key: str | None = None, **fields: Any
) -> httpx.Response:
    """Create a session; whatever the answer is."""
    key = fields.pop("key", None)
    body = session_body(data, **fields)
    return daemon.ask("POST", f"/v1/buckets/{bucket}/uploads", key=key, repeat_key=repeat_key, json=body)


def open_session(daemon: Daemon, data: bytes = NOTES, **fields: Any) -> dict[str, Any]:
    """The answer to a create that works."""
    return body_of(ask_session(daemon, data, **fields), 201)


def path_of(session: dict[str, Any]) -> str:
    """The upload URL as the test's client takes it."""
    return urlsplit(str(session["upload_url"])).path


def put(
    daemon: Daemon, session: dict[str, Any], data: bytes = b"", content_range: str | None = None, **headers: str
) -> httpx.Response:
    """Send bytes without any key; whatever the answer is."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if content_range is not None:
        sent["Content-Range"] = content_range
    return daemon.ask("PUT", path_of(session), key="", content=data, headers=sent)


def put_part(daemon: Daemon, session: dict[str, Any], data: bytes, first: int, last: int) -> httpx.Response:
    """Send bytes `first` to `last`, both inclusive, of `data`."""
    return put(daemon, session, data[first : last + 1], f"bytes {first}-{last}/{len(data)}")


def part_kept(answer: httpx.Response) -> str | None:
    """The stored range of an answer that wants more; its body is empty."""
    assert (answer.status_code, answer.content) == (308, b""), answer.text
    assert answer.headers["X-Request-Id"]
    stored: str | None = answer.headers.get("Range")
    return stored


def session_path(session: dict[str, Any], bucket: str = "inbox") -> str:
    return f"/v1/buckets/{bucket}/uploads/{session['session_id']}"


def state_of(daemon: Daemon, session: dict[str, Any]) -> tuple[str, int]:
    """The session's status and received bytes."""
    shown = daemon.show(session_path(session))
    return shown["status"], shown["received_bytes"]


def finalize(daemon: Daemon, session: dict[str, Any], **options: Any) -> httpx.Response:
    return daemon.ask("POST", f"{session_path(session)}/finalize", **options)


def wait_swept(daemon: Daemon, condition: Callable[[], bool], what: str) -> None:
    """Return when the condition holds; the clocks run ahead, so that nobody waits for the sweeper's round."""

    def is_swept() -> bool:
        daemon.advance(20)
        return condition()

    daemon.start("sweeping")
    daemon.wait(is_swept, what)


def stored_bytes(daemon: Daemon, source_id: str) -> bytes:
    answer = daemon.ask("GET", f"/v1/sources/{source_id}/content")
    assert answer.status_code == 200, answer.text
    return answer.content


def batch_body(files: Sequence[tuple[str, bytes]], **manifest: Any) -> dict[str, Any]:
    """The body of a create for files of these client ids and bytes."""
    items = [{"client_file_id": name, "filename": f"{name}.md", "title": name} for name, _ in files]
    listed = [
        {"client_file_id": name, "filename": f"{name}.md", "content_type": "text/markdown", "size_bytes": len(data)}
        for name, data in files
    ]
    return {"manifest": {"version": 1, "items": items} | manifest, "files": listed}


def ask_batch(
    daemon: Daemon, body: dict[str, Any], *, bucket: str = "inbox", repeat_key: str | None = None, **options: Any
) -> httpx.Response:
    return daemon.ask("POST", f"/v1/buckets/{bucket}/batches", json=body, repeat_key=repeat_key, **options)


def open_batch(daemon: Daemon, files: Sequence[tuple[str, bytes]], **options: Any) -> dict[str, Any]:
    """The answer to a create that works, its sessions by client id under `by_id`."""
    batch = body_of(ask_batch(daemon, batch_body(files), **options), 201)
    return batch | {"by_id": {item["client_file_id"]: item for item in batch["items"]}}


def pack_body(files: Sequence[tuple[str, bytes]], **manifest: Any) -> dict[str, Any]:
    """The body of a create of a batch with a pack."""
    body = batch_body(files, **manifest)
    for item, (_, data) in zip(body["manifest"]["items"], files, strict=True):
        item["sha256"] = sha256_of(data)
    return body | {"pack": True}


def open_pack(daemon: Daemon, files: Sequence[tuple[str, bytes]], **options: Any) -> dict[str, Any]:
    """The answer to a create with a pack, its sessions under `by_id`; `upload_url` is that of the pack."""
    batch = body_of(ask_batch(daemon, pack_body(files), **options), 201)
    by_id = {item["client_file_id"]: item for item in batch["items"]}
    return batch | {"by_id": by_id, "upload_url": batch["pack"]["upload_url"]}


def ask_finalize(daemon: Daemon, batch: dict[str, Any], bucket: str = "inbox", **options: Any) -> httpx.Response:
    return daemon.ask("POST", f"/v1/buckets/{bucket}/batches/{batch['batch_id']}/finalize", **options)


def finalize_batch(daemon: Daemon, batch: dict[str, Any], **body: Any) -> dict[str, Any]:
    """The answer to a finalize that works."""
    return body_of(ask_finalize(daemon, batch, json=body))


def outcomes(batch: dict[str, Any]) -> dict[str, str]:
    """The list that each client id is in; it is in one alone."""
    named = ("finalized", "pending", "failed", "replayed")
    placed = [(item["client_file_id"], name) for name in named for item in batch[name]]
    assert len(dict(placed)) == len(placed), placed
    return dict(placed)


def batch_status(daemon: Daemon, batch: dict[str, Any], **query: str) -> dict[str, Any]:
    return body_of(daemon.ask("GET", f"/v1/knowledge/batches/{batch['batch_id']}", params=query))


def store_unseen(daemon: Daemon, session_id: str, data: bytes) -> None:
    """Store all bytes of a session as a request does, and count them nowhere."""

    async def work() -> None:
        items = place_items([(session_id, len(data), 0)])
        with closing(daemon.context.parts.writer(items, 0, len(data))) as writer:
            await writer.append(data)
            await writer.sync()

    daemon.loop.run(work())
