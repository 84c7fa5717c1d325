"""Faults: the one map from exceptions to responses, in the service's envelope or in OpenAI's.

Every exception ends here as a ServiceError, and every ServiceError as one JSON response. What was not expected becomes
`internal_error`: its traceback is logged under the request's id, and none of it is shown to the caller. Once the
response has begun nothing more can be sent, and returning makes the server close the connection.

On the routes that OpenAI's clients call, errors have the shape that these clients read (specification, Errors):
`{"error": {"code", "message", "type", "param"}}` and nothing beside it. The request's id is in a header of every
response, and whether to retry in one of every error.
"""

import errno
import json
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svc_daemon.api.layers.guards import FramingFault
from svc_daemon.api.layers.response_headers import Header, request_id_of
from svc_daemon.core.problems import SENTENCES, find_lack
from svc_daemon.core.requests import refusals
from svc_daemon.errors import ERRORS, ServiceError, StorageError
from svc_daemon.wire import headers as names
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.errors import OpenAIError, OpenAIErrorBody
from svc_daemon.wire.scopes import faults_of

logger = logging.getLogger(__name__)

#: Fields of one model that an error names; a body with a thousand faults does not get all of them back.
MAX_ERRORS_SHOWN = 20

#: Characters of a path that leads nowhere.
MAX_PATH_SHOWN = 200

SHOULD_RETRY = names.SHOULD_RETRY.lower().encode()

#: What starlette itself raises, by status.
_OF_STATUS = {
    400: ErrorCode.INVALID_REQUEST,
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.METHOD_NOT_ALLOWED,
    413: ErrorCode.REQUEST_TOO_LARGE,
}
#: Errors of a disk that is not full, but can't be written.
_DISK_ERRORS = frozenset((errno.EIO, errno.EROFS, errno.EFBIG))

_OPENAI_PATHS = ("/v1/responses", "/v1/chat/completions", "/v1/models")
#: OpenAI's word for the kind of error, by status.
_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An error as it is sent."""

    status: int
    headers: list[Header]
    body: bytes


def response_of(error: ServiceError, request_id: str, *, openai_style: bool = False) -> ErrorResponse:
    """The response to an error, in the service's envelope or in OpenAI's, which has no request id in its body."""
    if openai_style:
        document = openai_error(error).model_dump()
    else:
        document = {"error": {**error.as_error(), "details": error.details}, "request_id": request_id}
    # ASCII only, so that a message that quotes half a surrogate pair can still be sent.
    body = json.dumps(document, default=str, separators=(",", ":")).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        # OpenAI's clients obey it: without it they retry 408, 409, 429 and every 5xx.
        (SHOULD_RETRY, b"true" if error.rule.retryable else b"false"),
    ]
    if isinstance(error, FramingFault):
        headers.append((b"connection", b"close"))
    if error.rule.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if "retry_after_seconds" in error.details:
        headers.append((b"retry-after", b"%d" % max(1, math.ceil(error.details["retry_after_seconds"]))))
    if error.details.get("range"):
        # The offset from which a resumable upload continues: its clients read the header.
        headers.append((b"range", error.details["range"].encode()))
    if "allowed_methods" in error.details:
        headers.append((b"allow", ", ".join(error.details["allowed_methods"]).encode()))
    return ErrorResponse(error.rule.status, headers, body)


def is_openai_path(path: str) -> bool:
    """Whether OpenAI's own client calls this path and expects errors of its shape there."""
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in _OPENAI_PATHS)


def openai_error(error: ServiceError) -> OpenAIError:
    """The error in OpenAI's shape; `param` is the first field that it is about."""
    if error.code is ErrorCode.RAG_QUOTA_EXCEEDED:
        kind = "insufficient_quota"
    elif error.rule.status >= 500:
        kind = "server_error"
    else:
        kind = _OPENAI_TYPES.get(error.rule.status, "invalid_request_error")
    fields = error.details.get("errors") or [{}]
    body = OpenAIErrorBody(code=error.code, message=error.message, type=kind, param=fields[0].get("path") or None)
    return OpenAIError(error=body)


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
    return refusals(faults_of(error)[:MAX_ERRORS_SHOWN])


async def raise_again(_request: Request, error: Exception) -> Response:
    """Handler for starlette's own table, which would answer its exceptions with text: leaves them to Faults."""
    raise error


class Faults:
    """Turns what the application raises into a response."""

    def __init__(self, app: ASGIApp, openai_style: Callable[[str], bool] = is_openai_path) -> None:
        self.app = app
        #: Whether the errors of a path (as decoded by the server) have OpenAI's shape.
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
            fault = service_error(error)
            if begun or fault.code is ErrorCode.INTERNAL_ERROR:
                logger.exception("unexpected %s", type(error).__name__)
            elif fault.code is ErrorCode.STORAGE_FULL and fault.__cause__ is not None:
                logger.warning("answered with storage_full: %s", fault.__cause__)
            if not begun:
                await self._respond(fault, scope, send)

    async def _respond(self, fault: ServiceError, scope: Scope, send: Send) -> None:
        path = scope["path"]
        if fault.code is ErrorCode.NOT_FOUND and fault.message == ERRORS[fault.code].sentence:
            # Also for a path that is closed to the caller. A client whose base URL has /v1 twice or not at all finds
            # out from this what is wrong.
            message = f"There is nothing at {path[:MAX_PATH_SHOWN]!r}."
            fault = ServiceError(fault.code, f"{message} The API's paths begin with /v1, once; /openapi.json has all.")
        if fault.code is ErrorCode.METHOD_NOT_ALLOWED:
            # Of every route of this path: starlette names the methods of the first one only.
            routes = scope["router"].routes if "router" in scope else []
            partial = [each for each in routes if isinstance(each, Route) and each.matches(scope)[0] is Match.PARTIAL]
            methods = sorted({method for route in partial for method in route.methods or ()})
            fault.details.setdefault("allowed_methods", methods)
        response = response_of(fault, request_id_of(scope), openai_style=self.openai_style(path))
        await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
        await send({"type": "http.response.body", "body": response.body})
