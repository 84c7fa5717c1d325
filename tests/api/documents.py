"""The documented types as judges: whether an answer is one that its route has for its status."""

import re
from collections import defaultdict
from functools import cache
from types import UnionType
from typing import Any, get_args

import httpx
from pydantic import TypeAdapter, ValidationError
from starlette.routing import compile_path

from svc_daemon.api.app import ENDPOINTS
from svc_daemon.api.endpoints import Endpoint
from svc_daemon.api.openapi import envelope_of


def check_type(answer: httpx.Response) -> httpx.Response:
    """Return an answer whose JSON has exactly the fields of the type that its route documents.

    Raises ValidationError for any other.
    """
    if answer.headers.get("Content-Type") != "application/json":
        return answer
    path = answer.request.url.path
    for row, pattern in _routes()[answer.request.method]:
        if pattern.match(path):
            kind = envelope_of(row.path) if answer.is_error else row.answers[answer.status_code]
            if kind is not None:
                _adapter(kind).validate_python(answer.json(), strict=True, extra="forbid")
    return answer


@cache
def _routes() -> dict[str, list[tuple[Endpoint, re.Pattern[str]]]]:
    """Return the routes of each method."""
    routes = defaultdict(list)
    for row in ENDPOINTS:
        routes[row.method].append((row, compile_path(row.path)[0]))
    return routes


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def kinds_of(kind: Any) -> tuple[Any, ...]:
    """Return the types of which an answer of this type has one; None is an answer that is no JSON."""
    return get_args(kind) if isinstance(kind, UnionType) else (kind,)


def kinds_met(row: Endpoint, answer: httpx.Response) -> set[Any]:
    """Return those documented for this status that the answer fits."""
    return {kind for kind in kinds_of(row.answers[answer.status_code]) if kind is None or _fits(kind, answer.json())}


def _fits(kind: Any, body: Any) -> bool:
    try:
        _adapter(kind).validate_python(body, strict=True, extra="forbid")
    except ValidationError:
        return False
    return True
