"""Hardening: the order of the layers around the routes, in one place.

From the outside in, each for a reason:

    RequestIds    everything below has an id to tell, and every answer shows it
    AccessLogs    sees each answer, those of Faults too
    CrossOrigins  lets pages read the storage door's answers, refusals too
    Deprecations  has an alias tell its successor, with refusals too
    Faults        turns what is raised below it into an answer
    Guards        refuses before anything is read or looked up
    Deadlines     times the body that the routes read
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.types import ExceptionHandler

from svc_daemon.api.access_logs import AccessLogs
from svc_daemon.api.cross_origins import CrossOrigins
from svc_daemon.api.deadlines import ClientLimits, Deadlines
from svc_daemon.api.deprecations import Deprecations
from svc_daemon.api.faults import Faults, pass_on
from svc_daemon.api.guards import GuardRules, Guards
from svc_daemon.api.openai_errors import is_openai_path
from svc_daemon.api.request_ids import RequestIds


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardening:
    """What the layers need to be told."""

    #: Makes whole request ids, such as `req_01k2…`.
    new_id: Callable[[], str]
    rules: GuardRules = field(default_factory=GuardRules)
    limits: ClientLimits = field(default_factory=ClientLimits)
    #: Seconds that never go back.
    clock: Callable[[], float] = time.monotonic
    #: Whether a path answers its errors as OpenAI does.
    openai_style: Callable[[str], bool] = is_openai_path


NO_ALIASES: Mapping[str, str] = MappingProxyType({})

#: For `Starlette(exception_handlers=…)`: without it starlette answers 404 and 405 by itself, in text.
EXCEPTION_HANDLERS: dict[type[Exception], ExceptionHandler] = {HTTPException: pass_on}


def middleware(hardening: Hardening, successors: Mapping[str, str] = NO_ALIASES) -> list[Middleware]:
    """The layers, for `Starlette(middleware=…)`; `successors` as `Deprecations` takes them."""
    return [
        Middleware(RequestIds, new_id=hardening.new_id),
        Middleware(AccessLogs, clock=hardening.clock),
        Middleware(CrossOrigins),
        Middleware(Deprecations, successors=successors),
        Middleware(Faults, openai_style=hardening.openai_style),
        Middleware(Guards, rules=hardening.rules),
        Middleware(Deadlines, limits=hardening.limits, clock=hardening.clock),
    ]
