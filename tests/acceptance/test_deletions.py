"""Deleting a full bucket: answered at once, out of reach at once, and gone whatever is killed."""

import time
from typing import Any

import httpx

from tests.acceptance.calls import list_sources, make_bucket, upload
from tests.acceptance.installations import Installation, wait_until
from tests.corpus import Prose

#: Members, and of these the ones that another bucket has too.
MEMBERS, SHARED = 200, 20
LARGE_MEMBERS, LARGE_SHARED = 1000, 100
#: The longest that the answer may take, seconds.
ANSWER_S = 0.5


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
        wait_until(lambda: _pending(client, store) == 0, f"all of {bucket} is ready", 240)  # noqa: B023
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

    return wait_until(ended, "the end of the cascade", 60)


def test_a_full_bucket_is_answered_at_once_and_gone_soon(installation: Installation, large: bool) -> None:
    members, shared = (LARGE_MEMBERS, LARGE_SHARED) if large else (MEMBERS, SHARED)
    with installation.client() as client:
        ids = fill(client, members, shared)
        began_s = time.monotonic()
        deletion = delete(client)
        took_s = time.monotonic() - began_s
        assert found(client) <= set(ids[:shared])
        assert took_s < ANSWER_S
        task = wait_task(client, deletion["task_id"])
        assert task["deletion"] == deletion | {"deleted": members - shared, "detached": shared}
        assert client.get("/v1/buckets/doomed").status_code == 404
        assert sorted(source["id"] for source in list_sources(client, "kept")) == sorted(ids[:shared])
        wait_until(lambda: len(list(installation.files.blobs.iterdir())) == shared, "the bytes are gone", 60)
    installation.hold_to_every_promise()


def test_a_cascade_goes_on_after_kills(installation: Installation) -> None:
    with installation.client() as client:
        ids = fill(client, MEMBERS, SHARED)
        deletion = delete(client)
    for _ in range(5):
        installation.kill()
        installation.start()
    with installation.client() as client:
        task = wait_task(client, deletion["task_id"])
        assert (task["status"], task["deletion"]["detached"]) == ("succeeded", SHARED)
        assert found(client) <= set(ids[:SHARED])
        wait_until(lambda: len(list(installation.files.blobs.iterdir())) == SHARED, "the bytes are gone", 60)
    installation.hold_to_every_promise()


def _pending(client: httpx.Client, store: str) -> int:
    return int(client.get(store).json()["bucketStore"]["pending_member_count"])
