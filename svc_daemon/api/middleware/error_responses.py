"""Converts exceptions to responses, in the service's own error format or in OpenAI's.

An unexpected exception becomes `internal_error`, and its traceback is logged.
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

from svc_daemon.api.middleware.access_logs import ANSWERED_ERROR
from svc_daemon.api.middleware.guards import FramingFault
from svc_daemon.api.middleware.response_headers import Header, request_id_of
from svc_daemon.core.json_bodies import refusals
from svc_daemon.core.shortages import SENTENCES, find_shortage
from svc_daemon.errors import ERRORS, ServiceError, StorageError
from svc_daemon.wire.light import headers as names
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.errors import ErrorEnvelope, OpenAIError
from svc_daemon.wire.requests import faults_of

logger = logging.getLogger(__name__)

#: Maximum number of invalid fields in one error.
MAX_ERRORS_SHOWN = 20

#: Maximum number of characters of an unknown path in an error message.
MAX_PATH_SHOWN = 200

SHOULD_RETRY = names.SHOULD_RETRY.lower().encode()

#: The service's error codes for the HTTPExceptions that Starlette raises.
_OF_STATUS = {
    400: ErrorCode.INVALID_REQUEST,
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.METHOD_NOT_ALLOWED,
    413: ErrorCode.REQUEST_TOO_LARGE,
}
#: Disk errors other than a lack of space: a failing disk, files of another user, a network's folder that is gone.
_DISK_ERRORS = frozenset((errno.EIO, errno.EROFS, errno.EFBIG, errno.EACCES, errno.EPERM, errno.ESTALE, errno.ENOTDIR))

_OPENAI_PATHS = ("/v1/responses", "/v1/chat/completions", "/v1/models")
#: The `type` of an error in OpenAI's format.
_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An error response: its JSON body, status and headers."""

    status: int
    headers: list[Header]
    body: bytes


def response_of(error: ServiceError, request_id: str, *, openai_style: bool = False) -> ErrorResponse:
    """Build the response to an error. OpenAI's format has no request id in the body."""
    document: ErrorEnvelope | OpenAIError
    if openai_style:
        document = openai_error(error)
    else:
        document = {
            "error": {**error.as_error(), "details": error.details},
            "request_id": request_id,
        }
    # `json.dumps` escapes all but ASCII, so a message with half a surrogate pair can be sent too.
    body = json.dumps(document, default=str, separators=(",", ":")).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        # Without this header, OpenAI's clients would retry every request that failed with 408, 409, 429 or 5xx.
        (SHOULD_RETRY, b"true" if error.rule.retryable else b"false"),
    ]
    if isinstance(error, FramingFault):
        headers.append((b"connection", b"close"))
    if error.rule.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if "retry_after_seconds" in error.details:
        headers.append((b"retry-after", b"%d" % max(1, math.ceil(error.details["retry_after_seconds"]))))
    if error.details.get("range"):
        # Clients of resumable uploads continue at this offset.
        headers.append((b"range", error.details["range"].encode()))
    if "allowed_methods" in error.details:
        headers.append((b"allow", ", ".join(error.details["allowed_methods"]).encode()))
    return ErrorResponse(error.rule.status, headers, body)


def is_openai_path(path: str) -> bool:
    """Return whether the path belongs to the routes with OpenAI's API."""
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in _OPENAI_PATHS)


def openai_error(error: ServiceError) -> OpenAIError:
    """Convert an error to OpenAI's format. `param` is the path of the first invalid field."""
    if error.code is ErrorCode.RAG_QUOTA_EXCEEDED:
        kind = "insufficient_quota"
    elif error.rule.status >= 500:
        kind = "server_error"
    else:
        kind = _OPENAI_TYPES.get(error.rule.status, "invalid_request_error")
    fields = error.details.get("errors") or [{}]
    param = fields[0].get("path") or None
    return {"error": {"code": error.code, "message": error.message, "type": kind, "param": param}}


def service_error(error: Exception) -> ServiceError:
    """Convert any exception to the ServiceError that the caller gets."""
    if isinstance(error, ServiceError):
        return error
    shortage = find_shortage(error)
    if shortage or (isinstance(error, OSError) and error.errno in _DISK_ERRORS):
        message = SENTENCES[shortage] if shortage else "The disk refused; try again later."
        refused = StorageError(message, errno=getattr(error, "errno", None))
        refused.__cause__ = error
        return refused
    if isinstance(error, HTTPException) and error.status_code in _OF_STATUS:
        return ServiceError(_OF_STATUS[error.status_code])
    return ServiceError(ErrorCode.INTERNAL_ERROR, "Something unexpected went wrong; please quote the request id.")


def invalid_fields(error: ValidationError) -> ServiceError:
    """Create a 400 `invalid_request` with the paths and messages of invalid fields, without their values."""
    return refusals(faults_of(error)[:MAX_ERRORS_SHOWN])


async def raise_again(_request: Request, error: Exception) -> Response:
    """Raise the exception again, so that `ErrorResponses` answers it instead of Starlette."""
    raise error


class ErrorResponses:
    """Middleware that turns exceptions into responses."""

    def __init__(self, app: ASGIApp, openai_style: Callable[[str], bool] = is_openai_path) -> None:
        self.app = app
        #: Returns whether errors on a path have OpenAI's format.
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
            # Show the path in the message: the client's base URL may have /v1 twice or not at all.
            message = f"There is nothing at {path[:MAX_PATH_SHOWN]!r}."
            fault = ServiceError(
                fault.code, f"{message} The API's paths begin with /v1 once; /openapi.json lists them all."
            )
        if fault.code is ErrorCode.METHOD_NOT_ALLOWED:
            # List the methods of all routes with this path; Starlette would list only the methods of the first route.
            routes = scope["router"].routes if "router" in scope else []
            partial = [each for each in routes if isinstance(each, Route) and each.matches(scope)[0] is Match.PARTIAL]
            methods = sorted({method for route in partial for method in route.methods or ()})
            fault.details.setdefault("allowed_methods", methods)
        scope[ANSWERED_ERROR] = fault
        response = response_of(fault, request_id_of(scope), openai_style=self.openai_style(path))
        await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
        await send({"type": "http.response.body", "body": response.body})
