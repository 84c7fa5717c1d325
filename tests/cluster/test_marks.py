"""A node refuses an object store or a Milvus that isn't the one of its installation, and changes nothing there."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest
from pymilvus import MilvusClient

from svc_daemon.cluster.s3.clients import ObjectClient, open_client
from tests.acceptance.installations import Finished, Installation, wait_until
from tests.cluster.milvus import RunningMilvus, running_milvus
from tests.cluster.nodes import MakeNode
from tests.cluster.object_store import BUCKET, SECRET_KEY
from tests.cluster.postgres import PASSWORD, execute
from tests.cluster.test_daemons import found, with_a_source

EXIT_USAGE = 2


@pytest.fixture(scope="module")
def other_milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMilvus]:
    with running_milvus(tmp_path_factory.mktemp("other-milvus")) as running:
        yield running


def objects(node: Installation) -> ObjectClient:
    return open_client(node.environ["SVC_BLOBS_URL"], node.environ)


def keys(node: Installation) -> list[str]:
    return [each.key for each in objects(node).list_all("")]


def collections(url: str) -> list[str]:
    with closing(MilvusClient(url)) as client:
        return list(client.list_collections())


def drop_collections(url: str, start: str) -> None:
    with closing(MilvusClient(url)) as client:
        for name in client.list_collections():
            if name.startswith(start):
                client.drop_collection(name)


def assert_refused(ended: Finished, *words: str) -> None:
    """Assert that the daemon ended as after a wrong setting, with one sentence that names no secret and no address."""
    line = ended.stderr.strip().splitlines()[-1]
    assert (ended.exit, line[:7], "Traceback" in ended.stderr) == (EXIT_USAGE, "error: ", False), ended.stderr
    assert [word for word in words if word not in line] == [], line
    assert [word for word in (PASSWORD, SECRET_KEY, "127.0.0.1", "://") if word in line] == [], line


@pytest.mark.parametrize("is_used", [False, True], ids=["new", "with sources"])
def test_node_with_another_prefix_or_another_milvus_is_refused_and_leaves_nothing_there(
    node: Installation, make_node: MakeNode, other_milvus: RunningMilvus, is_used: bool
) -> None:
    source_id = with_a_source(node) if is_used else None
    prefix = make_node("prefix", SVC_BLOBS_URL=f"{node.environ['SVC_BLOBS_URL']}-other")
    assert_refused(prefix.operate("serve"), "The S3 store that SVC_BLOBS_URL names", "correct SVC_BLOBS_URL")
    milvus = make_node("milvus", SVC_INDEX_URL=other_milvus.url)
    assert_refused(milvus.operate("serve"), "The Milvus that SVC_INDEX_URL names", "correct SVC_INDEX_URL")
    assert "correct SVC_BLOBS_URL" in prefix.files.log.read_text()
    assert (keys(prefix), collections(other_milvus.url)) == ([], [])
    assert make_node("third").start().stop() == 0, "a node with the right addresses joins"
    if source_id:
        assert found(node, "umber quay") == [source_id]
    assert node.stop() == 0


def test_node_with_the_store_of_another_installation_is_refused(node: Installation, make_node: MakeNode) -> None:
    other = make_node("other", SVC_BLOBS_URL=f"s3://{BUCKET}/second")
    asyncio.run(objects(other).put("marks/ins_of_others", b"x"))
    assert_refused(other.operate("serve"), "SVC_BLOBS_URL", "another installation")
    assert keys(other) == ["marks/ins_of_others"]


def test_new_installation_refuses_a_prefix_with_the_bytes_of_a_lost_database(make_node: MakeNode) -> None:
    node = make_node()
    asyncio.run(objects(node).put(f"blobs/00/src_{'0' * 26}/src_{'0' * 26}", b"x"))
    assert_refused(node.operate("serve"), "SVC_BLOBS_URL", "data that the database does not know")


def test_mark_that_was_not_recorded_before_a_crash_is_recorded_by_the_next_start(node: Installation) -> None:
    source_id = with_a_source(node)
    marks = [key for key in keys(node) if key.startswith("marks/")]
    node.kill()
    execute(node, "DELETE FROM facts WHERE name LIKE 'mark_%'")
    node.start()
    assert [key for key in keys(node) if key.startswith("marks/")] == marks
    assert found(node, "umber quay") == [source_id]


def test_installation_from_before_the_marks_leaves_them_only_where_its_data_is(
    node: Installation, make_node: MakeNode, other_milvus: RunningMilvus
) -> None:
    source_id = with_a_source(node)
    node.kill()
    execute(node, "DELETE FROM facts WHERE name LIKE 'mark_%'")
    mark = next(key for key in keys(node) if key.startswith("marks/"))
    asyncio.run(objects(node).delete([mark]))
    drop_collections(node.environ["SVC_INDEX_URL"], "svc_mark_")
    prefix = make_node("prefix", SVC_BLOBS_URL=f"{node.environ['SVC_BLOBS_URL']}-other")
    assert_refused(prefix.operate("serve"), "SVC_BLOBS_URL")
    assert_refused(make_node("milvus", SVC_INDEX_URL=other_milvus.url).operate("serve"), "SVC_INDEX_URL")
    assert collections(other_milvus.url) == []
    node.start()
    assert found(node, "umber quay") == [source_id]
    assert make_node("second").start().stop() == 0


def test_emptied_milvus_is_refused_until_verify_marks_it_and_rebuilds_the_index(node: Installation) -> None:
    source_id = with_a_source(node)
    node.kill()
    drop_collections(node.environ["SVC_INDEX_URL"], "svc_")
    assert_refused(node.operate("serve"), "SVC_INDEX_URL", "svc-daemon verify --repair")
    problems = node.verify("--json").json["problems"]
    assert ("mark", "mark_engine", "milvus") in {
        (each["invariant"], each["repair"], each.get("engine")) for each in problems
    }
    repaired = node.verify("--repair")
    assert repaired.exit == 0, repaired.stdout + repaired.stderr
    node.start()
    wait_until(lambda: found(node, "umber quay") == [source_id], "the index is rebuilt", 120)
    assert node.verify().exit == 0


def test_milvus_that_loses_its_data_under_a_running_node_is_not_searched_as_if_it_were_empty(
    node: Installation,
) -> None:
    with_a_source(node)
    drop_collections(node.environ["SVC_INDEX_URL"], "svc_")
    with node.client() as client:
        answer = client.post("/v1/search", json={"query": "umber quay", "buckets": ["inbox"]})
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "search_failed"), answer.text
        assert "lacks the mark" in answer.json()["error"]["message"]
    assert collections(node.environ["SVC_INDEX_URL"]) == []


def test_bucket_that_is_gone_is_an_outage_and_not_a_missing_source(node: Installation) -> None:
    source_id = with_a_source(node)
    asyncio.run(objects(node).delete(keys(node)))
    with node.client() as client:
        for answer in (
            client.get(f"/v1/sources/{source_id}/content"),
            client.post("/v1/buckets/inbox/files", files={"file": ("b.md", b"The ochre bridge.")}),
        ):
            error = answer.json()["error"]
            assert (answer.status_code, error["code"], error["retryable"]) == (503, "storage_full", True), answer.text
            assert error["details"]["engine"] == "s3"


def test_bucket_that_does_not_exist_refuses_uploads_as_an_outage(make_node: MakeNode) -> None:
    node = make_node(SVC_BLOBS_URL="s3://nobucket/svc").start()
    with node.client() as client:
        client.put("/v1/buckets/inbox").raise_for_status()
        answer = client.post("/v1/buckets/inbox/files", files={"file": ("b.md", b"The ochre bridge.")})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["retryable"]) == (503, "storage_full", True), answer.text
        assert "its bucket does not exist" in error["message"]
