"""Fill and delete a bucket over HTTP, for the test and the benchmark of deletions."""

from typing import Any

import httpx

from tests.acceptance.calls import make_bucket, upload
from tests.acceptance.installations import wait_until
from tests.corpus import Prose

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
