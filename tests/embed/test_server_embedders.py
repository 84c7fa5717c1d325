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

from svc_daemon.embed import server_embedders
from svc_daemon.embed.contract import EmbedFailed
from svc_daemon.embed.server_embedders import ServerEmbedder
from svc_daemon.embed.server_models import PROBE
from svc_daemon.settings.servers import EmbedSettings
from tests.acceptance.installations import PATIENCE_S, wait_until
from tests.api.loops import Loop
from tests.embed.vector_servers import DIMENSION, Reply, VectorServer, vector_server

KEY = "sk-not-to-be-seen-0123456789"
TEXTS = [f"text number {number}" for number in range(70)]

Open = Callable[..., ServerEmbedder]
#: What no answer is, each as the body of one.
NO_ANSWERS = [
    *(b"", b"<html>", b"[]", b'{"data": []}', b'{"data": [{"index": 0, "embedding": [1, 2]}]}'),
    b'{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": []}]}',
    b'{"data": [{"index": 0, "embedding": [0, 0]}, {"index": 1, "embedding": [0, 1]}]}',
    b'{"data": [{"index": 0, "embedding": [1e999, 0]}, {"index": 1, "embedding": [0, 1]}]}',
    b'{"data": [{"index": 0, "embedding": "AAAA"}, {"index": 1, "embedding": "AAAA"}]}',
    *(b'{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1, 2, 3]}]}', b"[" * 100_000),
]


@pytest.fixture
def server() -> Iterator[VectorServer]:
    with vector_server() as running:
        yield running


@pytest.fixture
def open_embedder(server: VectorServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Start with the server's model, which pauses next to nothing between two tries."""
    monkeypatch.setattr(server_embedders, "PAUSE_S", 0.001)
    loop, opened = Loop(), []

    def open_one(*, timeout_s: float = PATIENCE_S, **other: str) -> ServerEmbedder:
        fields = {"base_url": server.base_url, "model": "any-name", "api_key": KEY} | other
        embedder = ServerEmbedder(EmbedSettings(**fields), tmp_path / "server.json", loop.loop, timeout_s=timeout_s)
        opened.append(embedder)
        embedder.start()
        server.asked.clear()
        return embedder

    yield open_one
    for embedder in opened:
        embedder.close()
    loop.close()


@pytest.fixture
def embedder(open_embedder: Open) -> ServerEmbedder:
    return open_embedder()


def numbers(vector: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(vector) // 4}f", vector))


def expected(server: VectorServer, text: str) -> list[float]:
    vector = server.vector(text)
    return [number / math.hypot(*vector) for number in vector]


def failure(words: str | None, ask: Callable[..., object], *arguments: object, **options: object) -> EmbedFailed:
    with pytest.raises(EmbedFailed, match=words) as failed:
        ask(*arguments, **options)
    return failed.value


def test_vectors_come_in_order_and_have_length_1(embedder: ServerEmbedder, server: VectorServer) -> None:
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
    assert (first.body["model"], first.body["encoding_format"]) == ("any-name", "float")


def test_what_may_pass_is_tried_again_and_all_else_is_not(embedder: ServerEmbedder, server: VectorServer) -> None:
    for status in (408, 429, 500, 502, 503):
        server.asked.clear()
        server.replies = [Reply(status)] * (server_embedders.ATTEMPTS - 1)
        assert (len(embedder.embed(TEXTS[:2])), len(server.asked)) == (2, server_embedders.ATTEMPTS)
        server.replies = [Reply(status)] * server_embedders.ATTEMPTS
        assert failure(f"answered {status}", embedder.embed, TEXTS[:2]).retryable
    for status in (301, 307, 401, 403, 404):
        server.asked.clear()
        # A redirect would take the key elsewhere.
        server.replies = [Reply(status, headers={"Location": f"{server.base_url}/elsewhere"})]
        assert not failure(f"answered {status}", embedder.embed, TEXTS[:2]).retryable
        assert [asked.path for asked in server.asked] == ["/v1/embeddings"]


def test_an_address_that_leads_nowhere_is_reported_with_the_settings(open_embedder: Open, server: VectorServer) -> None:
    server.replies = [Reply(404)]
    failure("SVC_EMBED_BASE_URL", open_embedder)
    server.server_close()
    for base_url, error in (("http://127.0.0.1:1/v1", "nothing answers"), ("http://\u2100/v1", "InvalidURL")):
        failure(
            rf"can't be reached \({error}\): start it, or check SVC_EMBED_BASE_URL", open_embedder, base_url=base_url
        )


def test_the_servers_message_is_reported_without_the_key(
    open_embedder: Open, server: VectorServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    message = json.dumps({"error": {"message": f"Wrong key:\n {KEY} {'x' * 900}"}}).encode()
    server.replies = [Reply(401, message)]
    report = str(failure(r"answered 401: Wrong key: \*\*\* xxx", open_embedder))
    assert len(report) < 300
    assert KEY not in caplog.text + report + repr(open_embedder().__dict__["_server"])


@pytest.mark.parametrize("status", [400, 401, 500, 200])
def test_a_message_that_quotes_the_text_is_not_reported(
    embedder: ServerEmbedder, server: VectorServer, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = {"error": {"message": "Bad: the secret passage"}, "data": [{"index": "the secret passage"}]}
    server.refuse = lambda _: Reply(status, json.dumps(wrong).encode())
    batch = failure(None, embedder.embed, ["the secret passage"])
    query = failure(None, embedder.embed_query, "the secret passage", None)
    assert "secret" not in f"{batch} {query} {caplog.text}"


def test_an_answer_that_is_none_is_refused_and_one_without_end_is_cut(
    embedder: ServerEmbedder, server: VectorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for body in NO_ANSWERS:
        server.replies = [Reply(body=body)]
        assert not failure(None, embedder.embed, TEXTS[:1]).retryable, body[:80]
    monkeypatch.setattr(server_embedders, "MAX_ANSWER_BYTES", 1000)
    server.replies = [Reply(body=b" " * 5000)]
    failure("over", embedder.embed, TEXTS[:1])


def test_the_time_is_for_the_whole_of_a_call(open_embedder: Open, server: VectorServer) -> None:
    for slow in (Reply(silence_s=30), Reply(body=b" " * 1000, drip_s=0.05)):
        embedder = open_embedder()
        # Only what follows may run out of time.
        embedder._timeout_s = 0.3
        server.replies = [slow, slow]
        failure(r"did not finish within 0\.3 s", embedder.embed, TEXTS[:1])
        failure(r"not (finish|embedded) (with)?in ", embedder.embed_query, "x", time.monotonic() + 0.2)


def test_queries_do_not_wait_for_a_server_that_was_not_there(embedder: ServerEmbedder, server: VectorServer) -> None:
    server.replies = [Reply(503)] * server_embedders.QUERY_ATTEMPTS
    failure("answered 503", embedder.embed_query, "x", None)
    failure("a moment ago", embedder.embed_query, "x", None)
    assert len(server.asked) == server_embedders.QUERY_ATTEMPTS
    assert embedder.embed(TEXTS[:1])


def test_of_a_text_that_is_too_long_the_beginning_counts(embedder: ServerEmbedder, server: VectorServer) -> None:
    server.refuse = lambda texts: Reply(400) if any(len(text) > 500 for text in texts) else None
    long = "word " * 300
    vectors = embedder.embed([*TEXTS[:5], long])
    assert vectors[:5] == embedder.embed(TEXTS[:5])
    assert numbers(vectors[5]) == pytest.approx(expected(server, long[: len(long) // 4]), abs=1e-6)
    server.asked.clear()
    server.refuse = lambda _: Reply(422)
    failure("answered 422", embedder.embed, TEXTS)
    assert len(server.asked) < 20


@pytest.mark.parametrize("dimension", [DIMENSION, 12])
def test_a_model_that_was_exchanged_is_noticed_and_gets_a_name_of_its_own(
    open_embedder: Open, server: VectorServer, dimension: int
) -> None:
    embedder = open_embedder()
    server.model, server.dimension = "two", dimension
    failure("runs a different model", embedder.embed_query, "x", None)
    assert embedder.is_stale
    other = open_embedder()
    assert other.model != embedder.model
    assert other.embed(TEXTS[:1])
    assert open_embedder().model == other.model


def test_the_same_model_keeps_its_name_wherever_it_runs(open_embedder: Open, tmp_path: Path) -> None:
    first = open_embedder()
    with vector_server() as elsewhere:
        assert open_embedder(base_url=elsewhere.base_url).model == first.model
    assert open_embedder(model="another-name").model != first.model
    (tmp_path / "server.json").write_text("{")
    assert open_embedder().embed(TEXTS[:1])


def test_closing_ends_what_is_under_way(embedder: ServerEmbedder, server: VectorServer) -> None:
    server.replies = [Reply(silence_s=2 * PATIENCE_S)]
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(embedder.embed, TEXTS[:1])
        wait_until(lambda: server.asked, "the call")
        embedder.close()
        failure("no longer in use", asked.result, PATIENCE_S)
    failure("no longer in use", embedder.embed_query, "x", None)


def test_a_query_that_comes_late_keeps_no_other_from_the_server(embedder: ServerEmbedder, server: VectorServer) -> None:
    failure("not embedded in time", embedder.embed_query, "x", time.monotonic() - 1)
    assert server.asked == []
    assert embedder.embed_query("x", None)
