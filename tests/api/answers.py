"""The one shape of every answer, and of every error, of the whole API."""

import re
from typing import Any

import httpx

from svc_daemon.api.middleware.error_responses import is_openai_path
from svc_daemon.errors import ERRORS
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.versions import API_RANGE, VERSION

_REQUEST_ID = re.compile(r"req_[0-9a-z]{26}")


def body_of(answer: httpx.Response, status: int = 200) -> dict[str, Any]:
    """The body of a success; it has the request's id, as the header has."""
    assert answer.status_code == status, answer.text
    return _identified(answer)


def without_id(body: dict[str, Any]) -> dict[str, Any]:
    """The body less the id of its request, which no two answers share."""
    return {name: value for name, value in body.items() if name != "request_id"}


def details_of(answer: httpx.Response, code: str) -> dict[str, Any]:
    """The details of a refusal with this code; status, envelope and headers are those of the table.

    OpenAI's envelope has none but the field that is wrong, as `param`.
    """
    document = answer.json()
    rule = ERRORS[ErrorCode(document["error"]["code"])]
    assert (document["error"]["code"], answer.status_code) == (code, rule.status), answer.text
    assert document["error"]["message"]
    assert answer.headers["Content-Type"] == "application/json"
    assert (rule.status == 401) is ("WWW-Authenticate" in answer.headers)
    assert answer.headers["X-Should-Retry"] == str(rule.retryable).lower()
    if is_openai_path(answer.request.url.path):
        return _details_as_openai_has_them(answer)
    document = _identified(answer)
    assert set(document) == {"error", "request_id"}
    assert set(document["error"]) == {"code", "message", "retryable", "details"}
    assert document["error"]["retryable"] is rule.retryable
    details = document["error"]["details"]
    assert ("retry_after_seconds" in details) == ("Retry-After" in answer.headers)
    return dict(details)


def _details_as_openai_has_them(answer: httpx.Response) -> dict[str, Any]:
    document = answer.json()
    assert _REQUEST_ID.fullmatch(answer.headers["X-Request-Id"])
    assert set(document) == {"error"}
    assert set(document["error"]) == {"code", "message", "type", "param"}
    return {"param": document["error"]["param"]}


def refused_field(answer: httpx.Response) -> str:
    """The path of the one field that an `invalid_request` is about."""
    (error,) = details_of(answer, "invalid_request")["errors"]
    assert error["message"]
    return str(error["path"])


def refused_param(answer: httpx.Response) -> str | None:
    """The same of a route that answers as OpenAI does."""
    param: str | None = details_of(answer, "invalid_request")["param"]
    return param


def _identified(answer: httpx.Response) -> dict[str, Any]:
    document = answer.json()
    assert isinstance(document, dict)
    assert _REQUEST_ID.fullmatch(answer.headers["X-Request-Id"])
    assert document["request_id"] == answer.headers["X-Request-Id"]
    assert (answer.headers["Svc-Version"], answer.headers["Svc-Api"]) == (VERSION, API_RANGE)
    return document
