"""Nodes share the pending work, and do none of it twice."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from svc_daemon.cluster.migrations import migrate_shared
from svc_daemon.cluster.postgres.database import PostgresDatabase
from svc_daemon.databases.contract import Connection, Exclusive
from svc_daemon.store.rows.tasks import TaskQueue, claim_tasks, list_waiting
from svc_daemon.wire.tasks import INDEXING
from tests.acceptance.installations import Installation, wait_until
from tests.cluster.nodes import MakeNode, RunningEngines
from tests.embed.vector_servers import VectorServer, vector_server
from tests.store.rows import NOW, OURS, add_task, add_teams

#: More documents than one node embeds at a time.
DOCUMENTS = 2 * 64
TASKS = 300


@pytest.fixture
def vectors() -> Iterator[VectorServer]:
    with vector_server() as server:
        yield server


def texts_by_node(server: VectorServer) -> dict[str, Counter[str]]:
    """Count by node how often it has requested the vector of each document's text."""
    asked: dict[str, Counter[str]] = {}
    for each in list(server.asked):
        texts = [text for text in each.texts if "quay" in text]
        asked.setdefault(each.headers["authorization"], Counter()).update(texts)
    return {node: texts for node, texts in asked.items() if texts}


def count(server: VectorServer) -> Counter[str]:
    return sum(texts_by_node(server).values(), Counter[str]())


def fill(node: Installation) -> None:
    with node.client() as client:
        client.put("/v1/buckets/inbox").raise_for_status()
        for number in range(DOCUMENTS):
            file = (f"{number}.md", f"The quay with the number {number}.\n".encode())
            client.post("/v1/buckets/inbox/files", files={"file": file}).raise_for_status()
        bucket = "/v1/buckets/inbox"
        wait_until(lambda: client.get(bucket).json()["memberCount"] == DOCUMENTS, "all are ready", 120, every_s=0.2)


@pytest.mark.rule("cluster.shared")
def test_two_nodes_share_the_embedding_and_embed_each_text_once(make_node: MakeNode, vectors: VectorServer) -> None:
    plain = make_node("plain").start()
    fill(plain)
    assert plain.stop() == 0

    def wait_for_both(texts: list[str]) -> None:
        if "quay" in texts[0]:
            wait_until(lambda: len(texts_by_node(vectors)) == 2, "both nodes embed")

    vectors.refuse = wait_for_both
    nodes = []
    for name in ("first", "second"):
        node = make_node(name, SVC_EMBED_BASE_URL=vectors.base_url, SVC_EMBED_MODEL="any")
        (node.root / "key").write_text(name)
        node.environ["SVC_EMBED_API_KEY_FILE"] = str(node.root / "key")
        nodes.append(node.start())
    wait_until(lambda: len(count(vectors)) == DOCUMENTS, "everything is embedded")
    assert (len(texts_by_node(vectors)), set(count(vectors).values())) == (2, {1})
    assert [node.stop() for node in nodes] == [0, 0]


@pytest.mark.rule("cluster.shared")
def test_nodes_claim_each_task_once_without_conflicts(engines: RunningEngines) -> None:
    url = engines.postgres.make_database()
    nodes = [PostgresDatabase(url, prepare=migrate_shared) for _ in range(3)]

    def fill(connection: Connection) -> set[str]:
        add_teams(connection)
        return {add_task(connection, f"{number:03}", lane="wave").id for number in range(TASKS)}

    waiting = nodes[0].write(fill)
    queue = TaskQueue(type=INDEXING, lane="wave", team_id=OURS)

    def work(node: PostgresDatabase) -> list[str]:
        claimed: list[str] = []
        while found := node.read(partial(list_waiting, queue=queue, now=NOW, limit=7)):
            task_ids = [task_id for task_id, _ in found]
            tasks = node.write(Exclusive(partial(claim_tasks, task_ids=task_ids, now=NOW, lease_until_s=1.0)))
            claimed += [task.id for task in tasks]
        return claimed

    with ThreadPoolExecutor(3) as pool:
        claimed = [task_id for each in pool.map(work, nodes) for task_id in each]
    for node in nodes:
        node.close()
    assert (len(claimed), set(claimed), [node.conflicts for node in nodes]) == (TASKS, waiting, [0, 0, 0])
