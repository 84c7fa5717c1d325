"""What a raised exception becomes on the wire."""

import errno
import json
import logging
from collections.abc import AsyncIterator, Iterator
from itertools import product

import httpx
import pytest
from pydantic import BaseModel, field_validator
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from svc_daemon.api.bodies import parse_model
from svc_daemon.api.layers.faults import is_openai_path, response_of
from svc_daemon.core.requests import refusals
from svc_daemon.errors import ERRORS, NotFound, ServiceError, StorageError
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.errors import ErrorEnvelope
from tests.api.servers import connected, hardened, serving, wait_until

SECRET = "the password is hunter2"


class Person(BaseModel):
    """A model with one rule of pydantic's and one of its own."""

    age: int
    name: str

    @field_validator("name")
    @classmethod
    def has_letters(cls, name: str) -> str:
        if not name.isalpha():
            raise ValueError("must have letters")
        return name


RAISED: dict[str, Exception] = {
    "table": ServiceError(ErrorCode.BUCKET_SLUG_EXISTS, "A bucket 'a' exists.", status="archived"),
    "branch": NotFound(ErrorCode.SOURCE_NOT_FOUND),
    "disk": StorageError(),
    "read-only": OSError(errno.EROFS, SECRET),
    "descriptors": OSError(errno.EMFILE, SECRET),
    "memory": MemoryError(SECRET),
    "rate": ServiceError(ErrorCode.UPLOAD_RATE_LIMITED, retry_after_seconds=0.2),
    "maintenance": ServiceError(ErrorCode.TEAM_STORE_MAINTENANCE, retry_after_seconds=61.5),
    "key": ServiceError(ErrorCode.INVALID_PROJECT_KEY),
    "bug": RuntimeError(SECRET),
    "teapot": HTTPException(418, SECRET),
    "large": HTTPException(413, SECRET),
    "surrogate": ServiceError(ErrorCode.INVALID_REQUEST, "a \ud800 b", value={1, 2}),
}


async def fail(request: Request) -> Response:
    raise RAISED[request.path_params["name"]]


async def check(request: Request) -> Response:
    return Response(parse_model({"age": SECRET, "name": "4"}, Person).name)


async def fail_midway(request: Request) -> Response:
    async def body() -> AsyncIterator[bytes]:
        yield b"begun"
        raise RuntimeError(SECRET)

    return StreamingResponse(body())


#: Clients that left while their body was read.
GONE: list[ClientDisconnect] = []


async def read(request: Request) -> Response:
    try:
        return Response(await request.body())
    except ClientDisconnect as error:
        GONE.append(error)
        raise


async def hello(request: Request) -> Response:
    return Response("hello")


ROUTES = [
    Route("/raise/{name}", fail, methods=["GET"]),
    Route("/raise/{name}", hello, methods=["DELETE"]),
    Route("/check", check),
    Route("/midway", fail_midway),
    Route("/read", read, methods=["POST"]),
    Route("/v1/responses/{name}", fail, methods=["POST"]),
]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(hardened(ROUTES)) as port:
        yield port


@pytest.fixture(scope="module")
def client(port: int) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        yield client


def assert_envelope(answer: httpx.Response, code: ErrorCode) -> ErrorEnvelope:
    """The whole shape of an error, against the table."""
    envelope = ErrorEnvelope.model_validate(answer.json())
    assert answer.headers["content-type"] == "application/json"
    assert envelope.request_id == answer.headers["x-request-id"]
    assert (envelope.error.code, answer.status_code) == (code, ERRORS[code].status)
    assert envelope.error.retryable is ERRORS[code].retryable
    assert set(answer.json()) == {"error", "request_id"}
    assert set(answer.json()["error"]) == {"code", "message", "retryable", "details"}
    return envelope


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("table", ErrorCode.BUCKET_SLUG_EXISTS),
        ("branch", ErrorCode.SOURCE_NOT_FOUND),
        ("disk", ErrorCode.STORAGE_FULL),
        ("read-only", ErrorCode.STORAGE_FULL),
        ("descriptors", ErrorCode.STORAGE_FULL),
        ("memory", ErrorCode.STORAGE_FULL),
        ("bug", ErrorCode.INTERNAL_ERROR),
        ("teapot", ErrorCode.INTERNAL_ERROR),
        ("large", ErrorCode.REQUEST_TOO_LARGE),
        ("surrogate", ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_exception_becomes_its_code_in_the_envelope(client: httpx.Client, name: str, code: ErrorCode) -> None:
    assert_envelope(client.get(f"/raise/{name}"), code)


def test_message_and_details_are_told(client: httpx.Client) -> None:
    envelope = assert_envelope(client.get("/raise/table"), ErrorCode.BUCKET_SLUG_EXISTS)
    assert envelope.error.message == "A bucket 'a' exists."
    assert envelope.error.details == {"status": "archived"}


@pytest.mark.parametrize("name", ["bug", "teapot", "large"])
def test_an_unexpected_text_is_not_told(client: httpx.Client, name: str) -> None:
    answer = client.get(f"/raise/{name}")
    assert "hunter2" not in answer.text
    assert "Traceback" not in answer.text


def test_an_unexpected_error_is_logged_with_its_traceback(
    client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.get("/raise/bug")
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert record.exc_info[1] is RAISED["bug"]


def test_what_the_disk_refused_is_in_the_log_and_not_in_the_answer(
    client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    assert "hunter2" not in client.get("/raise/read-only").text
    assert f"answered with storage_full: [Errno {errno.EROFS}] {SECRET}" in caplog.text


@pytest.mark.parametrize(("name", "message"), [("descriptors", "No more files can be opened."), ("memory", "There is")])
def test_a_shortage_is_named_in_the_answer(client: httpx.Client, name: str, message: str) -> None:
    assert assert_envelope(client.get(f"/raise/{name}"), ErrorCode.STORAGE_FULL).error.message.startswith(message)


@pytest.mark.parametrize("path", ["/nowhere", "/raise", "/raise/bug/"])
def test_an_unknown_path_has_the_envelope(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert_envelope(answer, ErrorCode.NOT_FOUND)
    assert f"nothing at {path!r}" in answer.text
    assert "begin with /v1" in answer.text


def test_of_a_long_path_that_leads_nowhere_the_beginning_is_told(client: httpx.Client) -> None:
    answer = client.get("/" + "x" * 5000)
    assert_envelope(answer, ErrorCode.NOT_FOUND)
    assert len(answer.text) < 700


def test_a_wrong_method_tells_those_of_every_route(client: httpx.Client) -> None:
    answer = client.post("/raise/bug")
    assert_envelope(answer, ErrorCode.METHOD_NOT_ALLOWED)
    assert answer.headers["allow"] == "DELETE, GET, HEAD"


@pytest.mark.parametrize(("name", "seconds"), [("rate", "1"), ("maintenance", "62")])
def test_retry_after_is_whole_seconds_and_never_too_soon(client: httpx.Client, name: str, seconds: str) -> None:
    assert client.get(f"/raise/{name}").headers["retry-after"] == seconds


def test_a_missing_key_names_the_scheme(client: httpx.Client) -> None:
    assert client.get("/raise/key").headers["www-authenticate"] == "Bearer"


def test_invalid_fields_are_told_without_their_values(client: httpx.Client) -> None:
    answer = client.get("/check")
    envelope = assert_envelope(answer, ErrorCode.INVALID_REQUEST)
    assert [error["path"] for error in envelope.error.details["errors"]] == ["age", "name"]
    assert envelope.error.details["errors"][1]["message"] == "must have letters."
    assert "hunter2" not in answer.text


def test_an_answer_that_has_begun_is_cut_off(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        client.get("/midway")
    wait_until(lambda: any(record.exc_info for record in caplog.records), "the traceback is logged")


def test_a_client_that_went_away_is_no_error(port: int, caplog: pytest.LogCaptureFixture) -> None:
    with connected(port) as client:
        client.sendall(b"POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf")
    wait_until(lambda: len(GONE) == 1, "the handler is told")
    assert isinstance(GONE[0], ClientDisconnect)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_openai_errors_have_a_type_for_each_code() -> None:
    cases: list[tuple[ErrorCode, str]] = [
        (ErrorCode.INVALID_PROJECT_KEY, "authentication_error"),
        (ErrorCode.MODEL_NOT_ALLOWED, "permission_error"),
        (ErrorCode.MODEL_NOT_FOUND, "not_found_error"),
        (ErrorCode.UPLOAD_RATE_LIMITED, "rate_limit_error"),
        (ErrorCode.RAG_QUOTA_EXCEEDED, "insufficient_quota"),
        (ErrorCode.INTERNAL_ERROR, "server_error"),
        (ErrorCode.SEARCH_TIMEOUT, "server_error"),
        (ErrorCode.INVALID_JSON, "invalid_request_error"),
        (ErrorCode.BUCKET_STORE_INDEXING_PENDING, "invalid_request_error"),
    ]
    for code, kind in cases:
        body = response_of(ServiceError(code), "req_1", openai_style=True).body
        assert f'"type":"{kind}"'.encode() in body


def test_every_error_says_whether_to_retry() -> None:
    for code, openai_style in product(ErrorCode, [True, False]):
        headers = dict(response_of(ServiceError(code), "req_1", openai_style=openai_style).headers)
        assert headers[b"x-should-retry"] == str(ERRORS[code].retryable).lower().encode()


def test_an_openai_error_names_the_first_field_that_is_wrong() -> None:
    error = refusals([("input.0.role", "must be user."), ("model", "is missing.")])
    document = json.loads(response_of(error, "req_1", openai_style=True).body)
    assert document["error"]["param"] == "input.0.role"


def test_an_openai_error_about_no_field_says_so() -> None:
    document = json.loads(response_of(ServiceError(ErrorCode.INVALID_JSON), "req_1", openai_style=True).body)
    assert document["error"]["param"] is None


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/responses/table"), ("GET", "/v1/models"), ("POST", "/v1/chat/completions")]
)
def test_openai_paths_answer_as_openai_does(client: httpx.Client, method: str, path: str) -> None:
    answer = client.request(method, path)
    assert set(answer.json()) == {"error"}
    assert set(answer.json()["error"]) == {"code", "message", "type", "param"}
    assert answer.headers["x-should-retry"] == "false"
    assert answer.headers["x-request-id"].startswith("req_")


def test_which_paths_are_openais() -> None:
    cases: list[tuple[str, bool]] = [
        ("/v1/models", True),
        ("/v1/models/svc-agent:a", True),
        ("/v1/responses", True),
        ("/v1/chat/completions", True),
        ("/v1/modelsx", False),
        ("/v1/rag-agent/models", False),
        ("/v1/search", False),
        ("/", False),
    ]
    for path, is_openai in cases:
        assert is_openai_path(path) is is_openai
