"""Documents survive an outage of Milvus that lasts longer than the attempts of a task."""

import pytest

from tests.acceptance.calls import make_bucket, search, upload
from tests.acceptance.installations import wait_until
from tests.cluster.nodes import MakeNode, RunningEngines

BUCKET = "inbox"


@pytest.mark.rule("indexing.waits")
def test_documents_wait_without_counting_attempts_while_the_index_is_unavailable(
    engines: RunningEngines, make_node: MakeNode
) -> None:
    node = make_node(SVC_LIMIT_TASK_ATTEMPTS="1").start()
    with node.client() as client:
        make_bucket(client, BUCKET)
        engines.milvus.engine.kill()
        try:
            made = [upload(client, BUCKET, f"{word}.md", f"The {word} quay.".encode()) for word in ("umber", "ochre")]
            wait_until(lambda: client.get("/healthz").json()["shortage"], "the node reports the shortage", 120)
            assert client.get("/healthz").json()["shortage"]["lack"] == "store"
            waiting = client.get(f"/v1/sources/{made[0].json()['id']}").json()
            assert waiting["status"] in {"queued", "indexing"}
            asked = client.post("/v1/search", json={"query": "umber", "buckets": [BUCKET]})
            assert asked.json()["error"]["code"] == "search_failed"
        finally:
            engines.milvus.start_again()
        for answer, word in zip(made, ("umber", "ochre"), strict=True):
            source_id = answer.json()["id"]
            wait_until(lambda: client.get(f"/v1/sources/{source_id}").json()["ready"], "the source is ready", 120)  # noqa: B023
            assert [hit["source_id"] for hit in search(client, word, BUCKET)] == [source_id]
        wait_until(lambda: client.get("/healthz").json()["shortage"] is None, "the shortage has ended", 120)
    assert node.stop() == 0
