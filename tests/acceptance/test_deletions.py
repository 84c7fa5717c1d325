"""A deleted bucket's sources are unreachable at once, and their data is deleted even if the daemon is killed."""

from typing import Any

import httpx
import pytest

from tests.acceptance.calls import list_sources, make_bucket, upload, wait_task
from tests.acceptance.installations import Installation, wait_until
from tests.corpus import Prose

#: How many sources the bucket has, and how many of them are in another bucket too.
MEMBERS, SHARED = 120, 12
LARGE_MEMBERS, LARGE_SHARED = 1000, 100


#: The timeout for indexing a few hundred documents on a busy machine.
FILLED_S = 240


def fill(client: httpx.Client, members: int, shared: int) -> list[str]:
    """Fill the bucket `doomed`, attach its first `shared` sources to `kept` too, and return all source ids."""
    for bucket in ("doomed", "kept"):
        make_bucket(client, bucket)
    texts = (f"# Note {number}\n\nThe umber quay. {Prose(str(number)).paragraphs(1)[0]}" for number in range(members))
    ids = [upload(client, "doomed", f"{n}.md", text.encode()).json()["id"] for n, text in enumerate(texts)]
    for source_id in ids[:shared]:
        client.post("/v1/buckets/kept/sources", json={"source_id": source_id}).raise_for_status()

    def is_ready() -> bool:
        stores = [client.get(f"/v1/buckets/{bucket}").json()["bucketStore"] for bucket in ("doomed", "kept")]
        return all(store["pending_member_count"] == 0 for store in stores)

    wait_until(is_ready, "all sources are ready", FILLED_S)
    return ids


def delete(client: httpx.Client) -> dict[str, Any]:
    answer = client.delete("/v1/buckets/doomed", params={"force": "true"})
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["deletion"])


def found(client: httpx.Client) -> set[str]:
    """Return the ids of the sources that a search of all buckets finds."""
    answer = client.post("/v1/search", json={"query": "umber quay", "max_num_results": 50})
    return {result["source_id"] for result in answer.json()["data"]}


@pytest.mark.rule("deletion.gone", "buckets.shared")
def test_deleted_bucket_is_unreachable_at_once_and_its_deletion_survives_kills(
    installation: Installation, large: bool
) -> None:
    members, shared = (LARGE_MEMBERS, LARGE_SHARED) if large else (MEMBERS, SHARED)
    with installation.client() as client:
        kept = set(fill(client, members, shared)[:shared])
        assert found(client) - kept
        deletion = delete(client)
        # From the response on, while the deletion is still running.
        assert set() < found(client) <= kept
    for _ in range(5):
        installation.crash()
        with installation.client() as client:
            assert set() < found(client) <= kept
    with installation.client() as client:
        task = wait_task(client, deletion["task_id"])
        assert (task["status"], task["deletion"]["detached"]) == ("succeeded", shared)
        assert client.get("/v1/buckets/doomed").status_code == 404
        assert {source["id"] for source in list_sources(client, "kept")} == kept
        wait_until(lambda: len(installation.blob_sizes()) == shared, "the bytes are deleted")
    installation.assert_intact()
