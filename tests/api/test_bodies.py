"""Bodies and query parameters of requests: what is read, and what is refused."""

import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from svc_daemon.api.bodies import MAX_JSON_BYTES, read_json, read_model, read_optional_json, read_optional_model
from svc_daemon.api.middleware.guards import ClientLimits
from svc_daemon.api.requests import flag, whole_number
from svc_daemon.errors import ServiceError
from tests.api.servers import (
    ask,
    client_of,
    connected,
    count,
    hardened,
    in_pieces,
    is_closed,
    post,
    read_answer,
    serving,
)

JSON = {"Content-Type": "application/json"}
UNSUPPORTED, NOT_JSON, INVALID = (415, "unsupported_media_type"), (400, "invalid_json"), (400, "invalid_request")
TOO_LARGE, LATE = (413, "request_too_large"), (408, "request_timeout")
LIMITS = ClientLimits(body_grace_s=0.3, body_bytes_per_s=10_000, body_total_s=1.5)
#: Of a server whose clients may come to a standstill for a while, as on a busy machine.
PATIENT = ClientLimits(body_grace_s=1, body_bytes_per_s=100)
#: What a handler has seen of bodies that were given up.
KEPT: list[bytes] = []


class Point(BaseModel):
    x: int
    y: int = 0


async def echo(request: Request) -> JSONResponse:
    return JSONResponse(await read_json(request))


async def echo_optional(request: Request) -> JSONResponse:
    return JSONResponse(await read_optional_json(request))


async def echo_point(request: Request) -> JSONResponse:
    return JSONResponse((await read_model(request, Point)).model_dump())


async def echo_no_point(request: Request) -> JSONResponse:
    return JSONResponse((await read_optional_model(request, Point)).model_dump())


async def keep(request: Request) -> JSONResponse:
    data = b""
    try:
        async for chunk in request.stream():
            data += chunk
    except ServiceError:
        KEPT.append(data)
        raise
    return JSONResponse({})


async def think(request: Request) -> JSONResponse:
    """Takes longer than the grace between two chunks."""
    size = 0
    async for chunk in request.stream():
        await asyncio.sleep(0.2)
        size += len(chunk)
    return JSONResponse({"size": size})


async def wait_for_the_end(request: Request) -> JSONResponse:
    """Reads the body, then waits for the client to leave, for longer than a body may take."""
    await request.body()
    try:
        async with asyncio.timeout(0.5):
            await request.receive()
    except TimeoutError:
        return JSONResponse({"waited": True})
    return JSONResponse({"waited": False})


HANDLERS = {"json": echo, "optional": echo_optional, "point": echo_point, "no-point": echo_no_point}
SLOW = {"count": count, "keep": keep, "think": think, "wait": wait_for_the_end}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(hardened([Route(f"/{name}", each, methods=["POST"]) for name, each in HANDLERS.items()])) as port:
        yield port


@pytest.fixture(scope="module")
def hurried() -> Iterator[int]:
    """The port of a server that gives bodies little time."""
    with limiting(LIMITS) as port:
        yield port


@contextmanager
def limiting(limits: ClientLimits) -> Iterator[int]:
    routes = [Route(f"/{name}", each, methods=["POST"]) for name, each in SLOW.items()]
    with serving(hardened(routes, limits=limits), limits) as port:
        yield port


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def head(path: str, size_bytes: int, *headers: str) -> bytes:
    return post(path, size_bytes, "Content-Type: application/json", *headers)


def document_of(size_bytes: int) -> bytes:
    """A JSON object of exactly this size."""
    return b'{"a":"' + b"x" * (size_bytes - 8) + b'"}'


def test_json_is_read_and_no_other_type_or_coding(client: httpx.Client) -> None:
    for kind in ("application/json", "application/json; charset=utf-8", "Application/merge-patch+JSON"):
        assert client.post("/json", content=b'{"a": [1]}', headers={"Content-Type": kind}).json() == {"a": [1]}
    others = ("text/plain", "text/json", "application/x-www-form-urlencoded", "json", "text/a+json")
    for headers in ({}, JSON | {"Content-Encoding": "gzip"}, *({"Content-Type": kind} for kind in others)):
        assert refusal(client.post("/json", content=b"{}", headers=headers)) == UNSUPPORTED, headers
    for body in (b"", b"{", b'{"a": NaN}', b'{"a":1,"a":1}', b'{"a":"\xff"}'):
        assert refusal(client.post("/json", content=body, headers=JSON)) == NOT_JSON, body


def test_the_largest_body_is_read_and_one_byte_more_is_not(client: httpx.Client) -> None:
    largest, larger = document_of(MAX_JSON_BYTES), document_of(MAX_JSON_BYTES + 1)
    for content in (largest, in_pieces(largest)):
        assert client.post("/json", content=content, headers=JSON).status_code == 200
    for content in (larger, in_pieces(larger), (b"x" * 65536 for _ in range(320))):
        answer = client.post("/json", content=content, headers=JSON)
        assert refusal(answer) == TOO_LARGE
        assert answer.json()["error"]["details"] == {"max_bytes": MAX_JSON_BYTES}


def test_a_client_that_waits_for_100_continue_gets_it_or_the_refusal(port: int) -> None:
    answer = ask(port, head("/json", 2_000_000, "Expect: 100-continue"))
    assert ((answer.status, answer.code), answer.headers["connection"]) == (TOO_LARGE, "close")
    with connected(port) as client:
        client.sendall(head("/json", 2, "Expect: 100-continue"))
        assert client.recv(100).startswith(b"HTTP/1.1 100 ")
        client.sendall(b"{}")
        assert read_answer(client).status == 200


def test_a_body_may_arrive_byte_by_byte_and_must_be_whole(port: int) -> None:
    assert ask(port, *(bytes([byte]) for byte in head("/json", 9) + b'{"a": 12}')).document == {"a": 12}
    answer = ask(port, head("/json", 9) + b'{"a":', shut=True)
    assert (answer.status, answer.code) == INVALID


@pytest.mark.rule("auth.team")
def test_a_team_is_accepted_in_the_callers_own_data_alone(client: httpx.Client) -> None:
    assert client.post("/json", json={"metadata": {"team_id": "t"}}).status_code == 200
    for document, path in (({"team_id": "t"}, "team_id"), ({"a": [{"team_id": None}]}, "a.0.team_id")):
        text = json.dumps(document)
        for content in (text, text.replace("team_id", "team\\u005fid")):
            answer = client.post("/json", content=content, headers=JSON)
            assert refusal(answer) == INVALID
            assert answer.json()["error"]["details"]["errors"][0]["path"] == path


def test_an_optional_body_may_be_missing_and_is_judged_if_it_is_there(client: httpx.Client) -> None:
    for options in ({}, {"headers": {"Content-Type": "text/plain"}}, {"content": iter(())}):
        assert client.post("/optional", **options).json() == {}
    assert client.post("/optional", json={"a": 1}).json() == {"a": 1}
    assert refusal(client.post("/optional", content=b"{}")) == UNSUPPORTED
    assert refusal(client.post("/optional", content=b"{", headers=JSON)) == NOT_JSON


def test_what_does_not_fit_a_model_is_refused_by_path(client: httpx.Client) -> None:
    assert client.post("/point", json={"x": 1, "unknown": 2}).json() == {"x": 1, "y": 0}
    for path in ("/point", "/no-point"):
        assert refusal(client.post(path, json=[])) == INVALID
        answer = client.post(path, json={"y": "far"})
        assert refusal(answer) == INVALID
        assert [error["path"] for error in answer.json()["error"]["details"]["errors"]] == ["x", "y"]


def test_a_connection_goes_on_after_a_refusal_whose_body_was_read(port: int) -> None:
    with connected(port) as client:
        for _ in range(3):
            client.sendall(head("/json", 2).replace(b"application/json", b"text/plain") + b"{}")
            assert read_answer(client).status == 415


def in_steps(size_bytes: int, step_bytes: int, pause_s: float) -> Iterator[bytes]:
    """A slow client's body: the pause is what is tested."""
    for _ in range(size_bytes // step_bytes):
        yield b"x" * step_bytes
        time.sleep(pause_s)


def test_a_body_that_stops_is_timed_out(hurried: int) -> None:
    answer = ask(hurried, head("/keep", 100) + b"kept")
    assert ((answer.status, answer.code), answer.headers["connection"]) == (LATE, "close")
    assert answer.document["error"]["retryable"] is True
    # What came in time is the handler's to keep.
    assert KEPT == [b"kept"]


def test_a_body_below_its_pace_is_timed_out(hurried: int) -> None:
    answer = ask(hurried, head("/count", 10_000), *in_steps(400, 10, 0.01))
    assert (answer.status, answer.code) == LATE


def test_no_body_may_take_longer_than_the_whole_time(hurried: int) -> None:
    began = time.monotonic()
    with connected(hurried) as client:
        client.sendall(head("/count", 100_000_000))
        for _ in itertools.takewhile(lambda _: time.monotonic() - began < LIMITS.body_total_s, itertools.count()):
            # So fast that its pace alone would give it a minute.
            client.sendall(b"x" * 20_000)
            time.sleep(0.05)
        assert read_answer(client).code == "request_timeout"


def test_a_good_pace_and_the_handlers_own_time_cost_no_body_its_answer(hurried: int) -> None:
    with limiting(PATIENT) as port, client_of(port) as client:
        # For longer than the grace; each step gives it 16 s more.
        assert client.post("/count", content=in_steps(24_000, 1600, 0.1)).json() == {"size": 24_000}
        assert client.post("/think", content=b"x" * 300_000).json() == {"size": 300_000}
    assert ask(hurried, head("/wait", 1) + b"x").document == {"waited": True}


def test_a_body_that_nobody_reads_ends_with_its_connection(hurried: int) -> None:
    with connected(hurried) as client:
        client.sendall(head("/nowhere", 1000) + b"x")
        assert read_answer(client).headers["connection"] == "close"
        assert is_closed(client)


FLAGS = {"true": True, "TRUE": True, "1": True, "false": False, "False": False, "0": False, "": False, None: False}
NUMBERS = {"0": 0, "10": 10, "007": 7, "9" * 18: int("9" * 18)}
NO_NUMBERS = ("", "-1", "+1", "1.0", " 1", "1_0", "٣", "1e3", "0x1", "9" * 19, "9" * 5000)


def test_flag_is_true_false_1_or_0_and_any_other_value_is_refused() -> None:
    assert {text: flag("dry_run", text) for text in FLAGS} == FLAGS
    for text in ("yes", "no", "2", "tru", " true", "on"):
        with pytest.raises(ServiceError, match="dry_run") as caught:
            flag("dry_run", text)
        assert caught.value.code == "invalid_request", text


def test_whole_number_is_parsed_and_any_other_text_is_returned_unchanged() -> None:
    assert {text: whole_number(text) for text in NUMBERS} == NUMBERS
    assert tuple(whole_number(text) for text in NO_NUMBERS) == NO_NUMBERS
