"""Deleting a full bucket over HTTP, for tests and for the benchmark."""

from typing import Any

import httpx

from tests.acceptance.calls import make_bucket, upload
from tests.acceptance.installations import wait_until
from tests.corpus import Prose

#: Indexing some hundred documents on a busy machine.
FILLED_S = 240
ENDED_S = 120


def fill(client: httpx.Client, members: int, shared: int) -> list[str]:
    """The bucket `doomed` with ready members, the first `shared` of them in `kept` too; their ids."""
    for bucket in ("doomed", "kept"):
        make_bucket(client, bucket)
    texts = (f"# Note {number}\n\nThe umber quay. {Prose(str(number)).paragraphs(1)[0]}" for number in range(members))
    ids = [upload(client, "doomed", f"{n}.md", text.encode()).json()["id"] for n, text in enumerate(texts)]
    for source_id in ids[:shared]:
        client.post("/v1/buckets/kept/sources", json={"source_id": source_id}).raise_for_status()
    for bucket in ("doomed", "kept"):
        store = f"/v1/buckets/{bucket}"
        wait_until(lambda: _pending(client, store) == 0, f"all of {bucket} is ready", FILLED_S)  # noqa: B023
    return ids


def delete(client: httpx.Client) -> dict[str, Any]:
    answer = client.delete("/v1/buckets/doomed", params={"force": "true"})
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["deletion"])


def found(client: httpx.Client) -> set[str]:
    """Sources that a search of everything finds."""
    answer = client.post("/v1/search", json={"query": "umber quay", "max_num_results": 50})
    return {result["source_id"] for result in answer.json()["data"]}


def wait_task(client: httpx.Client, task_id: str) -> dict[str, Any]:
    def ended() -> dict[str, Any] | None:
        task = client.get(f"/v1/knowledge/tasks/{task_id}").json()
        return task if task["finished_at"] else None

    return wait_until(ended, "the end of the cascade", ENDED_S)


def _pending(client: httpx.Client, store: str) -> int:
    return int(client.get(store).json()["bucketStore"]["pending_member_count"])
