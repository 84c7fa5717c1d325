"""A route as data: what `app` serves and what `openapi` describes are made from the same rows."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from types import UnionType

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.wire.codes import ErrorCode

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method on one path."""

    method: str
    #: With parameters in braces.
    path: str
    handler: Handler
    #: One line for the API's document.
    summary: str
    #: Success statuses and the model of their bodies, or several joined by `|`; None is bytes.
    answers: Mapping[int, type[BaseModel] | UnionType | None]
    _: KW_ONLY
    #: Model of the JSON body; None where there is none.
    body: type[BaseModel] | None = None
    #: It changes nothing, whatever its method.
    reads: bool = False
    #: Answers with events instead, where the body asks for a stream.
    streams: bool = False
    #: No body stands for an empty object.
    optional: bool = False
    #: A multipart form with a file instead.
    form: Mapping[str, str] = field(default_factory=dict)
    #: Bytes instead, of any type.
    raw: bool = False
    #: Headers that it reads, besides those of all, and what each means.
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Query parameters and what each means.
    query: Mapping[str, str] = field(default_factory=dict)
    #: What it refuses besides the common refusals.
    errors: tuple[ErrorCode, ...] = ()
    #: Takes `Idempotency-Key`.
    repeatable: bool = False
    #: The path that has succeeded it, where it is an alias that is kept for old clients.
    successor: str | None = None
    #: Needs an API key.
    keyed: bool = True
    #: Where an answer has to tell this address.
    name: str | None = None
