"""What a tool needs of the service: calls of its API with one caller's key. Each door has its own way to make them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol
from urllib.parse import quote

from pydantic import ValidationError

from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.errors import ErrorBody, shorten, shorten_all
from svc_daemon.wire.scopes import faults_of

#: Of arguments that are not valid, so many are named.
MOST_ERRORS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request of the API."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    #: The JSON body; None sends none.
    body: Mapping[str, Any] | None = None
    #: Every create has one, so that it can be made again.
    idempotency_key: str | None = None
    #: How long the answer may take to begin.
    silence_s: float = 60.0


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """A success."""

    body: dict[str, Any]
    #: It was given before, to a request with the same idempotency key.
    is_replay: bool = False


@dataclass(frozen=True)
class File:
    """A file on its way, whole: the service takes none that memory could not hold."""

    name: str
    data: bytes

    @cached_property
    def sha256(self) -> str:
        """Hex digest of the bytes."""
        return hashlib.sha256(self.data).hexdigest()


class CallFailed(Exception):
    """A refusal, or a call that came to nothing: the API's `error` object and the id of the request."""

    def __init__(self, error: Mapping[str, Any], request_id: str | None = None) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.error = dict(error)
        self.request_id = request_id

    @property
    def code(self) -> str:
        return str(self.error["code"])

    def envelope(self) -> dict[str, Any]:
        """The error as the API's own routes send it."""
        return {"error": self.error, "request_id": self.request_id}


class ToolService(Protocol):
    """The API as one caller sees it."""

    async def call(self, call: Call) -> CallAnswer:
        """Make a call; raises CallFailed."""
        ...

    async def send_bytes(self, upload_url: str, data: bytes) -> None:
        """Send all bytes of an upload session; what it has of them already may be sent again. Raises CallFailed."""
        ...

    async def read_file(self, path: str) -> File:
        """A file of the caller's own machine; raises CallFailed where it may not be read, or none may."""
        ...

    async def pause(self, seconds: float) -> None:
        """Let time pass; raises CallFailed where the service stops meanwhile."""
        ...


def part(text: str) -> str:
    """An id as one part of a path; raises CallFailed for what would be none or several."""
    if "/" in text or text in {"", ".", ".."}:
        raise refused(("", f"{text!r} is not an id."))
    return quote(text, safe="", errors="replace")


def refused(*errors: tuple[str, str]) -> CallFailed:
    """`invalid_request` about arguments, each a dotted path and a message; at least one."""
    path, message = errors[0]
    sentence = (
        f"{path}: {message}".removeprefix(": ") if len(errors) == 1 else f"{len(errors)} arguments are not valid."
    )
    listed = [{"path": path, "message": message} for path, message in errors]
    details = shorten_all({"errors": listed})
    error = ErrorBody(code=ErrorCode.INVALID_REQUEST, message=shorten(sentence), retryable=False, details=details)
    return CallFailed(error.model_dump())


def refused_fields(error: ValidationError) -> CallFailed:
    """`invalid_request` about arguments that don't fit their model, without the values that were sent."""
    return refused(*faults_of(error)[:MOST_ERRORS])
