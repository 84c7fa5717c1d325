"""Builds the OpenAPI document from the endpoints and the wire models."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from types import UnionType
from typing import Any, get_args

from pydantic import TypeAdapter

from svc_daemon.api.endpoints import Endpoint
from svc_daemon.api.middleware.error_responses import is_openai_path
from svc_daemon.api.server_sent_events import MEDIA_TYPE as EVENTS
from svc_daemon.errors import ERRORS
from svc_daemon.settings.limits import Limits
from svc_daemon.wire.light import headers
from svc_daemon.wire.light.error_codes import ErrorCode as E
from svc_daemon.wire.light.errors import ErrorEnvelope, OpenAIError
from svc_daemon.wire.light.versions import VERSION

_REF = "#/components/schemas/{model}"
#: Error codes that any request may get.
_ALWAYS = (
    E.INVALID_REQUEST,
    E.HOST_NOT_ALLOWED,
    E.ORIGIN_NOT_ALLOWED,
    E.METHOD_NOT_ALLOWED,
    E.NOT_FOUND,
    E.REQUEST_TIMEOUT,
    E.HEADERS_TOO_LARGE,
    E.INTERNAL_ERROR,
    E.SHUTTING_DOWN,
)
_KEYED = (E.INVALID_PROJECT_KEY, E.FORBIDDEN_PROJECT_KEY)
_BODY = (E.INVALID_JSON, E.REQUEST_TOO_LARGE, E.UNSUPPORTED_MEDIA_TYPE, E.STORAGE_FULL)
_FORM = (E.REQUEST_TOO_LARGE, E.UNSUPPORTED_MEDIA_TYPE)
_REPEATABLE = (E.IDEMPOTENCY_KEY_CONFLICT, E.INVALID_IDEMPOTENCY_KEY, E.REQUEST_IN_PROGRESS)
_WRITING = (E.STORAGE_FULL,)
_OCTETS = "application/octet-stream"
#: A file's bytes: `contentMediaType` is that of OpenAPI 3.1, and `format` is what generators of clients look for.
_FILE = {"type": "string", "format": "binary", "contentMediaType": _OCTETS}
#: Any bytes. Generators leave out what has no other media type than `*/*`.
_ANY_BYTES = {_OCTETS: {"schema": _FILE}, "*/*": {"schema": {}}}
#: Statuses without a body: No Content, and an incomplete upload.
_WITHOUT_BODY = (204, 308)


def describe(endpoints: Sequence[Endpoint], limits: Limits) -> dict[str, Any]:
    """Build the OpenAPI 3.1 document, with every status and error code of each path.

    Descriptions of query parameters can have placeholders for limits, such as `{page_rows}`.
    """
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, limits)
    models = {envelope_of(endpoint.path) for endpoint in endpoints}
    for endpoint in endpoints:
        for body in (*endpoint.answers.values(), endpoint.body):
            models |= set(_models(body))
    ordered = sorted(models, key=lambda model: model.__name__)
    _, document = TypeAdapter.json_schemas(
        [(model.__name__, "validation", TypeAdapter(model)) for model in ordered], ref_template=_REF
    )
    return {
        "openapi": "3.1.0",
        "info": {"title": "svc", "version": VERSION, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": document["$defs"],
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "A project API key."}},
        },
    }


def codes_of(endpoint: Endpoint) -> list[E]:
    """Return every error code of the endpoint."""
    codes = [*_ALWAYS, *endpoint.errors]
    codes += _KEYED if endpoint.keyed else ()
    codes += _BODY if endpoint.body else ()
    codes += _FORM if endpoint.form else ()
    codes += _REPEATABLE if endpoint.repeatable else ()
    codes += _WRITING if endpoint.method != "GET" else ()
    # For methods other than GET and OPTIONS, the service always reads the body, to look for `dry_run`.
    codes += (E.REQUEST_TOO_LARGE,) if endpoint.method not in ("GET", "OPTIONS") and not endpoint.raw else ()
    return list(dict.fromkeys(codes))


def _operation(endpoint: Endpoint, limits: Limits) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for code in codes_of(endpoint):
        by_status.setdefault(ERRORS[code].status, []).append(str(code))
    error = {"application/json": {"schema": _reference(envelope_of(endpoint.path))}}
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.method.lower()}{re.sub(r'[^a-z0-9]+', '_', endpoint.path)}",
        "summary": endpoint.summary,
        "parameters": list(_parameters(endpoint, limits)),
        "responses": _answers(endpoint)
        | {
            str(status): {"description": ", ".join(names), "content": error}
            for status, names in sorted(by_status.items())
        },
    }
    if endpoint.successor is not None:
        operation["deprecated"] = True
    if endpoint.keyed:
        operation["security"] = [{"key": []}]
    if endpoint.body is not None:
        content = {"application/json": {"schema": _reference(endpoint.body)}}
        operation["requestBody"] = {"required": not endpoint.optional, "content": content}
    if endpoint.form:
        fields: dict[str, Any] = {"file": _FILE}
        fields |= {name: {"type": "string", "description": meaning} for name, meaning in endpoint.form.items()}
        form = {"type": "object", "required": ["file"], "properties": fields}
        operation["requestBody"] = {"required": True, "content": {"multipart/form-data": {"schema": form}}}
    if endpoint.raw:
        operation["requestBody"] = {"content": _ANY_BYTES}
    return operation


def _parameters(endpoint: Endpoint, limits: Limits) -> Iterable[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", endpoint.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    for name, meaning in endpoint.query.items():
        yield {
            "name": name,
            "in": "query",
            "description": meaning.format_map(asdict(limits)),
            "schema": {"type": "string"},
        }
    for name, meaning in endpoint.headers.items():
        yield {"name": name, "in": "header", "description": meaning, "schema": {"type": "string"}}
    if endpoint.repeatable:
        most = limits.idempotency_key_characters
        schema = {"type": "string", "minLength": 1, "maxLength": most, "pattern": "^[!-~]+$"}
        yield {"name": headers.IDEMPOTENCY_KEY, "in": "header", "schema": schema}


def _answers(endpoint: Endpoint) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for status, body in endpoint.answers.items():
        references = [_reference(model) for model in _models(body)]
        schema = {"anyOf": references} if len(references) > 1 else next(iter(references), {})
        content = {"application/json": {"schema": schema}} if references else dict(_ANY_BYTES)
        answers[str(status)] = {"description": "Success", "content": content}
        if status in _WITHOUT_BODY:
            answers[str(status)] = {"description": "Success, without a body"}
    if endpoint.streams:
        answers["200"]["content"][EVENTS] = {"schema": {"type": "string", "description": "Server-sent events."}}
    return answers


def _models(body: type | UnionType | None) -> tuple[type, ...]:
    """Return the types of a body; none if the body is missing or raw bytes."""
    if body is None:
        return ()
    return get_args(body) if isinstance(body, UnionType) else (body,)


def envelope_of(path: str) -> type:
    """Return the type of the errors on this path."""
    return OpenAIError if is_openai_path(path) else ErrorEnvelope


def _reference(model: type) -> dict[str, str]:
    return {"$ref": _REF.format(model=model.__name__)}
