"""Request bodies: read with a size limit, parsed as JSON, and validated as models."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from svc_daemon.api.middleware.error_responses import invalid_fields
from svc_daemon.core.json_bodies import find_key, parse_object, refusal
from svc_daemon.errors import ServiceError
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.requests import NO_WEBHOOK, ScopedBody, UploadBody

MAX_JSON_BYTES = 1024 * 1024

#: Fields with the caller's own data, where any name is allowed.
FREE_FORM = ("metadata",)

Model = TypeVar("Model", bound=BaseModel)


async def read_json(request: Request, *, max_bytes: int = MAX_JSON_BYTES) -> dict[str, Any]:
    """Read the JSON object in the body.

    Raises ServiceError: 415 `unsupported_media_type`, 413 `request_too_large`, 400 `invalid_json`, and 400
    `invalid_request` if the body is not an object or contains `team_id`. Raises ClientDisconnect.
    """
    refuse_other_types(request)
    return _parse(await read_bytes(request, max_bytes=max_bytes))


async def read_optional_json(request: Request, *, max_bytes: int = MAX_JSON_BYTES) -> dict[str, Any]:
    """Read the body like `read_json`, but return `{}` if it is empty, whatever the content type."""
    data = await read_bytes(request, max_bytes=max_bytes)
    if not data:
        return {}
    refuse_other_types(request)
    return _parse(data)


async def read_model(request: Request, model: type[Model], *, max_bytes: int = MAX_JSON_BYTES) -> Model:
    """Read the body as a model. Raises the errors of `read_json` and `parse_model`."""
    refuse_in_query(request, model)
    return parse_model(await read_json(request, max_bytes=max_bytes), model)


async def read_optional_model(request: Request, model: type[Model], *, max_bytes: int = MAX_JSON_BYTES) -> Model:
    """Read the body like `read_model`, but treat a missing body as an empty object."""
    refuse_in_query(request, model)
    return parse_model(await read_optional_json(request, max_bytes=max_bytes), model)


def refuse_in_query(request: Request, model: type[BaseModel]) -> None:
    """Raise `invalid_request` if the query string has a field that limits what is searched, or an upload's webhook."""
    for name in request.query_params:
        if issubclass(model, UploadBody) and name == "webhook":
            raise refusal(name, NO_WEBHOOK)
        if issubclass(model, ScopedBody) and model.means_scope(name):
            raise refusal(name, "A scope can't be sent in the query string here; send it in the body.")


def parse_model(fields: Any, model: type[Model]) -> Model:
    """Validate fields as a model. Raises 400 `invalid_request` with `details.errors`."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise invalid_fields(error) from error


async def read_bytes(request: Request, *, max_bytes: int) -> bytes:
    """Read the whole body. Raises 413 `request_too_large` if the size exceeds `max_bytes`."""
    if content_length(request) == 0:
        return b""
    data = bytearray()
    async with aclosing(stream_bytes(request, max_bytes=max_bytes)) as chunks:
        async for chunk in chunks:
            data += chunk
    return bytes(data)


async def stream_bytes(request: Request, *, max_bytes: int) -> AsyncGenerator[bytes, None]:
    """Yield the body as it arrives. Raises 413 `request_too_large` if the size exceeds `max_bytes`."""
    declared = content_length(request)
    if declared is not None and declared > max_bytes:
        # Refuse before reading: a client that waits for `100 Continue` then never sends the body.
        raise _too_large(max_bytes)
    received_bytes = 0
    async with aclosing(request.stream()) as chunks:
        async for chunk in chunks:
            received_bytes += len(chunk)
            if received_bytes > max_bytes:
                raise _too_large(max_bytes)
            yield chunk


def content_length(request: Request) -> int | None:
    """Return the size of the body that Content-Length declares, or None."""
    declared = request.headers.get("content-length")
    return int(declared) if declared is not None and declared.isascii() and declared.isdigit() else None


def refuse_encoding(request: Request) -> None:
    """Raise 415 `unsupported_media_type` for a compressed body, because its expanded size is unknown."""
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding != "identity":
        raise ServiceError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, f"The body must be sent as it is, not in {coding!r}.")


def media_type(content_type: str) -> str:
    """Return the media type in a Content-Type header, in lower case and without parameters."""
    return content_type.partition(";")[0].strip().lower()


def refuse_other_types(request: Request) -> None:
    """Raise 415 `unsupported_media_type` for a body that is compressed or is not JSON."""
    refuse_encoding(request)
    sent = media_type(request.headers.get("content-type", ""))
    if sent != "application/json" and not (sent.startswith("application/") and sent.endswith("+json")):
        found = f"not {sent!r}" if sent else "and no Content-Type was sent"
        raise ServiceError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, f"The body must be application/json, {found}.")


def _parse(data: bytes) -> dict[str, Any]:
    document = parse_object(data)
    # A body without these byte sequences can't have a field `team_id`, not even with an escaped name.
    if b"team_id" in data or b"\\u" in data:
        refuse_team(document)
    return document


def refuse_team(document: dict[str, Any]) -> None:
    """Raise 400 `invalid_request` if the document has a field `team_id`, unless it is inside `metadata`."""
    path = find_key(document, "team_id", skipping=FREE_FORM)
    if path is not None:
        raise refusal(path, "The team follows from the API key; team_id is not accepted.")


def _too_large(max_bytes: int) -> ServiceError:
    return ServiceError(
        ErrorCode.REQUEST_TOO_LARGE, f"The body is larger than {max_bytes:,} bytes.", max_bytes=max_bytes
    )
