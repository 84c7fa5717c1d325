"""`svc-daemon verify` reports and repairs damage in each engine of a cluster while its nodes serve."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from svc_daemon.cluster.engines import OpenCluster, open_cluster
from svc_daemon.cluster.milvus.provider import MilvusProvider
from svc_daemon.cluster.milvus.schema import equals
from svc_daemon.cluster.milvus.server import MilvusServer
from svc_daemon.cluster.s3.stores import ObjectStores
from svc_daemon.settings.servers import ClusterSettings
from tests.acceptance.installations import Finished, Installation, wait_until
from tests.cluster.nodes import MakeNode
from tests.cluster.postgres import execute
from tests.cluster.test_daemons import found
from tests.cluster.test_milvus import STAMPS

STRAY, PART = f"src_{'0' * 26}", f"upl_{'0' * 26}"
ROWS_OF_A_SOURCE = ("memberships WHERE source_id", "tasks WHERE source_id", "sources WHERE id")
ADD_MEMBERSHIP = (
    "INSERT INTO memberships SELECT source_id, 'bkt_x', team_id, sync_status, attempt, lease_until_s, due_at,"
    " created_at FROM memberships WHERE source_id ="
)


def upload(node: Installation, *words: str) -> list[str]:
    """Upload a source for each of the words, wait until all are ready, and return their ids."""
    made = []
    with node.client() as client:
        client.put("/v1/buckets/inbox").raise_for_status()
        for word in words:
            text = f"# {word}\n\nThe {word} quay was built of grey stone.\n"
            answer = client.post("/v1/buckets/inbox/files", files={"file": (f"{word}.md", text.encode())})
            assert answer.status_code == 201, answer.text
            made.append(str(answer.json()["id"]))
        wait_until(
            lambda: all(client.get(f"/v1/sources/{each}").json()["ready"] for each in made), "the sources are ready"
        )
    return made


@contextmanager
def opened(node: Installation, folder: Path) -> Iterator[tuple[OpenCluster, ObjectStores]]:
    cluster = ClusterSettings.from_environ(node.environ)
    assert cluster is not None
    with open_cluster(cluster, node.environ, folder) as engines:
        assert isinstance(engines.stores, ObjectStores)
        yield engines, engines.stores


def reported(verified: Finished) -> set[tuple[str, str]]:
    """Return the invariant of each reported problem with the source or table that it concerns."""
    assert (verified.exit, verified.json["whole"]) == (1, False), verified.stdout + verified.stderr
    problems: list[dict[str, Any]] = verified.json["problems"]
    return {(each["invariant"], each.get("source_id") or each.get("table") or "") for each in problems}


def damage_bytes(engines: OpenCluster, stores: ObjectStores, lost: str, cut: str, flipped: str) -> None:
    """Damage the blobs of three sources, and add a blob and a part without rows."""
    blobs = engines.bytes.list_blobs()

    async def damage() -> None:
        await stores.blobs.client.delete([blobs[lost].place])
        await stores.blobs.put(cut, b"short")
        await stores.blobs.put(flipped, b"x" * blobs[flipped].size_bytes)
        await stores.blobs.put(STRAY, b"nobody's")
        await stores.blobs.client.put(f"parts/0/{PART}/0", b"nobody's")

    asyncio.run(damage())


def remove_document(node: Installation, team_id: str, source_id: str) -> None:
    server = MilvusServer(node.environ["SVC_INDEX_URL"])
    with closing(MilvusProvider(server, now_ns=STAMPS.now_ns, random_bits=STAMPS.random_bits)) as provider:
        provider.delete_document(team_id, source_id)


def test_verify_reports_and_repairs_damage_of_each_engine_while_a_node_serves(
    node: Installation, tmp_path: Path
) -> None:
    lost, cut, flipped, unindexed, forgotten, whole = upload(node, "azure", "beige", "coral", "denim", "fawn", "gold")
    counts = {"sources": 6, "blobs": 6, "parts": 0, "documents": 6}
    for options in ([], ["--read-data"]):
        verified = node.verify("--json", *options)
        assert verified.exit == 0, verified.stdout + verified.stderr
        assert verified.json == {"whole": True, "problems": [], "set_aside": [], "counts": counts}
    with opened(node, tmp_path) as (engines, stores):
        damage_bytes(engines, stores, lost, cut, flipped)
        team_id = engines.state.read(lambda c: str(c.execute("SELECT team_id FROM sources").fetchone()["team_id"]))
        remove_document(node, team_id, unindexed)
        forget = (f"DELETE FROM {table} = '{forgotten}'" for table in ROWS_OF_A_SOURCE)
        # Like a leftover membership of a deleted bucket.
        execute(node, *forget, f"{ADD_MEMBERSHIP} '{whole}'")
        expected = {("I3", lost), ("I2", cut), ("I6", unindexed), ("I4", forgotten), ("I10", "memberships")}
        verified = node.verify("--json")
        assert reported(verified) >= expected
        assert [place.split("/")[2] for place in verified.json["set_aside"]] == [PART, STRAY]
        assert reported(node.verify("--json", "--read-data")) >= expected | {("I2", flipped)}

        # A broken reference isn't repaired automatically, so the test removes the row.
        execute(node, "DELETE FROM memberships WHERE bucket_id = 'bkt_x'")
        repaired = node.verify("--json", "--read-data", "--repair")
        assert (repaired.exit, len(repaired.json["repaired"]) >= 5) == (0, True), repaired.stdout + repaired.stderr
        with node.client() as client:
            failed = [client.get(f"/v1/sources/{each}").json() for each in (lost, cut, flipped)]
        assert [(each["status"], each["error"]["code"]) for each in failed] == [("failed", "stored_bytes_lost")] * 3
        kept = {"denim": unindexed, "fawn": forgotten, "gold": whole}
        wait_until(lambda: all(found(node, word) == [each] for word, each in kept.items()), "the others are found")
        damaged = {each.key for each in stores.blobs.client.list_all("damaged")}
        assert damaged == {f"damaged/{each}" for each in (cut, flipped)}
    assert node.verify("--read-data").exit == 0


def test_verify_rebuilds_an_index_with_lost_rows_while_a_node_serves(node: Installation) -> None:
    halved, whole = upload(node, "ebony", "ivory")
    server = MilvusServer(node.environ["SVC_INDEX_URL"])
    server.delete(server.collections.chunks, equals("source_id", halved))
    server.close()
    (problem,) = node.verify("--json").json["problems"]
    assert (problem["invariant"], problem["repair"]) == ("I7", "rebuild_index")
    assert node.verify("--repair").exit == 0
    wait_until(lambda: (found(node, "ebony"), found(node, "ivory")) == ([halved], [whole]), "both are found again")
    assert node.verify("--read-data").exit == 0


def test_verify_reports_no_damage_while_nodes_change_data(node: Installation) -> None:
    is_over = threading.Event()

    def change() -> None:
        number = 0
        while not is_over.is_set():
            kept, gone = upload(node, f"kept{number}", f"gone{number}")
            with node.client() as client:
                client.patch(f"/v1/sources/{kept}", json={"title": f"title {number}"}).raise_for_status()
                client.delete(f"/v1/sources/{gone}").raise_for_status()
            number += 1

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(3):
            verified = node.verify("--json", "--read-data")
            assert verified.exit == 0, verified.stdout + verified.stderr
    finally:
        is_over.set()
        changing.join()


def test_verify_fails_for_a_bucket_without_the_bytes_and_an_unreachable_database(
    make_node: MakeNode, node: Installation
) -> None:
    upload(node, "umber")
    empty = make_node("empty", SVC_BLOBS_URL=f"{node.environ['SVC_BLOBS_URL']}-other")
    refused = empty.verify("--json", "--repair")
    assert refused.failure == (2, "svc_data_dir_unreadable")
    assert "Correct SVC_BLOBS_URL" in refused.json["error"]["message"]
    assert node.verify("--json").exit == 0
    away = make_node("away", SVC_STATE_URL="postgresql://svc:hidden@127.0.0.1:1/svc")
    refused = away.verify("--json")
    assert (refused.failure, "hidden" in refused.stdout) == ((2, "svc_data_dir_unreadable"), False)


def test_verify_of_a_database_without_an_installation_fails_as_not_found(make_node: MakeNode) -> None:
    assert make_node().verify("--json").failure == (5, "svc_data_dir_not_found")
