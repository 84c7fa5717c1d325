"""Three nodes act as one service for uploads, rate limits and concurrent equal requests, even if one hangs."""

import hashlib
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from tests.acceptance.calls import list_sources, make_bucket, port_of, upload, wait_ended
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.proxies import CuttingProxy
from tests.acceptance.sessions import Session
from tests.acceptance.workloads import document
from tests.cluster.nodes import EngineInspector, MakeNode

BUCKET = "inbox"
SIZE, CUTS = 2_000_000, 10
LARGE_SIZE, LARGE_CUTS = 20_000_000, 50
RACES, LARGE_RACES = 6, 60
#: The number of creates in the test, and the limit per second, which is also the size of a burst.
CREATES, PER_SECOND = 40, 5
#: The timeout for anything that a hanging node may delay, on a busy machine.
PATIENCE_S = 120.0


@pytest.fixture
def nodes(make_node: MakeNode, request: pytest.FixtureRequest) -> Sequence[Installation]:
    """Three running nodes, with the variables that the test is parametrized with; only the first has the admin key."""
    variables = getattr(request, "param", {})
    return [make_node(name, **variables).start() for name in ("one", "two", "three")]


def client_of(nodes: Sequence[Installation], number: int) -> httpx.Client:
    client = nodes[number].client(Authorization=f"Bearer {nodes[0].key}")
    client.timeout = httpx.Timeout(PATIENCE_S)
    return client


@pytest.mark.rule("cluster.affinity")
def test_upload_over_all_nodes_is_complete_despite_cut_connections(nodes: Sequence[Installation], large: bool) -> None:
    size_bytes, cuts = (LARGE_SIZE, LARGE_CUTS) if large else (SIZE, CUTS)
    moments, data = random.Random(5), random.Random(7).randbytes(size_bytes)
    with ExitStack() as stack:
        clients = [stack.enter_context(client_of(nodes, number)) for number in range(3)]
        proxies = [stack.enter_context(CuttingProxy(port_of(node), [])) for node in nodes]
        make_bucket(clients[0], BUCKET)
        fields = {"filename": "large.bin", "size_bytes": size_bytes}
        opened = clients[0].post(f"/v1/buckets/{BUCKET}/uploads", json=fields).raise_for_status().json()
        session, part_bytes, stored, turn = Session(opened["session_id"], opened["upload_url"], data), 400_000, 0, 0
        while stored < size_bytes:
            proxy = proxies[turn % 3]
            if turn < cuts:
                proxy.budgets.append(moments.randrange(400, part_bytes * size_bytes // LARGE_SIZE))
            try:
                stored = session.send(proxy.port, stored, stored + part_bytes)
            except httpx.TransportError:
                # Ask another node than the one that has just lost the connection.
                stored = session.ask_offset(port_of(nodes[(turn + 1) % 3]))
            turn += 1
        assert sum(proxy.cuts for proxy in proxies) == cuts
        source = clients[2].post(f"/v1/buckets/{BUCKET}/uploads/{session.id}/finalize").raise_for_status().json()
        assert source["sha256"] == hashlib.sha256(data).hexdigest()
        assert all(client.get(f"/v1/sources/{source['id']}/content").content == data for client in clients)
        wait_ended(clients[0], source["id"])
    assert [node.stop() for node in nodes] == [0, 0, 0]
    assert EngineInspector(nodes[0].environ).assert_consistent() == {source["id"]}


@pytest.mark.rule("cluster.limits")
@pytest.mark.parametrize("nodes", [{"SVC_LIMIT_CREATES_PER_SECOND": str(PER_SECOND)}], indirect=True)
def test_create_rate_limit_applies_to_three_nodes_together(nodes: Sequence[Installation]) -> None:
    accepted, refused, lock = list[str](), list[httpx.Response](), threading.Lock()

    def create(number: int) -> None:
        with client_of(nodes, number) as client:
            while len(accepted) < CREATES:
                name = f"{number}x{len(accepted)}x{len(refused)}.md"
                answer = upload(client, BUCKET, name, document(name))
                with lock:
                    accepted.append(answer.json()["id"]) if answer.status_code == 201 else refused.append(answer)

    with client_of(nodes, 0) as client:
        make_bucket(client, BUCKET)
        began_s = time.monotonic()
        with ThreadPoolExecutor(3) as threads:
            list(threads.map(create, range(3)))
        # Each thread may have created one more source than was counted.
        assert len(accepted) <= PER_SECOND + PER_SECOND * (time.monotonic() - began_s)
        # A busy machine may be too slow for any create to be refused.
        assert {answer.json()["error"]["code"] for answer in refused} <= {"upload_rate_limited"}
        assert all(int(answer.headers["Retry-After"]) > 0 for answer in refused)
        assert {source["id"] for source in list_sources(client, BUCKET)} == set(accepted)


@pytest.mark.rule("cluster.affinity")
def test_same_request_to_all_nodes_concurrently_creates_its_sources_once(
    nodes: Sequence[Installation], large: bool
) -> None:
    with ExitStack() as stack, ThreadPoolExecutor(3) as threads:
        clients = [stack.enter_context(client_of(nodes, number)) for number in range(3)]
        make_bucket(clients[0], BUCKET)
        made = set[str]()
        for race in range(LARGE_RACES if large else RACES):
            for prepare in (_racing_upload, _racing_session, _racing_batch):
                send = prepare(clients[race % 3], f"word{race}{prepare.__name__.rpartition('_')[2]}")
                results = list(threads.map(lambda client: _until_answered(client, send), clients))  # noqa: B023
                assert results[0] == results[1] == results[2], results
                made |= set(results[0])
        assert {source["id"] for source in list_sources(clients[0], BUCKET)} == made
        for source_id in made:
            assert wait_ended(clients[1], source_id)["ready"]
    assert [node.stop() for node in nodes] == [0, 0, 0]
    assert EngineInspector(nodes[0].environ).assert_consistent() == made


Send = Callable[[httpx.Client], httpx.Response]


def _until_answered(client: httpx.Client, send: Send) -> list[str]:
    """Send the request until it succeeds, and return the ids of its sources."""

    def attempt() -> dict[str, Any] | None:
        answer = send(client)
        if answer.is_success:
            return dict(answer.json())
        assert answer.json()["error"]["retryable"], answer.text
        return None

    body = wait_until(attempt, "an answer", PATIENCE_S, 0.05)
    items = [*body.get("finalized", ()), *body.get("replayed", ())]
    return sorted(item["knowledge_id"] for item in items) if items else [body["id"]]


def _racing_upload(_: httpx.Client, word: str) -> Send:
    return lambda client: upload(client, BUCKET, f"{word}.md", document(word, 500), word)


def _racing_session(client: httpx.Client, word: str) -> Send:
    fields = {"filename": f"{word}.md", "size_bytes": len(document(word))}
    opened = client.post(f"/v1/buckets/{BUCKET}/uploads", json=fields).raise_for_status().json()
    client.put(urlsplit(opened["upload_url"]).path, content=document(word))
    return lambda client: client.post(f"/v1/buckets/{BUCKET}/uploads/{opened['session_id']}/finalize")


def _racing_batch(client: httpx.Client, word: str) -> Send:
    names = [f"{word}{part}" for part in range(5)]
    files = [{"client_file_id": name, "filename": f"{name}.md", "size_bytes": len(document(name))} for name in names]
    items = [{"client_file_id": name, "sha256": hashlib.sha256(document(name)).hexdigest()} for name in names]
    body = {"manifest": {"version": 1, "items": items}, "files": files, "pack": True}
    path = f"/v1/buckets/{BUCKET}/batches"
    opened = client.post(path, json=body).raise_for_status().json()
    client.put(urlsplit(opened["pack"]["upload_url"]).path, content=b"".join(map(document, names)))
    return lambda client: client.post(f"{path}/{opened['batch_id']}/finalize")


# A node that hangs.


@pytest.mark.rule("cluster.hangs")
@pytest.mark.parametrize("nodes", [{"SVC_LIMIT_LEASE_SECONDS": "3", "SVC_LIMIT_TASK_ATTEMPTS": "50"}], indirect=True)
def test_suspended_node_blocks_neither_an_upload_nor_the_queue(nodes: Sequence[Installation]) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(client_of(nodes, number)) for number in range(3)]
        make_bucket(clients[0], BUCKET)
        data = random.Random(3).randbytes(3_000_000)
        fields = {"filename": "large.bin", "size_bytes": len(data)}
        opened = clients[0].post(f"/v1/buckets/{BUCKET}/uploads", json=fields).raise_for_status().json()
        session, half = Session(opened["session_id"], opened["upload_url"], data), 1_500_000
        assert session.send(port_of(nodes[0]), 0, half) == half
        # The node to be suspended has the session's lock and some documents of the queue.
        begun, going_on = threading.Event(), threading.Event()
        late = threading.Thread(target=_send_slowly, args=(session, port_of(nodes[0]), half, begun, going_on))
        late.start()
        assert begun.wait(PATIENCE_S)
        words = [f"word{number}" for number in range(60)]
        made = [upload(clients[0], BUCKET, f"{word}.md", document(word, 60)).json()["id"] for word in words]
        hanging = psutil.Process(nodes[0].pid)
        hanging.suspend()
        try:
            stored = wait_until(lambda: _sent(session, port_of(nodes[1]), half), "the rest of the upload", PATIENCE_S)
            assert stored == len(data)
            finalized = _until_answered(
                clients[1], lambda client: client.post(f"/v1/buckets/{BUCKET}/uploads/{session.id}/finalize")
            )
            for source_id in made:
                assert wait_ended(clients[2], source_id)["ready"]
        finally:
            hanging.resume()
            going_on.set()
            late.join()
        # The resumed node continues, and its lost locks and leases do no harm.
        after = _until_answered(clients[0], _racing_upload(clients[0], "after"))
        assert wait_ended(clients[0], after[0])["ready"]
        assert all(clients[0].get(f"/v1/sources/{source_id}").json()["ready"] for source_id in made)
        for word, source_id in [*zip(words, made, strict=True)][::6]:  # one search takes the small Milvus seconds
            wait_until(lambda: _first_found(clients[0], word) == source_id, f"{word} is found", PATIENCE_S)  # noqa: B023
        content = clients[0].get(f"/v1/sources/{finalized[0]}/content").content
        assert content == data
    assert [node.stop() for node in nodes] == [0, 0, 0]
    assert EngineInspector(nodes[0].environ).assert_consistent() == {*made, *after, *finalized}


def _first_found(client: httpx.Client, word: str) -> str | None:
    answer = client.post("/v1/search", json={"query": word, "buckets": [BUCKET]})
    assert answer.is_success or answer.json()["error"]["retryable"], answer.text
    return next((str(hit["source_id"]) for hit in answer.json().get("data", ())), None)


def _sent(session: Session, port: int, first: int) -> int | None:
    """Send these bytes and return how many are stored; None while another request holds the session."""
    try:
        return session.send(port, first)
    except AssertionError:
        return None


def _send_slowly(session: Session, port: int, first: int, begun: threading.Event, going_on: threading.Event) -> None:
    """Send a part whose second half follows much later, and ignore the response."""

    def pieces() -> Any:
        yield session.data[first : first + 100_000]
        begun.set()
        going_on.wait(3 * PATIENCE_S)
        yield session.data[first + 100_000 :]

    url = urlsplit(session.url)._replace(netloc=f"127.0.0.1:{port}").geturl()
    last, size_bytes = len(session.data) - 1, len(session.data)
    headers = {"Content-Range": f"bytes {first}-{last}/{size_bytes}", "Content-Length": str(size_bytes - first)}
    try:
        httpx.put(url, content=pieces(), headers=headers, trust_env=False, timeout=3 * PATIENCE_S)
    except httpx.HTTPError:
        return
