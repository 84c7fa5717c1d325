"""The interface by which MCP tools call the API. Each MCP server implements the interface."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol
from urllib.parse import quote

from pydantic import ValidationError

from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.errors import ErrorBody, shorten, shorten_all
from svc_daemon.wire.requests import faults_of

#: Maximum number of invalid arguments in an error.
MOST_ERRORS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One API request."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    #: The JSON body, if any.
    body: Mapping[str, Any] | None = None
    #: With this key, a create request can be repeated safely; None for other requests.
    idempotency_key: str | None = None
    #: Maximum seconds to wait for the beginning of the response.
    silence_s: float = 60.0


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """A successful response."""

    body: dict[str, Any]
    #: Whether this is the response to an earlier call with the same idempotency key.
    is_replay: bool = False


@dataclass(frozen=True)
class File:
    """A file to upload, held completely in memory."""

    name: str
    data: bytes

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()


class CallFailed(Exception):
    """Raised if a call fails; has the API's `error` object and the request id."""

    def __init__(self, error: Mapping[str, Any], request_id: str | None = None) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.error = dict(error)
        self.request_id = request_id

    @property
    def code(self) -> str:
        return str(self.error["code"])

    def envelope(self) -> dict[str, Any]:
        """Build an error response like the API's."""
        return {"error": self.error, "request_id": self.request_id}


class ToolService(Protocol):
    """Calls the API for one caller, with the permissions of the caller's key."""

    async def call(self, call: Call) -> CallAnswer:
        """Make a call. Raises CallFailed."""
        ...

    async def send_bytes(self, upload_url: str, data: bytes) -> None:
        """Send all bytes of an upload session, even bytes that the service already has. Raises CallFailed."""
        ...

    async def read_file(self, path: str) -> File:
        """Read a file on the caller's machine. Raises CallFailed if this is impossible or not allowed."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait for this many seconds. Raises CallFailed if the service stops meanwhile."""
        ...


def part(text: str) -> str:
    """Encode an id as one segment of a URL path. Raises CallFailed for `.`, `..`, a slash or no text."""
    if "/" in text or text in {"", ".", ".."}:
        raise refused(("", f"{text!r} is not an id."))
    return quote(text, safe="", errors="replace")


def refused(*errors: tuple[str, str]) -> CallFailed:
    """Create the error `invalid_request` from pairs of an argument's dotted path and a message."""
    path, message = errors[0]
    sentence, others = f"{path}: {message}".removeprefix(": "), len(errors) - 1
    if others:
        sentence += f" {others} other {'argument is' if others == 1 else 'arguments are'} not valid either."
    listed = [{"path": path, "message": message} for path, message in errors]
    details = shorten_all({"errors": listed})
    return CallFailed(
        ErrorBody(code=ErrorCode.INVALID_REQUEST, message=shorten(sentence), retryable=False, details=details)
    )


def refused_fields(error: ValidationError) -> CallFailed:
    """Create the error `invalid_request` from a validation error, without the values that were sent."""
    return refused(*faults_of(error)[:MOST_ERRORS])
