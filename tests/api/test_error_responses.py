"""Error responses of every kind, and the id of each request."""

import errno
import json
import logging
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from pydantic import BaseModel, TypeAdapter, field_validator
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from svc_daemon.api.bodies import parse_model
from svc_daemon.api.middleware.error_responses import response_of
from svc_daemon.core.json_bodies import refusals
from svc_daemon.errors import ERRORS, NotFound, ServiceError, StorageError
from svc_daemon.logs import REQUEST_ID
from svc_daemon.wire.light.error_codes import ErrorCode as E
from svc_daemon.wire.light.errors import ErrorEnvelope
from svc_daemon.wire.light.versions import API_RANGE, VERSION
from tests.acceptance.installations import wait_until
from tests.api.servers import connected, hardened, serving, serving_client

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


#: What a handler raises, by the path that has it raised, and the code that is answered.
RAISED: dict[str, tuple[Exception, E]] = {
    "table": (ServiceError(E.BUCKET_SLUG_EXISTS, "A bucket 'a' exists.", status="archived"), E.BUCKET_SLUG_EXISTS),
    "branch": (NotFound(E.SOURCE_NOT_FOUND), E.SOURCE_NOT_FOUND),
    "disk": (StorageError(), E.STORAGE_FULL),
    "read-only": (OSError(errno.EROFS, SECRET), E.STORAGE_FULL),
    "another user's": (PermissionError(errno.EACCES, SECRET), E.STORAGE_FULL),
    "descriptors": (OSError(errno.EMFILE, SECRET), E.STORAGE_FULL),
    "memory": (MemoryError(SECRET), E.STORAGE_FULL),
    "rate": (ServiceError(E.UPLOAD_RATE_LIMITED, retry_after_seconds=0.2), E.UPLOAD_RATE_LIMITED),
    "maintenance": (ServiceError(E.TEAM_STORE_MAINTENANCE, retry_after_seconds=61.5), E.TEAM_STORE_MAINTENANCE),
    "key": (ServiceError(E.INVALID_PROJECT_KEY), E.INVALID_PROJECT_KEY),
    "bug": (RuntimeError(SECRET), E.INTERNAL_ERROR),
    "teapot": (HTTPException(418, SECRET), E.INTERNAL_ERROR),
    "large": (HTTPException(413, SECRET), E.REQUEST_TOO_LARGE),
    "surrogate": (ServiceError(E.INVALID_REQUEST, "a \ud800 b", value={1, 2}), E.INVALID_REQUEST),
}
#: What else is promised of some of them: headers, and the beginning of the message.
HEADERS = {"rate": ("retry-after", "1"), "maintenance": ("retry-after", "62"), "key": ("www-authenticate", "Bearer")}
MESSAGES = {"table": "A bucket 'a' exists.", "descriptors": "No more files can be opened.", "memory": "There is"}
#: Clients that left while their body was read.
GONE: list[ClientDisconnect] = []


async def fail(request: Request) -> Response:
    raise RAISED[request.path_params["name"]][0]


async def check(request: Request) -> Response:
    return Response(parse_model({"age": SECRET, "name": "4"}, Person).name)


async def fail_midway(request: Request) -> Response:
    async def body() -> AsyncIterator[bytes]:
        yield b"begun"
        raise RuntimeError(SECRET)

    return StreamingResponse(body())


async def read(request: Request) -> Response:
    try:
        return Response(await request.body())
    except ClientDisconnect as error:
        GONE.append(error)
        raise


async def hello(request: Request) -> Response:
    return Response("hello")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    routes = [Route("/raise/{name}", fail, methods=["GET"]), Route("/raise/{name}", hello, methods=["DELETE"])]
    routes += [Route("/check", check), Route("/midway", fail_midway), Route("/read", read, methods=["POST"])]
    with serving(hardened([*routes, Route("/v1/responses/{name}", fail, methods=["POST"])])) as port:
        yield port


def envelope_of(answer: httpx.Response, code: E) -> ErrorEnvelope:
    """The whole shape of an error, against the table."""
    envelope = TypeAdapter(ErrorEnvelope).validate_python(answer.json(), extra="forbid")
    assert answer.headers["content-type"] == "application/json"
    assert envelope["request_id"] == answer.headers["x-request-id"]
    rule, error = ERRORS[code], envelope["error"]
    assert (error["code"], answer.status_code, error["retryable"]) == (code, rule.status, rule.retryable)
    return envelope


@pytest.mark.rule("error.retry-after")
@pytest.mark.parametrize("name", RAISED)
def test_an_exception_becomes_its_code_in_the_envelope(client: httpx.Client, name: str) -> None:
    answer = client.get(f"/raise/{name}")
    error = envelope_of(answer, RAISED[name][1])["error"]
    assert error["message"].startswith(MESSAGES.get(name, ""))
    header, value = HEADERS.get(name, ("content-type", "application/json"))
    assert answer.headers[header] == value
    assert "hunter2" not in answer.text
    assert "Traceback" not in answer.text
    if name == "table":
        assert error["details"] == {"status": "archived"}


@pytest.mark.rule("internal_error")
def test_an_unexpected_error_is_logged_with_its_traceback(
    client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.get("/raise/bug")
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert record.exc_info[1] is RAISED["bug"][0]
    client.get("/raise/read-only")
    assert f"answered with storage_full: [Errno {errno.EROFS}] {SECRET}" in caplog.text


def test_an_unknown_path_is_shown_by_its_beginning(client: httpx.Client) -> None:
    for path in ("/raise/bug/", "/" + "x" * 5000):
        answer = client.get(path)
        envelope_of(answer, E.NOT_FOUND)
        assert f"nothing at '{path[:100]}" in answer.text
        assert "begin with /v1" in answer.text
        assert len(answer.text) < 700


def test_invalid_fields_are_named_without_their_values(client: httpx.Client) -> None:
    answer = client.get("/check")
    errors = envelope_of(answer, E.INVALID_REQUEST)["error"]["details"]["errors"]
    assert [error["path"] for error in errors] == ["age", "name"]
    assert errors[1]["message"] == "must have letters."
    assert "hunter2" not in answer.text


def test_an_answer_that_has_begun_is_cut_off(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        client.get("/midway")
    wait_until(lambda: any(record.exc_info for record in caplog.records), "the traceback is logged")


def test_a_client_that_went_away_is_no_error(port: int, caplog: pytest.LogCaptureFixture) -> None:
    with connected(port) as client:
        client.sendall(b"POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf")
    wait_until(lambda: len(GONE) == 1, "the handler learns of it")
    assert isinstance(GONE[0], ClientDisconnect)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


KINDS = {
    E.INVALID_PROJECT_KEY: "authentication_error",
    E.MODEL_NOT_ALLOWED: "permission_error",
    E.MODEL_NOT_FOUND: "not_found_error",
    E.UPLOAD_RATE_LIMITED: "rate_limit_error",
    E.RAG_QUOTA_EXCEEDED: "insufficient_quota",
    E.INTERNAL_ERROR: "server_error",
    E.SEARCH_TIMEOUT: "server_error",
    E.INVALID_JSON: "invalid_request_error",
    E.BUCKET_STORE_INDEXING_PENDING: "invalid_request_error",
}


@pytest.mark.rule("error.openai")
@pytest.mark.parametrize("code", KINDS)
def test_openai_errors_have_a_type_for_each_code_and_the_first_wrong_field(code: E) -> None:
    error = json.loads(response_of(ServiceError(code), "req_1", openai_style=True).body)["error"]
    assert (error["type"], error["param"]) == (KINDS[code], None)
    two = refusals([("input.0.role", "must be user."), ("model", "is missing.")])
    assert json.loads(response_of(two, "req_1", openai_style=True).body)["error"]["param"] == "input.0.role"


@pytest.mark.rule("error.openai")
def test_openai_paths_answer_as_openai_does(client: httpx.Client) -> None:
    paths = ("/v1/models", "/v1/models/svc-agent:a", "/v1/chat/completions")
    for method, path in (("POST", "/v1/responses/table"), *(("GET", path) for path in paths)):
        answer = client.request(method, path)
        assert set(answer.json()) == {"error"}
        assert set(answer.json()["error"]) == {"code", "message", "type", "param"}
        assert answer.headers["x-should-retry"] == "false"
        assert answer.headers["x-request-id"].startswith("req_")
    for path in ("/v1/modelsx", "/v1/rag-agent/models"):
        assert "request_id" in client.get(path).json(), path


async def show(request: Request) -> JSONResponse:
    return JSONResponse({"state": request.state.request_id, "logged": REQUEST_ID.get()})


async def answer_or_fail(request: Request) -> JSONResponse:
    raise RuntimeError("unexpected")


@pytest.mark.rule("endpoint.request-id")
def test_every_response_has_a_new_request_id_that_handlers_and_logs_use() -> None:
    with serving_client(hardened([Route("/show", show), Route("/fail", answer_or_fail)])) as client:
        answers = [client.get("/show", headers={"X-Request-Id": "mine"}) for _ in range(3)]
        ids = [answer.headers["X-Request-Id"] for answer in answers]
        assert [answer.json() for answer in answers] == [{"state": each, "logged": each} for each in ids]
        assert (len(set(ids)), "mine" in ids) == (3, False)
        for path in ("/show", "/nowhere", "/fail"):
            headers = client.get(path).headers
            assert headers["X-Request-Id"].startswith("req_"), path
            assert (headers["Svc-Version"], headers["Svc-Api"]) == (VERSION, API_RANGE), path
