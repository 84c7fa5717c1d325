"""The API calls that most acceptance tests make."""

import json
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.acceptance.installations import PATIENCE_S, Installation, wait_until


def make_bucket(client: httpx.Client, slug: str) -> str:
    """Create the bucket if it doesn't exist, and return its id."""
    return str(client.put(f"/v1/buckets/{slug}").raise_for_status().json()["id"])


def upload(
    client: httpx.Client, bucket: str, filename: str, data: bytes, key: str | None = None, **fields: str
) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post(f"/v1/buckets/{bucket}/files", files={"file": (filename, data)}, data=fields, headers=headers)


def port_of(installation: Installation) -> int:
    return urlsplit(installation.base_url).port or 0


def get_source(client: httpx.Client, source_id: str) -> dict[str, Any]:
    return dict(client.get(f"/v1/sources/{source_id}").raise_for_status().json())


def wait_ended(client: httpx.Client, source_id: str, timeout_s: float = PATIENCE_S) -> dict[str, Any]:
    """Wait until the source is ready or failed, and return it; raises WaitTimeout."""

    def ended() -> dict[str, Any] | None:
        source = get_source(client, source_id)
        return source if source["ready"] or source["status"] == "failed" else None

    return wait_until(ended, f"the end of indexing of {source_id}", timeout_s)


def take_in(client: httpx.Client, bucket: str, filename: str, data: bytes, **fields: str) -> str:
    """Upload a file into the bucket, which is created if need be, wait until it is ready, and return its id."""
    make_bucket(client, bucket)
    source_id = str(upload(client, bucket, filename, data, **fields).raise_for_status().json()["id"])
    assert wait_ended(client, source_id)["ready"], filename
    return source_id


def start_post(installation: Installation, path: str, body: dict[str, Any]) -> socket.socket:
    """Send a JSON POST request and return its connection without reading the response."""
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {installation.key}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    connection = socket.create_connection(("127.0.0.1", port_of(installation)), timeout=PATIENCE_S)
    connection.sendall(head.encode() + data)
    return connection


def list_sources(client: httpx.Client, bucket: str) -> list[dict[str, Any]]:
    """Return every source of a bucket, in any status."""
    listed = client.get(f"/v1/buckets/{bucket}/sources", params={"status": "all"}).raise_for_status()
    return list(listed.json()["sources"])


def search(client: httpx.Client, query: str, bucket: str) -> list[dict[str, Any]]:
    """Search one bucket and return the results, best first."""
    answer = client.post("/v1/search", json={"query": query, "buckets": [bucket]}).raise_for_status()
    return list(answer.json()["data"])


def wait_task(client: httpx.Client, task_id: str, timeout_s: float = 120) -> dict[str, Any]:
    """Wait until the task has ended, and return it; raises WaitTimeout."""

    def ended() -> dict[str, Any] | None:
        task = client.get(f"/v1/knowledge/tasks/{task_id}").raise_for_status().json()
        return dict(task) if task["finished_at"] else None

    return wait_until(ended, f"the end of {task_id}", timeout_s)
