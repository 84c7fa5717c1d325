"""How JSON bodies are read."""

import json
from collections.abc import Iterator

import httpx
import pytest
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from svc_daemon.api.bodies import MAX_JSON_BYTES, read_json, read_model, read_optional_json, read_optional_model
from tests.api.servers import ask, connected, hardened, read_answer, serving

JSON = {"Content-Type": "application/json"}


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


ROUTES = [
    Route("/json", echo, methods=["POST"]),
    Route("/optional", echo_optional, methods=["POST"]),
    Route("/point", echo_point, methods=["POST"]),
    Route("/no-point", echo_no_point, methods=["POST"]),
]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(hardened(ROUTES)) as port:
        yield port


@pytest.fixture(scope="module")
def client(port: int) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        yield client


def told(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def document_of(size_bytes: int) -> bytes:
    """A JSON object of exactly this size."""
    return b'{"a":"' + b"x" * (size_bytes - 8) + b'"}'


def in_pieces(data: bytes, size_bytes: int = 50_000) -> Iterator[bytes]:
    """For httpx: a body of unknown length, sent in chunks."""
    for start in range(0, len(data), size_bytes):
        yield data[start : start + size_bytes]


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json; charset=utf-8", "Application/merge-patch+JSON"]
)
def test_json_is_read(client: httpx.Client, kind: str) -> None:
    answer = client.post("/json", content=b'{"a": [1]}', headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()) == (200, {"a": [1]})


@pytest.mark.parametrize(
    "kind", ["text/plain", "text/json", "application/x-www-form-urlencoded", "json", "text/a+json"]
)
def test_another_type_is_refused(client: httpx.Client, kind: str) -> None:
    answer = client.post("/json", content=b"{}", headers={"Content-Type": kind})
    assert told(answer) == (415, "unsupported_media_type")


def test_no_type_is_refused(client: httpx.Client) -> None:
    assert told(client.post("/json", content=b"{}")) == (415, "unsupported_media_type")


def test_a_compressed_body_is_refused(client: httpx.Client) -> None:
    answer = client.post("/json", content=b"{}", headers=JSON | {"Content-Encoding": "gzip"})
    assert told(answer) == (415, "unsupported_media_type")


@pytest.mark.parametrize("body", [b"", b"{", b'{"a": NaN}', b'{"a":1,"a":1}', b'{"a":"\xff"}'])
def test_what_is_not_json_is_refused(client: httpx.Client, body: bytes) -> None:
    assert told(client.post("/json", content=body, headers=JSON)) == (400, "invalid_json")


def test_the_largest_body_is_read_and_one_byte_more_is_not(client: httpx.Client) -> None:
    for content in (document_of(MAX_JSON_BYTES), in_pieces(document_of(MAX_JSON_BYTES))):
        assert client.post("/json", content=content, headers=JSON).status_code == 200
    for content in (document_of(MAX_JSON_BYTES + 1), in_pieces(document_of(MAX_JSON_BYTES + 1))):
        answer = client.post("/json", content=content, headers=JSON)
        assert told(answer) == (413, "request_too_large")
        assert answer.json()["error"]["details"] == {"max_bytes": MAX_JSON_BYTES}


def test_a_client_that_still_sends_sees_the_refusal(client: httpx.Client) -> None:
    endless = (b"x" * 65536 for _ in range(320))
    assert told(client.post("/json", content=endless, headers=JSON)) == (413, "request_too_large")


def test_a_client_that_waits_for_100_continue_gets_the_refusal_instead(port: int) -> None:
    head = b"POST /json HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
    answer = ask(port, head + b"Content-Length: 2000000\r\n\r\n")
    assert (answer.status, answer.code) == (413, "request_too_large")
    assert answer.headers["connection"] == "close"


def test_a_client_that_waits_for_100_continue_is_told_to_go_on(port: int) -> None:
    head = b"POST /json HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
    with connected(port) as client:
        client.sendall(head + b"Content-Length: 2\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 100 ")
        client.sendall(b"{}")
        assert read_answer(client).status == 200


def test_a_body_may_arrive_byte_by_byte(port: int) -> None:
    head = b"POST /json HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
    answer = ask(port, *(bytes([byte]) for byte in head + b'{"a": 12}'))
    assert answer.document == {"a": 12}


def test_a_body_cut_off_is_an_invalid_request(port: int) -> None:
    head = b"POST /json HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
    answer = ask(port, head + b'{"a":', shut=True)
    assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("document", "path"), [({"team_id": "t"}, "team_id"), ({"a": [{"team_id": None}]}, "a.0.team_id")]
)
def test_a_team_is_not_accepted(client: httpx.Client, document: dict[str, object], path: str) -> None:
    for text in (json.dumps(document), json.dumps(document).replace("team_id", "team\\u005fid")):
        answer = client.post("/json", content=text, headers=JSON)
        assert told(answer) == (400, "invalid_request")
        assert answer.json()["error"]["details"]["errors"][0]["path"] == path


def test_the_callers_own_data_may_name_a_team(client: httpx.Client) -> None:
    assert client.post("/json", json={"metadata": {"team_id": "t"}}).status_code == 200


def test_an_optional_body_may_be_missing(client: httpx.Client) -> None:
    assert client.post("/optional").json() == {}
    assert client.post("/optional", headers={"Content-Type": "text/plain"}).json() == {}
    assert client.post("/optional", content=_nothing()).json() == {}


def test_an_optional_body_that_is_there_is_judged(client: httpx.Client) -> None:
    assert client.post("/optional", json={"a": 1}).json() == {"a": 1}
    assert told(client.post("/optional", content=b"{}")) == (415, "unsupported_media_type")
    assert told(client.post("/optional", content=b"{", headers=JSON)) == (400, "invalid_json")


def test_a_model_is_read(client: httpx.Client) -> None:
    assert client.post("/point", json={"x": 1, "unknown": 2}).json() == {"x": 1, "y": 0}


@pytest.mark.parametrize("path", ["/point", "/no-point"])
def test_what_does_not_fit_a_model_is_told_by_path(client: httpx.Client, path: str) -> None:
    answer = client.post(path, json={"y": "far"})
    assert told(answer) == (400, "invalid_request")
    assert [error["path"] for error in answer.json()["error"]["details"]["errors"]] == ["x", "y"]


def test_a_connection_goes_on_after_a_refusal_whose_body_was_read(port: int) -> None:
    request = b"POST /json HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}"
    with connected(port) as client:
        for _ in range(3):
            client.sendall(request)
            assert read_answer(client).status == 415


def _nothing() -> Iterator[bytes]:
    yield from ()
