"""The few API calls that most acceptance tests make."""

from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.acceptance.installations import Installation, wait_until

#: Indexing of one document takes milliseconds; many at once on a busy machine take a while.
READY_TIMEOUT_S = 60.0


def make_bucket(client: httpx.Client, slug: str) -> str:
    """Create or find a bucket; its id."""
    answer = client.put(f"/v1/buckets/{slug}")
    answer.raise_for_status()
    return str(answer.json()["id"])


def upload(
    client: httpx.Client, bucket: str, filename: str, data: bytes, key: str | None = None, **fields: str
) -> httpx.Response:
    """One-call upload."""
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post(f"/v1/buckets/{bucket}/files", files={"file": (filename, data)}, data=fields, headers=headers)


def port_of(installation: Installation) -> int:
    return urlsplit(installation.base_url).port or 0


def get_source(client: httpx.Client, source_id: str) -> dict[str, Any]:
    answer = client.get(f"/v1/sources/{source_id}")
    answer.raise_for_status()
    return dict(answer.json())


def wait_ended(client: httpx.Client, source_id: str, timeout_s: float = READY_TIMEOUT_S) -> dict[str, Any]:
    """The source once it is ready or failed; raises TooLate."""

    def ended() -> dict[str, Any] | None:
        source = get_source(client, source_id)
        return source if source["ready"] or source["status"] == "failed" else None

    return wait_until(ended, f"the end of indexing of {source_id}", timeout_s)


def list_sources(client: httpx.Client, bucket: str) -> list[dict[str, Any]]:
    """Every source of a bucket, whatever its state."""
    answer = client.get(f"/v1/buckets/{bucket}/sources", params={"status": "all"})
    answer.raise_for_status()
    return list(answer.json()["sources"])


def search(client: httpx.Client, query: str, bucket: str) -> list[dict[str, Any]]:
    """Results of a search in one bucket, best first."""
    answer = client.post("/v1/search", json={"query": query, "buckets": [bucket]})
    answer.raise_for_status()
    return list(answer.json()["data"])


def wait_task(client: httpx.Client, task_id: str, timeout_s: float = 120) -> dict[str, Any]:
    """The task once it has ended; raises TooLate."""

    def ended() -> dict[str, Any] | None:
        task = client.get(f"/v1/knowledge/tasks/{task_id}").raise_for_status().json()
        return dict(task) if task["finished_at"] else None

    return wait_until(ended, f"the end of {task_id}", timeout_s)
