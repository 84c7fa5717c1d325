"""The middleware around the routes, and its order.

From the outermost to the innermost:

    ResponseHeaders  assigns the request id, and adds headers to every response, including errors
    AccessLogs       logs each response, including errors
    Tracing          records each request, if traces are on
    ErrorResponses   turns exceptions into error responses
    Guards           refuses requests before anything is read or looked up
    Deadlines        limits the time for receiving the body
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.types import ExceptionHandler

from svc_daemon.api.middleware.access_logs import AccessLogs, CountRequest, Tracing
from svc_daemon.api.middleware.error_responses import ErrorResponses, is_openai_path, raise_again
from svc_daemon.api.middleware.guards import ClientLimits, Deadlines, GuardRules, Guards
from svc_daemon.api.middleware.response_headers import ResponseHeaders
from svc_daemon.process.telemetry import Traces


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardening:
    """The settings of all middleware."""

    #: Creates request ids, such as `req_01k2…`.
    new_id: Callable[[], str]
    rules: GuardRules = field(default_factory=GuardRules)
    limits: ClientLimits = field(default_factory=ClientLimits)
    #: Returns the seconds of a monotonic clock.
    clock: Callable[[], float] = time.monotonic
    #: Counts a finished request, for the metrics at `/metrics`.
    count: CountRequest = lambda *_: None
    traces: Traces = field(default_factory=Traces)
    #: Returns whether errors on a path have OpenAI's format.
    openai_style: Callable[[str], bool] = is_openai_path


NO_ALIASES: Mapping[str, str] = MappingProxyType({})

#: Without this, Starlette would answer 404 and 405 as plain text.
EXCEPTION_HANDLERS: dict[type[Exception], ExceptionHandler] = {HTTPException: raise_again}


def middleware(hardening: Hardening, successors: Mapping[str, str] = NO_ALIASES) -> list[Middleware]:
    """Return the middleware for Starlette. `successors` is passed to `ResponseHeaders`."""
    return [
        Middleware(ResponseHeaders, new_id=hardening.new_id, successors=successors),
        Middleware(AccessLogs, clock=hardening.clock, count=hardening.count),
        Middleware(Tracing, traces=hardening.traces),
        Middleware(ErrorResponses, openai_style=hardening.openai_style),
        Middleware(Guards, rules=hardening.rules),
        Middleware(Deadlines, limits=hardening.limits, clock=hardening.clock),
    ]
