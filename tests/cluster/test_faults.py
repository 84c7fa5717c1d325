"""Acknowledged sources survive faults of engines and disks, and no incomplete data counts as complete."""

import random
import subprocess
import time
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from ulid import ULID

from svc_daemon.core.ids import SOURCE
from svc_daemon.core.times import Clock
from svc_daemon.process.contexts import Context
from tests.acceptance.calls import make_bucket, search, upload, wait_ended
from tests.acceptance.installations import wait_until
from tests.acceptance.proxies import CuttingProxy
from tests.acceptance.test_failing_disks import FULL, NAMESPACE, after
from tests.acceptance.workloads import document
from tests.cluster.cutting import FaultyStore
from tests.cluster.nodes import EngineInspector, MakeNode, RunningEngines

BUCKET = "inbox"
PATIENCE_S = 120.0
#: The length of documents that are too large for a node's memory buffer.
LONG = 3_000
CUTS, LARGE_CUTS = 15, 60


def _kept_or_refused(answer: httpx.Response) -> str | None:
    """Return the id of an acknowledged source, or None for a 503 with a Retry-After."""
    if answer.is_success:
        return str(answer.json()["id"])
    assert (answer.status_code, answer.json()["error"]["retryable"]) == (503, True), answer.text
    assert int(answer.headers["Retry-After"]) > 0
    return None


def _content(client: httpx.Client, source_id: str) -> bytes | None:
    """Return the source's content, or None if the response fails or ends early."""
    try:
        answer = client.get(f"/v1/sources/{source_id}/content")
    except httpx.TransportError:
        return None
    return answer.content if answer.is_success else None


@pytest.mark.rule("cluster.kills")
def test_faulty_object_store_loses_no_acknowledged_source_and_fails_none(
    engines: RunningEngines, make_node: MakeNode
) -> None:
    with FaultyStore(engines.store.port) as store:
        node = make_node(AWS_ENDPOINT_URL=f"http://127.0.0.1:{store.port}").start()
        kept: dict[str, bytes] = {}

        def send(client: httpx.Client, word: str, length: int) -> None:
            data = document(word, length)
            if source_id := _kept_or_refused(upload(client, BUCKET, f"{word}.md", data)):
                kept[source_id] = data

        with node.client() as client:
            client.timeout = httpx.Timeout(PATIENCE_S)
            make_bucket(client, BUCKET)
            for mode in ("refuses", "cuts", "slow"):
                for number in range(5):
                    send(client, f"{mode}before{number}", 200)
                # These are indexed during or after the store's faults.
                store.mode = mode
                send(client, f"{mode}small", 1)
                send(client, f"{mode}large", LONG)
                for source_id, data in [*kept.items()][-3:]:
                    assert _content(client, source_id) in (None, data), (mode, source_id)
                store.mode = "whole"
            for source_id, data in kept.items():
                source = wait_ended(client, source_id, PATIENCE_S)
                task = client.get(f"/v1/knowledge/tasks/{source['task']['id']}").json()
                # An outage of the store doesn't count as an attempt.
                assert (source["ready"], task["attempt"]) == (True, 1), (source, task)
                assert _content(client, source_id) == data
        assert node.stop() == 0
        assert EngineInspector({**node.environ, **engines.store.environ}).assert_consistent() == kept.keys()


@pytest.mark.rule("cluster.kills")
def test_index_has_each_document_once_despite_cut_connections(
    engines: RunningEngines, make_node: MakeNode, large: bool
) -> None:
    moments, cuts = random.Random(3), LARGE_CUTS if large else CUTS
    with CuttingProxy(engines.milvus.port, [moments.randrange(500, 60_000) for _ in range(cuts)]) as index:
        node = make_node(SVC_INDEX_URL=f"http://127.0.0.1:{index.port}", SVC_LIMIT_TASK_ATTEMPTS="5").start()
        with node.client() as client:
            make_bucket(client, BUCKET)
            made: dict[str, str] = {}
            number = 0
            while index.budgets:
                number += 1
                word = f"word{number}"
                made[word] = upload(client, BUCKET, f"{word}.md", document(word, 30)).json()["id"]
                if number % 5 == 0:
                    gone = made.pop(moments.choice([*made]))
                    assert client.delete(f"/v1/sources/{gone}").status_code == 200
                if number % 3 == 0:
                    client.patch(f"/v1/sources/{made[word]}", json={"title": f"title{number}"})
                    wait_ended(client, made[word], PATIENCE_S)
            for word, source_id in made.items():
                assert wait_ended(client, source_id, PATIENCE_S)["ready"], source_id
                assert [hit["source_id"] for hit in search(client, word, BUCKET)][:1] == [source_id]
        assert node.stop() == 0
        direct = {**node.environ, "SVC_INDEX_URL": engines.milvus.url}
        assert EngineInspector(direct).assert_consistent() == set(made.values())


@pytest.mark.rule("cluster.hangs")
def test_node_with_a_full_disk_refuses_large_uploads_and_other_nodes_do_the_work(
    make_node: MakeNode,
) -> None:
    if subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system gives no mount namespace")
    full, door, other = make_node("full"), make_node("door"), make_node("other")
    full.files.staging.mkdir(parents=True)
    full.start(after(FULL, full.files.staging))
    door.options = ("--role", "api")
    door.start()
    with full.client() as client, door.client(Authorization=f"Bearer {full.key}") as at_door:
        make_bucket(client, BUCKET)
        refused = upload(client, BUCKET, "large.md", document("large", LONG))
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "storage_full")
        words = {f"word{number}": LONG if number % 2 else 1 for number in range(6)}
        made = {
            word: _kept_or_refused(upload(at_door, BUCKET, f"{word}.md", document(word, length)))
            for word, length in words.items()
        }
        wait_until(lambda: client.get("/healthz").json()["shortage"], "the node reports the shortage", PATIENCE_S)
        other.start()
        for source_id in filter(None, made.values()):
            source = wait_ended(at_door, source_id, PATIENCE_S)
            assert source["ready"], source
            assert at_door.get(f"/v1/knowledge/tasks/{source['task']['id']}").json()["attempt"] == 1
        assert None not in made.values()
    assert [node.stop() for node in (full, door, other)] == [0, 0, 0]
    assert EngineInspector(door.environ).assert_consistent() == set(made.values())


@pytest.mark.rule("cluster.clock")
def test_node_whose_clock_is_an_hour_ahead_uses_the_database_servers_time(engines: RunningEngines) -> None:
    ahead = Clock(now=lambda: datetime.now(UTC) + timedelta(hours=1), monotonic=time.monotonic)

    async def look(context: Context) -> tuple[datetime, str]:
        return context.clock.now(), context.ids.make(SOURCE)

    now, source_id = EngineInspector(engines.environ(), ahead).run(look)
    made_at = ULID.from_str(source_id.removeprefix(f"{SOURCE}_").upper()).datetime
    assert [moment for moment in (now, made_at) if abs(moment - datetime.now(UTC)) > timedelta(minutes=30)] == []
