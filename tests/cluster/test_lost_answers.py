"""Committed rows keep their bytes when the response to the COMMIT is lost, with a kill of the node or without one.

Afterwards, the bytes of all rows are stored, a sweep that considers every object old removes none of them, and
repeating the request returns what the first one has created, once.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.acceptance.calls import list_sources, make_bucket, search, wait_ended
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.workloads import Site, document, hosting
from tests.cluster.cutting import CommitHolder
from tests.cluster.nodes import EngineInspector, MakeNode, RunningEngines

BUCKET = "inbox"
#: The timeout for a COMMIT, and for a node's first response, on a busy machine.
PATIENCE_S = 120.0
#: How long the small Milvus of the tests may take to process the backlog.
SETTLE_S = 600.0
#: The number of turns at full size; two of three turns kill the node, the others cut the connection.
LARGE_TURNS = 150
_CREATES = b"INSERT INTO sources ("
#: Sends a request and returns the ids of its sources; it is repeated until it gets a response.
Send = Callable[[httpx.Client], list[str]]
Prepare = Callable[["Turns", httpx.Client, str], Send]


@dataclass
class Turns:
    """Two nodes on the same engines: one serves until it is killed, and then the other takes over."""

    nodes: Sequence[Installation]
    commits: CommitHolder
    inspector: EngineInspector
    site: Site
    #: The last known hash of each source that ever had a row.
    seen: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    kills: int = 0

    @property
    def node(self) -> Installation:
        return self.nodes[self.kills % len(self.nodes)]

    def client(self) -> httpx.Client:
        # Only the node that started first has the admin key in its folder.
        client = self.node.client(Authorization=f"Bearer {self.nodes[0].key}")
        client.timeout = httpx.Timeout(PATIENCE_S)
        return client

    def lose_answer(self, kind: str, word: str, *, with_kill: bool) -> None:
        """Lose the response to a COMMIT, with or without a kill, and assert that a repeated request makes up for it."""
        statement, prepare = KINDS[kind]
        with self.client() as client:
            send = prepare(self, client, word)
            self.check_bytes()
            self.commits.hold_after(statement)
            results: list[Any] = []
            sending = threading.Thread(target=lambda: results.append(_sent(send, client)))
            sending.start()
            assert self.commits.holds.wait(PATIENCE_S), (kind, results)
            if with_kill:
                self.node.kill()
                self.kills += 1
            self.commits.cut()
            sending.join()
        # If a worker commits, the request has had its response before.
        assert kind in OF_WORKERS or isinstance(results[0], httpx.HTTPError), (kind, results)
        committed = self.check_bytes()
        self.inspector.sweep()
        if with_kill:
            self.node.start()
        with self.client() as client:
            again = wait_until(lambda: _answered(send, client), "the answer to the same request", PATIENCE_S)
        made_again = self.check_bytes()
        assert committed <= set(again) <= self.seen.keys(), (kind, committed, again)
        # A worker may have committed before it was killed, and the response still have been lost.
        assert made_again <= (set(again) - committed if kind in OF_WORKERS else set()), (kind, made_again)

    def check_bytes(self) -> set[str]:
        """Check the bytes of sources that were created or changed since the last call, and return their ids."""
        found = self.inspector.check_bytes(self.seen)
        fresh = {source_id for source_id, sha256 in found.items() if self.seen.get(source_id) != sha256}
        self.seen |= found
        return fresh


def _sent(send: Send, client: httpx.Client) -> list[str] | httpx.HTTPError:
    try:
        return send(client)
    except httpx.HTTPStatusError as error:
        # A node that is still running reports the failure as retryable.
        assert error.response.status_code == 409 or int(error.response.headers["Retry-After"]) > 0, error.response.text
        assert error.response.json()["error"]["retryable"], error.response.text
        return error
    except httpx.HTTPError as error:
        return error


def _answered(send: Send, client: httpx.Client) -> list[str] | None:
    sent = _sent(send, client)
    return None if isinstance(sent, httpx.HTTPError) else sent


def _posted(client: httpx.Client, path: str, word: str, **body: Any) -> dict[str, Any]:
    answer = client.post(f"/v1/buckets/{BUCKET}/{path}", headers={"Idempotency-Key": word}, **body)
    return dict(answer.raise_for_status().json())


def _upload(_: Turns, __: httpx.Client, word: str, **fields: str) -> Send:
    files = {"file": (f"{word}.md", document(word, 5))}
    return lambda client: [_posted(client, "files", word, files=files, data=fields)["id"]]


def _replace(turns: Turns, client: httpx.Client, word: str) -> Send:
    (old,) = _upload(turns, client, f"{word}old")(client)
    turns.deleted.add(old)
    return _upload(turns, client, word, replaces=old)


def _finalize_session(_: Turns, client: httpx.Client, word: str) -> Send:
    # More than a node buffers in memory.
    data = document(word, 1100)
    opened = _posted(client, "uploads", word, json={"filename": f"{word}.md", "size_bytes": len(data)})
    half = len(data) // 2
    for first, last in ((0, half - 1), (half, len(data) - 1)):
        span = {"Content-Range": f"bytes {first}-{last}/{len(data)}"}
        client.put(urlsplit(opened["upload_url"]).path, content=data[first : last + 1], headers=span)
    path = f"uploads/{opened['session_id']}/finalize"
    return lambda client: [_posted(client, path, word)["id"]]


def _finalize_batch(_: Turns, client: httpx.Client, word: str, *, is_pack: bool = False) -> Send:
    names = [f"{word}{part}" for part in "abc"]
    files = [{"client_file_id": w, "filename": f"{w}.md", "size_bytes": len(document(w))} for w in names]
    items = [{"client_file_id": w, "sha256": hashlib.sha256(document(w)).hexdigest()} for w in names]
    body = {"manifest": {"version": 1, "items": items}, "files": files, "pack": is_pack}
    opened = _posted(client, "batches", word, json=body)
    if is_pack:
        client.put(urlsplit(opened["pack"]["upload_url"]).path, content=b"".join(map(document, names)))
    else:
        for item in opened["items"]:
            client.put(urlsplit(item["upload_url"]).path, content=document(item["client_file_id"]))
    path = f"batches/{opened['batch_id']}/finalize"

    def finalize(client: httpx.Client) -> list[str]:
        ended = _posted(client, path, word)
        return [item["knowledge_id"] for item in (*ended["finalized"], *ended["replayed"])]

    return finalize


def _finalize_pack(turns: Turns, client: httpx.Client, word: str) -> Send:
    return _finalize_batch(turns, client, word, is_pack=True)


def _import_file(turns: Turns, _: httpx.Client, word: str) -> Send:
    url = turns.site.server.url(f"/{word}.md")
    return lambda client: [_posted(client, "files/import", word, json={"url": url})["id"]]


def _add_page(turns: Turns, _: httpx.Client, word: str) -> Send:
    url = turns.site.server.url(f"/{word}.html")
    return lambda client: [_posted(client, "pages", word, json={"url": url})["id"]]


def _ask(_: Turns, __: httpx.Client, word: str) -> Send:
    body = {"question": f"What is {word}?", "answer": f"{word} is a quay."}
    return lambda client: [_posted(client, "qa", word, json=body)["id"]]


def _refresh(turns: Turns, client: httpx.Client, word: str) -> Send:
    (source_id,) = _import_file(turns, client, word)(client)
    assert wait_ended(client, source_id)["ready"]
    turns.site.changes[f"/{word}.md"] = 1

    def refresh(client: httpx.Client) -> list[str]:
        client.post(f"/v1/sources/{source_id}/refresh").raise_for_status()
        return [source_id]

    return refresh


def _delete(turns: Turns, client: httpx.Client, word: str) -> Send:
    (source_id,) = _upload(turns, client, word)(client)
    turns.deleted.add(source_id)

    def delete(client: httpx.Client) -> list[str]:
        answer = client.delete(f"/v1/sources/{source_id}")
        if answer.status_code != 404:
            answer.raise_for_status()
        return [source_id]

    return delete


#: By kind of request: a statement of the transaction whose response is lost, and what sends the request.
KINDS: dict[str, tuple[bytes, Prepare]] = {
    "upload": (_CREATES, _upload),
    "replace": (_CREATES, _replace),
    "session": (_CREATES, _finalize_session),
    "batch": (_CREATES, _finalize_batch),
    "pack": (_CREATES, _finalize_pack),
    "import": (_CREATES, _import_file),
    "page": (_CREATES, _add_page),
    "qa": (_CREATES, _ask),
    "refresh": (b"UPDATE sources SET blob", _refresh),
    "delete": (b"INSERT INTO tombstones", _delete),
    "claim": (b"UPDATE tasks SET status = 'running'", _upload),
    "indexed": (b"UPDATE tasks SET status = 'succeeded'", _upload),
}
OF_WORKERS = ("claim", "indexed")


@pytest.fixture
def turns(engines: RunningEngines, make_node: MakeNode) -> Iterator[Turns]:
    # A kill counts as an attempt of the running tasks, so with the default limit a source could fail.
    limits = {"SVC_LIMIT_TASK_ATTEMPTS": "100", "SVC_LIMIT_LEASE_SECONDS": "6"}
    nodes = [make_node(name, **limits, SVC_FETCH_ALLOW="127.0.0.0/8") for name in ("one", "two")]
    connecting = EngineInspector(dict(nodes[0].environ)).connected()
    with connecting as inspector, CommitHolder(engines.postgres.port) as commits, hosting() as site:
        for node in nodes:
            url = node.environ["SVC_STATE_URL"]
            node.environ["SVC_STATE_URL"] = url.replace(f":{engines.postgres.port}/", f":{commits.port}/")
        yield Turns(nodes, commits, inspector, site)


@pytest.mark.rule("cluster.commit")
def test_lost_response_to_a_commit_loses_no_bytes_and_duplicates_no_source(turns: Turns, large: bool) -> None:
    turns.node.start()
    with turns.client() as client:
        make_bucket(client, BUCKET)
    for turn in range(LARGE_TURNS if large else len(KINDS)):
        rounds, number = divmod(turn, len(KINDS))
        turns.lose_answer([*KINDS][number], f"word{turn}", with_kill=(number + rounds) % 3 != 2)
    assert turns.kills * 3 == (turn + 1) * 2
    kept = turns.seen.keys() - turns.deleted
    with turns.client() as client:
        for source_id in kept:
            assert wait_ended(client, source_id, SETTLE_S)["ready"], source_id
        wait_until(
            lambda: {each["id"] for each in list_sources(client, BUCKET)} == kept, "the replaced sources are detached"
        )
        assert {hit["source_id"] for hit in search(client, f"word{turn}", BUCKET)} <= kept
        # After the workers' next sweep, no bytes of deleted sources are left.
        wait_until(lambda: set(turns.inspector.list_deleted()) == set(), "the bytes of deleted sources are removed")
    turns.node.stop()
    turns.inspector.sweep()
    assert turns.inspector.assert_consistent() == kept
