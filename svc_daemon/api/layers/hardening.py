"""Hardening: the order of the layers around the routes, in one place.

From the outside in, each for a reason:

    ResponseHeaders  gives the request its id; its headers are on every response, refusals included
    AccessLogs       sees each response, those of Faults too
    Faults           turns what is raised below it into a response
    Guards           refuses before anything is read or looked up
    Deadlines        times the body that the routes read
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.types import ExceptionHandler

from svc_daemon.api.layers.access_logs import AccessLogs
from svc_daemon.api.layers.deadlines import ClientLimits, Deadlines
from svc_daemon.api.layers.faults import Faults, is_openai_path, raise_again
from svc_daemon.api.layers.guards import GuardRules, Guards
from svc_daemon.api.layers.response_headers import ResponseHeaders


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardening:
    """The settings of the layers."""

    #: Makes whole request ids, such as `req_01k2…`.
    new_id: Callable[[], str]
    rules: GuardRules = field(default_factory=GuardRules)
    limits: ClientLimits = field(default_factory=ClientLimits)
    #: Seconds that never go back.
    clock: Callable[[], float] = time.monotonic
    #: Whether the errors of a path have OpenAI's shape.
    openai_style: Callable[[str], bool] = is_openai_path


NO_ALIASES: Mapping[str, str] = MappingProxyType({})

#: For `Starlette(exception_handlers=…)`: without it starlette answers 404 and 405 by itself, in text.
EXCEPTION_HANDLERS: dict[type[Exception], ExceptionHandler] = {HTTPException: raise_again}


def middleware(hardening: Hardening, successors: Mapping[str, str] = NO_ALIASES) -> list[Middleware]:
    """The layers, for `Starlette(middleware=…)`; `successors` as `ResponseHeaders` takes them."""
    return [
        Middleware(ResponseHeaders, new_id=hardening.new_id, successors=successors),
        Middleware(AccessLogs, clock=hardening.clock),
        Middleware(Faults, openai_style=hardening.openai_style),
        Middleware(Guards, rules=hardening.rules),
        Middleware(Deadlines, limits=hardening.limits, clock=hardening.clock),
    ]
