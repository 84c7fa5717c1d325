"""Faults: the one map from exceptions to answers, in the service's envelope or in OpenAI's.

Every exception ends here as a ServiceError, and every ServiceError as one JSON answer. What nobody expected becomes
`internal_error`: its traceback goes to the log under the request's id, and not a word of it to the caller. When the
answer has begun nothing more can be said, and returning makes the server close the connection.
"""

import errno
import json
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svc_daemon.api.guards import FramingFault
from svc_daemon.api.openai_errors import is_openai_path, openai_error
from svc_daemon.api.request_ids import Header, request_id_of
from svc_daemon.core.problems import SENTENCES, find_lack
from svc_daemon.core.requests import refusals
from svc_daemon.errors import ERRORS, ServiceError, StorageError
from svc_daemon.wire import headers as named
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.scopes import faults_of

logger = logging.getLogger(__name__)

#: Fields of one model that are named in an answer; a body with a thousand faults is not told all of them.
MAX_ERRORS_TOLD = 20

#: Characters of a path that leads nowhere.
MAX_PATH_TOLD = 200

SHOULD_RETRY = named.SHOULD_RETRY.lower().encode()

#: What starlette itself raises, by status.
_OF_STATUS = {
    400: ErrorCode.INVALID_REQUEST,
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.METHOD_NOT_ALLOWED,
    413: ErrorCode.REQUEST_TOO_LARGE,
}
#: Errors of a disk that is not full, but takes nothing.
_DISK_ERRORS = frozenset((errno.EIO, errno.EROFS, errno.EFBIG))


@dataclass(frozen=True, slots=True)
class Answer:
    """An error as it goes on the wire."""

    status: int
    headers: list[Header]
    body: bytes


def answer_of(error: ServiceError, request_id: str, *, openai_style: bool = False) -> Answer:
    """The answer for an error, in the service's envelope or in OpenAI's, which has no request id in its body."""
    document = openai_error(error).model_dump() if openai_style else _document(error, request_id)
    # ASCII alone, so that a message that quotes half a surrogate pair can still be sent.
    body = json.dumps(document, default=str, separators=(",", ":")).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *_told_headers(error)]
    return Answer(error.rule.status, headers, body)


def service_error(error: Exception) -> ServiceError:
    """The error of the table that an exception is to the caller."""
    if isinstance(error, ServiceError):
        return error
    lack = find_lack(error)
    if lack or (isinstance(error, OSError) and error.errno in _DISK_ERRORS):
        message = SENTENCES[lack] if lack else "The disk refused; try again later."
        refused = StorageError(message, errno=getattr(error, "errno", None))
        refused.__cause__ = error
        return refused
    if isinstance(error, HTTPException) and error.status_code in _OF_STATUS:
        return ServiceError(_OF_STATUS[error.status_code])
    return ServiceError(ErrorCode.INTERNAL_ERROR, "Something unexpected went wrong; please quote the request id.")


def invalid_fields(error: ValidationError) -> ServiceError:
    """A 400 `invalid_request` with `details.errors: [{path, message}]`, never with the values that were sent."""
    return refusals(faults_of(error)[:MAX_ERRORS_TOLD])


async def pass_on(_request: Request, error: Exception) -> Response:
    """Handler for starlette's own table, which would answer its exceptions with text: leaves them to Faults."""
    raise error


class Faults:
    """Turns what the application raises into an answer."""

    def __init__(self, app: ASGIApp, openai_style: Callable[[str], bool] = is_openai_path) -> None:
        self.app = app
        #: Whether a path (as decoded by the server) answers its errors as OpenAI does.
        self.openai_style = openai_style

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = False

        async def send_watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receive, send_watched)
        except ClientDisconnect:
            logger.debug("the client went away")
        except Exception as error:
            told = service_error(error)
            if begun or told.code is ErrorCode.INTERNAL_ERROR:
                logger.exception("unexpected %s", type(error).__name__)
            elif told.code is ErrorCode.STORAGE_FULL and told.__cause__ is not None:
                logger.warning("answered with storage_full: %s", told.__cause__)
            if not begun:
                await self._answer(told, scope, send)

    async def _answer(self, told: ServiceError, scope: Scope, send: Send) -> None:
        if told.code is ErrorCode.NOT_FOUND and told.message == ERRORS[told.code].sentence:
            told = ServiceError(told.code, _nothing_at(scope["path"]))
        if told.code is ErrorCode.METHOD_NOT_ALLOWED:
            told.details.setdefault("allowed_methods", _allowed_methods(scope))
        answer = answer_of(told, request_id_of(scope), openai_style=self.openai_style(scope["path"]))
        await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
        await send({"type": "http.response.body", "body": answer.body})


def _nothing_at(path: str) -> str:
    """What is told of a path without a route, also of one that is closed to the caller."""
    # A client whose base URL has it twice or not at all can't be told otherwise what is wrong.
    return f"There is nothing at {path[:MAX_PATH_TOLD]!r}. The API's paths begin with /v1, once; /openapi.json has all."


def _allowed_methods(scope: Scope) -> list[str]:
    """Methods of every route of this path: starlette tells those of the first one alone."""
    routes = scope["router"].routes if "router" in scope else []
    partial = (route for route in routes if isinstance(route, Route) and route.matches(scope)[0] is Match.PARTIAL)
    return sorted({method for route in partial for method in route.methods or ()})


def _document(error: ServiceError, request_id: str) -> dict[str, Any]:
    return {"error": {**error.as_error(), "details": error.details}, "request_id": request_id}


def _told_headers(error: ServiceError) -> list[Header]:
    """Headers that HTTP wants beside a status; each says what the details say."""
    # OpenAI's clients obey it: without it they try 408, 409, 429 and every 5xx again.
    headers = [(SHOULD_RETRY, b"true" if error.rule.retryable else b"false")]
    if isinstance(error, FramingFault):
        headers.append((b"connection", b"close"))
    if error.rule.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if "retry_after_seconds" in error.details:
        headers.append((b"retry-after", b"%d" % max(1, math.ceil(error.details["retry_after_seconds"]))))
    if error.details.get("range"):
        # Where a resumable upload goes on from: its clients read the header.
        headers.append((b"range", error.details["range"].encode()))
    if "allowed_methods" in error.details:
        headers.append((b"allow", ", ".join(error.details["allowed_methods"]).encode()))
    return headers
