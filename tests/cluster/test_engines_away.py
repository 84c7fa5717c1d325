"""An engine that is away is shown where operators look, and documents survive a long outage of Milvus."""

import re
import shutil
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.acceptance.calls import make_bucket, search, upload
from tests.acceptance.installations import Installation, wait_until
from tests.cluster.nodes import MakeNode, RunningEngines

BUCKET = "inbox"
TITLES = {"postgresql": "PostgreSQL", "s3": "The S3 store", "milvus": "Milvus"}


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


def engine_of(node: Installation, name: str) -> dict[str, Any]:
    health = wait_until(node.health, "an answer to /healthz", 60)
    (found,) = (each for each in health["engines"] if each["name"] == name)
    return dict(found)


def stop(engines: RunningEngines, name: str, *, hangs: bool) -> Callable[[], None]:
    """Take an engine away, or let it hang, and return the function that brings it back."""
    if hangs:
        engine = {"postgresql": engines.postgres, "s3": engines.store.proxy, "milvus": engines.milvus.engine}[name]
        engine.suspend()
        return engine.resume
    if name == "postgresql":
        engines.postgres.stop()
        return lambda: engines.postgres.start(engines.postgres.is_ready)
    if name == "s3":
        engines.store.proxy.kill()
        return engines.store.start
    engines.milvus.engine.kill()
    return engines.milvus.start_again


@pytest.mark.parametrize("hangs", [False, True], ids=["stopped", "hangs"])
@pytest.mark.parametrize("name", ["postgresql", "s3", "milvus"])
def test_engine_that_is_away_is_shown_everywhere_without_a_task_that_waits(
    engines: RunningEngines, make_node: MakeNode, name: str, *, hangs: bool
) -> None:
    worker, api = make_node("worker"), make_node("api")
    worker.options, api.options = ("--role", "worker"), ("--role", "api")
    nodes = (worker.start(), api.start())
    shutil.copy(worker.files.admin_key, api.files.admin_key)
    assert [engine_of(node, name)["state"] for node in nodes] == ["ok", "ok"]
    bring_back = stop(engines, name, hangs=hangs)
    try:
        for node in nodes:
            wait_until(lambda: engine_of(node, name)["message"], "the node sees the outage", 60)  # noqa: B023
            state, title = engine_of(node, name), TITLES[name]
            assert (state["state"], state["message"].startswith(f"{title} can't be used: it ")) == ("away", True)
            assert (bool(state["since"]), "127.0.0.1" in state["message"]) == (True, False)
            with node.client() as client:
                ready = client.get("/healthz?ready=true")
                assert ready.status_code == (503 if name == "postgresql" else 200), ready.text
                assert title in ready.text
                metrics = client.get("/metrics")
                assert (metrics.status_code, f'svc_engine_up{{engine="{name}"}} 0.0' in metrics.text) == (200, True)
            assert f"{title} can't be used" in node.svc("daemon", "status").stdout
            checked = node.svc("doctor", "--json")
            failed = [each for each in checked.json["checks"] if each["state"] == "failed"]
            assert title in failed[0]["text"], checked.stdout
            assert f"{title} can't be used" in node.files.log.read_text()
        assert f"{title} can't be used" in worker.svc("status").stderr
        if name == "milvus":
            with worker.client() as client:
                vectors = client.get("/v1/status").json()["vectors"]
            assert vectors["passages"] is None, "it isn't asked"
    finally:
        bring_back()
    for node in nodes:
        wait_until(lambda: engine_of(node, name)["state"] == "ok", "the node can use it again", 60)  # noqa: B023
        assert f"{title} can be used again" in node.files.log.read_text()


def test_idle_node_sends_the_database_few_statements(engines: RunningEngines, make_node: MakeNode) -> None:
    node = make_node()
    with psycopg.connect(node.environ["SVC_STATE_URL"], autocommit=True) as admin:
        (name,) = admin.execute("SELECT current_database()").fetchone() or ("",)
        admin.execute(f"ALTER DATABASE {name} SET log_statement = 'all'")
    log = engines.postgres.folder / "engine.log"
    node.start()

    def statements(start: int) -> Counter[str]:
        """Count the statements in the log from this offset on, by their first words."""
        found = re.findall(r"(?:statement|execute [^:]+): (SELECT EXISTS|\w+)", log.read_text(errors="replace")[start:])
        return Counter(found)

    def has_looked(start: int, times: int) -> bool:
        return statements(start)["SELECT EXISTS"] >= times

    wait_until(lambda: has_looked(0, 2), "the work after the start is done", 120, 0.5)
    start = len(log.read_text(errors="replace"))
    wait_until(lambda: has_looked(start, 2), "the node looks for work twice", 60, 0.5)
    # Each look comes with a look at the clock, and a check of the connection for notices may come in between.
    assert statements(start).total() <= 7, statements(start)
    assert node.stop() == 0


def test_doctor_on_a_second_node_reports_no_lost_key(make_node: MakeNode) -> None:
    first, second = make_node("first").start(), make_node("second").start()
    checked = second.svc("doctor", "--json")
    assert (checked.exit, "lost" in checked.stdout) == (0, False), checked.stdout
    first.files.admin_key.rename(first.files.admin_key.with_name("elsewhere"))
    assert "No key is on this node" in first.svc("doctor").stdout
