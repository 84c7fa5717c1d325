"""An embedding server: asked as OpenAI's is, believed in nothing, and never given the key twice."""

import json
import logging
import math
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from svc_daemon.embed import servers
from svc_daemon.embed.contract import EmbedFailed
from svc_daemon.embed.generations import PROBE
from svc_daemon.embed.servers import ServerEmbedder
from svc_daemon.settings import EmbedSettings
from tests.acceptance.installations import wait_until
from tests.api.daemons import Loop
from tests.embed.vector_servers import DIMENSION, Reply, VectorServer, vector_server

KEY = "sk-not-to-be-seen-0123456789"
TEXTS = [f"text number {number}" for number in range(70)]

Open = Callable[..., ServerEmbedder]


@pytest.fixture
def server() -> Iterator[VectorServer]:
    with vector_server() as running:
        yield running


@pytest.fixture
def open_embedder(server: VectorServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Open the server's model, which pauses next to nothing between two tries."""
    monkeypatch.setattr(servers, "PAUSE_S", 0.001)
    loop, opened = Loop(), []

    def open_one(*, is_started: bool = True, timeout_s: float = 10, **other: str) -> ServerEmbedder:
        fields = {"base_url": server.base_url, "model": "any-name", "api_key": KEY} | other
        embedder = ServerEmbedder(EmbedSettings(**fields), tmp_path / "server.json", loop.loop, timeout_s=timeout_s)
        opened.append(embedder)
        if is_started:
            embedder.start()
            server.asked.clear()
        return embedder

    yield open_one
    for embedder in opened:
        embedder.close()
    loop.close()


def numbers(vector: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(vector) // 4}f", vector))


def expected(server: VectorServer, text: str) -> list[float]:
    vector = server.vector(text)
    return [number / math.hypot(*vector) for number in vector]


def test_vectors_come_in_order_and_have_length_1(open_embedder: Open, server: VectorServer) -> None:
    embedder = open_embedder()
    vectors = embedder.embed(TEXTS)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert numbers(vector) == pytest.approx(expected(server, text), abs=1e-6)
    assert embedder.embed_query(TEXTS[3], None) == vectors[3]
    assert (embedder.dimension, embedder.model.partition("@")[0]) == (DIMENSION, "any-name")
    assert embedder.embed([]) == []


def test_it_is_asked_in_batches_as_openai_is(open_embedder: Open, server: VectorServer) -> None:
    open_embedder(api_key="").embed(TEXTS[:1])
    assert "authorization" not in server.asked[0].headers
    open_embedder().embed(TEXTS)
    assert [len(asked.texts) for asked in server.asked] == [33, 33, 7]
    assert all(asked.texts[-1] == PROBE for asked in server.asked)
    first = server.asked[0]
    assert (first.path, first.headers["authorization"]) == ("/v1/embeddings", f"Bearer {KEY}")
    assert {name: first.body[name] for name in ("model", "encoding_format")} == {
        "model": "any-name",
        "encoding_format": "float",
    }


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_what_may_pass_is_tried_again(open_embedder: Open, server: VectorServer, status: int) -> None:
    embedder = open_embedder()
    server.replies = [Reply(status)] * (servers.ATTEMPTS - 1)
    assert len(embedder.embed(TEXTS[:2])) == 2
    assert len(server.asked) == servers.ATTEMPTS
    server.replies = [Reply(status)] * servers.ATTEMPTS
    with pytest.raises(EmbedFailed, match=f"answered {status}") as failed:
        embedder.embed(TEXTS[:2])
    assert failed.value.retryable


@pytest.mark.parametrize("status", [301, 307, 401, 403, 404])
def test_what_will_not_pass_is_not_tried_again(open_embedder: Open, server: VectorServer, status: int) -> None:
    embedder = open_embedder()
    # A redirect would take the key elsewhere.
    server.replies = [Reply(status, headers={"Location": f"{server.base_url}/elsewhere"})]
    with pytest.raises(EmbedFailed, match=f"answered {status}") as failed:
        embedder.embed(TEXTS[:2])
    assert not failed.value.retryable
    assert [asked.path for asked in server.asked] == ["/v1/embeddings"]


def test_an_address_that_leads_nowhere_is_told_with_the_settings(open_embedder: Open, server: VectorServer) -> None:
    server.replies = [Reply(404)]
    with pytest.raises(EmbedFailed, match="SVC_EMBED_BASE_URL"):
        open_embedder()
    server.server_close()
    for base_url, error in (("http://127.0.0.1:1/v1", "ConnectError"), ("http://\u2100/v1", "InvalidURL")):
        with pytest.raises(EmbedFailed, match=f"can't be reached: {error}"):
            open_embedder(base_url=base_url)


def test_what_the_server_says_is_told_without_the_key(
    open_embedder: Open, server: VectorServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    said = json.dumps({"error": {"message": f"Wrong key:\n {KEY} {'x' * 900}"}}).encode()
    server.replies = [Reply(401, said)]
    with pytest.raises(EmbedFailed, match=r"answered 401: Wrong key: \*\*\* xxx") as failed:
        open_embedder()
    assert len(str(failed.value)) < 300
    embedder = open_embedder()
    assert KEY not in caplog.text + repr(failed.value) + repr(embedder.__dict__["_server"])


@pytest.mark.parametrize("status", [400, 401, 500, 200])
def test_what_the_server_says_of_a_text_is_told_to_nobody(
    open_embedder: Open, server: VectorServer, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    caplog.set_level(logging.DEBUG)
    embedder = open_embedder()
    # Some quote what they were asked.
    wrong = {"error": {"message": "Bad: the secret passage"}, "data": [{"index": "the secret passage"}]}
    server.refuse = lambda _: Reply(status, json.dumps(wrong).encode())
    for ask in (
        lambda: embedder.embed(["the secret passage"]),
        lambda: embedder.embed_query("the secret passage", None),
    ):
        with pytest.raises(EmbedFailed) as failed:
            ask()
        assert "secret" not in str(failed.value) + caplog.text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"data": []}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": []}]}',
        b'{"data": [{"index": 0, "embedding": [0, 0]}, {"index": 1, "embedding": [0, 1]}]}',
        b'{"data": [{"index": 0, "embedding": [1e999, 0]}, {"index": 1, "embedding": [0, 1]}]}',
        b'{"data": [{"index": 0, "embedding": "AAAA"}, {"index": 1, "embedding": "AAAA"}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1, 2, 3]}]}',
        b"[" * 100_000,
    ],
)
def test_an_answer_that_is_none_is_refused(open_embedder: Open, server: VectorServer, body: bytes) -> None:
    embedder = open_embedder()
    server.replies = [Reply(body=body)]
    with pytest.raises(EmbedFailed) as failed:
        embedder.embed(TEXTS[:1])
    assert not failed.value.retryable


def test_an_answer_without_end_is_cut(
    open_embedder: Open, server: VectorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = open_embedder()
    monkeypatch.setattr(servers, "MAX_ANSWER_BYTES", 1000)
    server.replies = [Reply(body=b" " * 5000)]
    with pytest.raises(EmbedFailed, match="over"):
        embedder.embed(TEXTS[:1])


@pytest.mark.parametrize("slow", [Reply(silence_s=30), Reply(body=b" " * 1000, drip_s=0.05)])
def test_the_time_is_for_the_whole_of_a_call(open_embedder: Open, server: VectorServer, slow: Reply) -> None:
    embedder = open_embedder(timeout_s=1.5)
    server.replies = [slow]
    with pytest.raises(EmbedFailed, match=r"not done within 1\.5 s"):
        embedder.embed(TEXTS[:1])
    with pytest.raises(EmbedFailed, match=r"not done within 0\.[12] s"):
        server.replies = [slow]
        embedder.embed_query("x", time.monotonic() + 0.2)


def test_queries_do_not_wait_for_a_server_that_was_not_there(open_embedder: Open, server: VectorServer) -> None:
    embedder = open_embedder()
    server.replies = [Reply(503)] * servers.QUERY_ATTEMPTS
    with pytest.raises(EmbedFailed, match="answered 503"):
        embedder.embed_query("x", None)
    with pytest.raises(EmbedFailed, match="a moment ago"):
        embedder.embed_query("x", None)
    assert len(server.asked) == servers.QUERY_ATTEMPTS
    assert embedder.embed(TEXTS[:1])


def test_of_a_text_that_is_too_long_the_beginning_counts(open_embedder: Open, server: VectorServer) -> None:
    embedder = open_embedder()
    server.refuse = lambda texts: Reply(400) if any(len(text) > 500 for text in texts) else None
    long = "word " * 300
    vectors = embedder.embed([*TEXTS[:5], long])
    assert vectors[:5] == embedder.embed(TEXTS[:5])
    assert numbers(vectors[5]) == pytest.approx(expected(server, long[: len(long) // 4]), abs=1e-6)


def test_a_server_that_takes_no_text_is_told(open_embedder: Open, server: VectorServer) -> None:
    embedder = open_embedder()
    server.refuse = lambda _: Reply(422)
    with pytest.raises(EmbedFailed, match="answered 422"):
        embedder.embed(TEXTS)
    assert len(server.asked) < 20


@pytest.mark.parametrize("dimension", [DIMENSION, 12])
def test_a_model_that_was_exchanged_is_noticed_and_gets_a_name_of_its_own(
    open_embedder: Open, server: VectorServer, dimension: int
) -> None:
    embedder = open_embedder()
    server.model, server.dimension = "two", dimension
    with pytest.raises(EmbedFailed, match="runs another model"):
        embedder.embed_query("x", None)
    assert embedder.is_stale
    other = open_embedder()
    assert other.model != embedder.model
    assert other.embed(TEXTS[:1])
    assert open_embedder().model == other.model


def test_the_same_model_keeps_its_name_wherever_it_runs(
    open_embedder: Open, server: VectorServer, tmp_path: Path
) -> None:
    first = open_embedder()
    with vector_server() as elsewhere:
        assert open_embedder(base_url=elsewhere.base_url).model == first.model
    assert open_embedder(model="another-name").model != first.model
    (tmp_path / "server.json").write_text("{")
    assert open_embedder().embed(TEXTS[:1])


def test_closing_ends_what_is_under_way(open_embedder: Open, server: VectorServer) -> None:
    embedder = open_embedder()
    server.replies = [Reply(silence_s=5)]
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(embedder.embed, TEXTS[:1])
        wait_until(lambda: server.asked, "the call")
        embedder.close()
        with pytest.raises(EmbedFailed, match="no longer in use"):
            asked.result(3)
    with pytest.raises(EmbedFailed, match="no longer in use"):
        embedder.embed_query("x", None)


def test_a_query_that_comes_too_late_keeps_no_other_from_the_server(open_embedder: Open, server: VectorServer) -> None:
    embedder = open_embedder()
    with pytest.raises(EmbedFailed, match="not embedded in time"):
        embedder.embed_query("x", time.monotonic() - 1)
    assert server.asked == []
    assert embedder.embed_query("x", None)
