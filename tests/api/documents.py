"""The documented types as judges: whether an answer is one that its route has for its status."""

import re
from collections import defaultdict
from functools import cache
from typing import Any

import httpx
from jsonschema_rs import Draft202012Validator
from pydantic import TypeAdapter
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


def closed(schema: Any) -> Any:
    """The schema with no field allowed that it doesn't name: what is not described must not be sent."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(each) for name, each in schema.items()}
    if "properties" in schema and "additionalProperties" not in schema:
        inner["additionalProperties"] = False
    return inner


def models_met(document: dict[str, Any], row: Endpoint, answer: httpx.Response) -> set[str]:
    """References of the models described for this status that the answer is one of; empty where none is described."""
    described = document["paths"][row.path][row.method.lower()]["responses"][str(answer.status_code)]
    if "content" not in described:
        assert (answer.content, "Content-Type" in answer.headers) == (b"", False)
        return set()
    sent = answer.headers["Content-Type"].partition(";")[0]
    schema = described["content"].get(sent, described["content"].get("*/*"))
    assert schema is not None, f"{sent} is not described"
    return {each for each in references(described) if _is_met(document, each, answer)}


def references(described: dict[str, Any]) -> list[str]:
    """References of the models that a described answer may be one of."""
    schema = described.get("content", {}).get("application/json", {}).get("schema", {})
    return [each["$ref"] for each in schema.get("anyOf", [schema]) if "$ref" in each]


def _is_met(document: dict[str, Any], reference: str, answer: httpx.Response) -> bool:
    schema = {"$ref": reference, "components": closed(document["components"])}
    return bool(Draft202012Validator(schema).is_valid(answer.json()))
