"""The client of a language model's server: its requests, and each way in which a server may misbehave."""

import asyncio
import json
import logging
import socket
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from svc_daemon.core.answers.conversations import Message
from svc_daemon.llm.clients import LINE_BYTES, STOPPING, LlmClient, LlmLimits
from svc_daemon.llm.contract import Cut, Ending, LlmFailed, Usage
from svc_daemon.settings.servers import LlmSettings
from tests.acceptance.installations import PATIENCE_S, wait_until
from tests.fetch.servers import Exchange, Script
from tests.llm.chats import DONE, chatting, chunk, event, saying, stalling, streaming

KEY = "hunter2-key"
LIMITS = LlmLimits(
    connect_s=PATIENCE_S, first_word_s=PATIENCE_S, silent_s=PATIENCE_S, total_s=PATIENCE_S, answer_characters=1000
)
#: Short timeouts, for servers that stall.
HURRIED = replace(LIMITS, connect_s=0.5, first_word_s=0.5, silent_s=0.5)
MESSAGES = (Message("system", "Be brief."), Message("user", "Why?"))


@asynccontextmanager
async def opened(base_url: str, limits: LlmLimits = LIMITS, key: str = KEY) -> AsyncIterator[LlmClient]:
    client = LlmClient(LlmSettings(base_url=base_url, model="small", api_key=key), limits, time.monotonic)
    try:
        yield client
    finally:
        await client.close()


def ask(base_url: str, limits: LlmLimits = LIMITS, key: str = KEY) -> list[str | Ending]:
    async def asked() -> list[str | Ending]:
        async with opened(base_url, limits, key) as client, asyncio.timeout(2 * PATIENCE_S):
            return [piece async for piece in client.write(MESSAGES)]

    return asyncio.run(asked())


def look(base_url: str, limits: LlmLimits = LIMITS) -> str | None:
    async def looked() -> str | None:
        async with opened(base_url, limits) as client:
            return await client.look()

    return asyncio.run(looked())


def failure(script: Script, limits: LlmLimits = LIMITS) -> LlmFailed:
    """Assert that asking a server with this script fails without revealing the key, and return the failure."""
    with chatting(script) as server, pytest.raises(LlmFailed) as failed:
        ask(server.url("/v1"), limits)
    assert KEY not in str(failed.value)
    return failed.value


def test_request_is_that_of_the_chat_api_and_its_answer_is_returned_in_pieces_with_an_ending() -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 3}
    with chatting(streaming(saying("Be", "cause", usage=usage))) as server:
        assert ask(server.url("/some/v1")) == ["Be", "cause", Ending(usage=Usage(12, 3))]
        ask(server.url("/v1"), key="")
    request, without_key = server.requests
    assert "authorization" not in without_key.headers
    assert (request.method, request.path) == ("POST", "/some/v1/chat/completions")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    body = json.loads(request.body)
    assert body["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
    assert (body["model"], body["stream"]) == ("small", True)


WELL = {
    "an end without DONE": [chunk("x"), chunk(reason="stop")],
    "DONE without an end": [chunk("x"), DONE],
    "comments": [b": hello\n\n", chunk("x"), b": hello\n\n", chunk(reason="stop"), DONE],
    "names and ids": [b"event: chunk\nid: 1\n" + chunk("x"), chunk(reason="stop"), DONE],
    "no space behind the colon": [chunk("x").replace(b"data: ", b"data:"), chunk(reason="stop"), DONE],
    "carriage returns": [saying("x").replace(b"\n", b"\r\n")],
    "byte by byte": [bytes([each]) for each in saying("x")],
    "words behind DONE": [saying("x"), chunk("never")],
    "an empty event": [chunk(""), event({}), event({"choices": None}), chunk("x"), chunk(reason="stop"), DONE],
}
NO_COUNTS: tuple[Any, ...] = (-1, 10**4000, 1.5, "12", None)
CUTS: dict[str, Cut | None] = {"length": "length", "content_filter": "content_filter", "eos": None}


@pytest.mark.parametrize(("form", "parts"), WELL.items())
def test_streams_of_different_forms_are_read_alike(form: str, parts: list[bytes]) -> None:
    with chatting(streaming(*parts)) as server:
        assert ask(server.url("/v1")) == ["x", Ending()]


def test_ending_has_the_reason_of_a_cut_and_only_valid_token_counts() -> None:
    cases = [(saying("x", reason=reason), "x", Ending(cut=cut)) for reason, cut in CUTS.items()]
    cases += [
        (saying("x", usage={"prompt_tokens": count, "completion_tokens": 3}), "x", Ending(usage=Usage(0, 3)))
        for count in NO_COUNTS
    ]
    # Half of a surrogate pair can't be written as UTF-8.
    half = b'data: {"choices": [{"delta": {"content": "a\\ud83db"}}]}\n\n'
    for stream, text, end in [*cases, (half + chunk(reason="stop"), "a?b", Ending())]:
        with chatting(streaming(stream)) as server:
            assert ask(server.url("/v1")) == [text, end], stream


def cutting(*parts: bytes) -> Script:
    """Return a script that sends a chunked response without its last chunk."""

    def script(exchange: Exchange) -> None:
        exchange.head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        exchange.send(*(b"%x\r\n%b\r\n" % (len(part), part) for part in parts))

    return script


FAILING: dict[str, tuple[Script, str]] = {
    "refuses the key": (streaming(b'{"error": "bad key"}', status=401), "answered 401. Is its key in SVC_LLM_API_KEY"),
    "knows no such path": (streaming(b"404", status=404), "Is its address SVC_LLM_BASE_URL, with /v1, and its model"),
    "points elsewhere": (lambda exchange: exchange.answer(307, location="/elsewhere"), "answered 307"),
    "is busy": (streaming(b"", status=429), "answered 429"),
    "breaks": (streaming(b"oops", status=500), "answered 500"),
    "answers in one piece": (streaming(b"{}", content_type="application/json"), "without a stream"),
    "is a web page": (streaming(b"<html>", content_type="text/html"), "without a stream"),
    "says nothing": (streaming(), "in the middle"),
    "stops early": (streaming(chunk("Half a sen")), "in the middle"),
    "is cut off": (cutting(chunk("Half a sen")), "broke"),
    "fails on its way": (streaming(chunk("x"), event({"error": {"message": "out of memory"}})), "failed while"),
    "sends no JSON": (streaming(b"data: {\n\n"), "not a chat"),
    "sends a list": (streaming(b"data: []\n\n"), "not a chat"),
    "sends choices of another kind": (streaming(event({"choices": ["x"]})), "not a chat"),
    "sends choices that are none": (streaming(event({"choices": "x"})), "not a chat"),
    "sends a delta of another kind": (streaming(event({"choices": [{"delta": [1]}]})), "not a chat"),
    "sends a number for a text": (streaming(event({"choices": [{"delta": {"content": 5}}]})), "not a chat"),
    "sends depths": (streaming(b"data: " + b"[" * 100_000 + b"\n\n"), "not a chat"),
    "sends a line without an end": (streaming(b"data: ", b"x" * (2 * LINE_BYTES)), "without an end"),
    "never stops": (stalling(drip=chunk("word " * 50)), "more than 1000 characters"),
    "speaks no HTTP": (lambda exchange: exchange.send(b"hello\r\n"), "broke"),
    "hangs up": (lambda exchange: None, "broke"),
}


def test_failing_server_is_reported_with_a_sentence() -> None:
    for how, (script, words) in FAILING.items():
        failed = failure(script)
        assert words in str(failed), how
        assert not failed.is_timeout, how


def silent(exchange: Exchange) -> None:
    exchange.connection.recv(1)


#: Endless words, which only the total timeout stops.
STEADY = stalling(drip=chunk("a"))
STALLING: dict[str, Script] = {
    "never ends": STEADY,
    "takes the request and says nothing": silent,
    "says nothing behind the head": stalling(),
    "says nothing but comments": stalling(drip=b": still here\n\n"),
    "stops after a word": stalling(chunk("One")),
    "has nothing but comments after a word": stalling(chunk("One"), drip=b": still here\n\n"),
}


@pytest.mark.parametrize("script", STALLING.values(), ids=STALLING.keys())
def test_stalling_server_times_out(script: Script) -> None:
    limits = replace(LIMITS, total_s=0.5) if script is STEADY else HURRIED
    assert failure(script, limits).is_timeout


def test_unreachable_server_is_reported() -> None:
    with socket.socket() as taken:
        # Bound, so that no other program can listen on it.
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        for base_url in (f"http://127.0.0.1:{port}/v1", f"http://nowhere.invalid:{port}/v1"):
            with pytest.raises(LlmFailed, match=r"Nothing answers.*SVC_LLM_BASE_URL") as failed:
                ask(base_url)
            assert not failed.value.is_timeout
            assert "Nothing answers" in str(look(base_url))


def test_server_that_accepts_no_connection_times_out() -> None:
    with socket.socket() as full, ExitStack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        # Two connections fill its backlog; later ones are neither accepted nor refused.
        for each in [stack.enter_context(socket.socket()) for _ in range(4)]:
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        with pytest.raises(LlmFailed) as failed:
            ask(f"http://127.0.0.1:{full.getsockname()[1]}/v1", HURRIED)
        assert failed.value.is_timeout


WHICH_KEY = " Is its key in SVC_LLM_API_KEY_FILE or SVC_LLM_API_KEY?"


def test_look_reports_whether_the_server_is_reachable_and_accepts_the_key() -> None:
    for status, wrong in ((200, None), (404, None), (401, f"The model's server answered 401.{WHICH_KEY}")):
        with chatting(streaming(b"{}", status=status, content_type="application/json")) as server:
            assert look(server.url("/v1")) == wrong
        (request,) = server.requests
        assert (request.method, request.path) == ("GET", "/v1/models")
    with chatting(silent) as server:
        assert "does not answer" in str(look(server.url("/v1"), HURRIED))


def test_closing_the_answer_disconnects_from_the_server() -> None:
    gone: list[bytes] = []

    def script(exchange: Exchange) -> None:
        exchange.head(200, {"content-type": "text/event-stream", "connection": "close"})
        exchange.send(chunk("One"))
        gone.append(exchange.connection.recv(1))

    async def listen_once(base_url: str) -> None:
        async with opened(base_url) as client:
            async with aclosing(client.write(MESSAGES)) as pieces:
                await anext(pieces)
            # The client itself stays open.
            await asyncio.to_thread(wait_until, lambda: gone, "the server learns of it")

    with chatting(script) as server:
        asyncio.run(listen_once(server.url("/v1")))
    assert gone == [b""]


def test_stopping_an_answer_twice_ends_it_once_with_an_error() -> None:
    async def stop_twice(base_url: str) -> str:
        async with opened(base_url) as client, aclosing(client.write(MESSAGES)) as pieces:
            assert await anext(pieces) == "One"
            rest = asyncio.ensure_future(anext(pieces))
            await asyncio.sleep(0)
            client.stop()
            # The time limit expires in this pass of the loop; the answer ends in the next.
            await asyncio.sleep(0)
            assert not rest.done()
            client.stop()
            with pytest.raises(LlmFailed) as failed:
                await rest
            return str(failed.value)

    with chatting(stalling(chunk("One"))) as server:
        assert asyncio.run(stop_twice(server.url("/v1"))) == STOPPING


def test_client_ignores_proxies_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with chatting(streaming(saying("x"))) as server:
        assert ask(server.url("/v1"))[0] == "x"


def test_api_key_is_in_no_log_error_or_representation(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with chatting(streaming(saying("x"))) as server:
        ask(server.url("/v1"))
    failure(streaming(b"", status=401))
    assert KEY not in caplog.text
    assert KEY not in repr(LlmSettings(base_url="http://a/v1", model="m", api_key=KEY))
