"""Reads requests: the caller and its key, the body, the buckets, and parameters of the query."""

import asyncio
from collections.abc import Iterable
from importlib import import_module
from ipaddress import ip_address
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.requests import Request

from svc_daemon.api.bodies import Model, read_model, read_optional_model
from svc_daemon.core.idempotency import fingerprint
from svc_daemon.core.json_bodies import refusal
from svc_daemon.core.uploads.destination_buckets import in_path
from svc_daemon.errors import ServiceError
from svc_daemon.operations.shared.authorization import authenticate, require
from svc_daemon.operations.shared.destination_buckets import Destination, find_destination
from svc_daemon.operations.shared.idempotency import Creation, check_key
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.wire import JsonMapping
from svc_daemon.wire.light import headers
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.extras import install_command
from svc_daemon.wire.light.field_errors import is_number
from svc_daemon.wire.requests import Paging

DRY_RUN = "dry_run"

_TRUE, _FALSE = ("true", "1"), ("false", "0", "")


#: An object with an `id`, by which lists are ordered and split into pages.
Row = TypeVar("Row", bound=JsonMapping)


def context_of(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


def caller(request: Request, *capabilities: str) -> KeyRow:
    """Return the caller's API key. Raises `invalid_project_key`.

    Raises `forbidden_project_key` if some capabilities are given and the key has none of them.
    """
    key = authenticate(context_of(request), request.headers.get(headers.AUTHORIZATION))
    if capabilities:
        require(key, *capabilities)
    return key


async def import_extra(module: str, extra: str) -> Any:
    """Import a module of an optional extra, in a thread since this may be slow. Raises `extra_not_installed`."""
    try:
        return await asyncio.to_thread(import_module, module)
    except ModuleNotFoundError as error:
        raise ServiceError(
            ErrorCode.EXTRA_NOT_INSTALLED,
            f"This service was installed without its extra `{extra}`. Run {install_command(extra)} in the environment"
            " in which svc is installed, then restart the service.",
            extra=extra,
        ) from error


def is_from_this_machine(request: Request) -> bool:
    """Return whether the connection comes from this machine. Behind a local proxy, this is always true."""
    try:
        address = ip_address(request.client.host if request.client else "")
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def is_from_browser(request: Request) -> bool:
    return "origin" in request.headers or "sec-fetch-site" in request.headers


def path_destination(request: Request, key: KeyRow) -> Destination:
    """Return the bucket in the path. Raises `bucket_not_found`."""
    context, naming = context_of(request), in_path(request.path_params["bucket"])
    return context.look(lambda connection: find_destination(connection, context, key, naming))


def creation_of(request: Request, capability: str) -> Creation:
    """Return who sends the create request, and under which idempotency key.

    Raises `invalid_project_key`, `forbidden_project_key` and `invalid_idempotency_key`.
    """
    key = caller(request, capability)
    idempotency_key = check_key(context_of(request), header_of(request, headers.IDEMPOTENCY_KEY))
    return Creation(key=key, idempotency_key=idempotency_key, route=f"{request.method} {request.scope['route'].path}")


def header_of(request: Request, name: str) -> str | None:
    """Return a header's value or None. Repeated headers are joined as in RFC 9110."""
    lines = request.headers.getlist(name)
    return ", ".join(lines) if lines else None


async def body_of(request: Request, model: type[Model]) -> Model:
    """Read the JSON body as a model. Raises the errors of `bodies.read_model`."""
    return await read_model(request, model, max_bytes=context_of(request).limits.json_bytes)


async def optional_body_of(request: Request, model: type[Model]) -> Model:
    """Read the body like `body_of`, but treat a missing body as an empty object."""
    return await read_optional_model(request, model, max_bytes=context_of(request).limits.json_bytes)


def meaning_of(body: BaseModel) -> str:
    """Return the fingerprint of a body. The fingerprint is the same whether or not the body asks for a dry run."""
    return fingerprint(body.model_dump() | {"dry_run": False})


def is_dry_run(request: Request, in_body: bool = False) -> bool:
    """Return whether the body or the query string asks for a dry run. Raises `invalid_request`."""
    # Read the query string in any case, so that a value that is none is refused.
    return query_flag(request, DRY_RUN) or in_body


def page_limit(request: Request) -> int | None:
    """Return the query parameter `limit`. Raises `invalid_request`."""
    text = query_text(request, "limit")
    if text is None:
        return None
    most, limit = context_of(request).limits.page_rows, whole_number(text)
    if isinstance(limit, str) or not 1 <= limit <= most:
        raise refusal("limit", f"must be a whole number from 1 to {most}, not {text!r}.")
    return limit


def page_of(request: Request, rows: Iterable[Row], kind: str) -> tuple[list[Row], Paging]:
    """Return the rows that `after` and `limit` select, and with `limit` the fields for reading the next page.

    `kind` is the prefix of the rows' ids, empty if they have none. Raises `invalid_request` for an `after` without it,
    which would silently begin anywhere.
    """
    limit, after = page_limit(request), query_text(request, "after") or ""
    if after and kind and not after.startswith(f"{kind}_"):
        raise refusal("after", "must be the last_id of the previous page.")
    rest = [row for row in rows if row["id"] > after]
    if limit is None:
        return rest, {}
    page = rest[:limit]
    return page, {"has_more": len(page) < len(rest), "last_id": page[-1]["id"] if page else None}


def query_text(request: Request, name: str) -> str | None:
    """Return a query parameter, or None if it is missing. Raises `invalid_request` if it was sent twice."""
    values = request.query_params.getlist(name)
    if len(values) > 1:
        raise refusal(name, "must be sent once.")
    return values[0] if values else None


def query_list(request: Request, name: str) -> list[str]:
    """Return the values of a query parameter, separated by commas or sent several times."""
    return [value for text in request.query_params.getlist(name) for value in text.split(",") if value]


def query_flag(request: Request, name: str, *, default: bool = False) -> bool:
    """Parse a boolean in the query string. Without a value, as in `?dry_run`, it is true. Raises `invalid_request`."""
    text = query_text(request, name)
    return default if text is None else bare_flag(name, text)


def bare_flag(path: str, text: str) -> bool:
    """Parse a boolean that is true if it has no value. Raises `invalid_request`."""
    return text == "" or flag(path, text)


def flag(path: str, text: str | None) -> bool:
    """Parse a boolean in a form, where an empty field is false. Raises `invalid_request`."""
    value = (text or "").lower()
    if value not in _TRUE + _FALSE:
        raise refusal(path, f"must be true or false, not {text!r}.")
    return value in _TRUE


def one_of(path: str, value: str | None, known: tuple[str, ...]) -> str | None:
    """Return the parameter's value, or None if it is missing. Raises `invalid_request` if it is not in `known`."""
    if value is not None and value not in known:
        raise refusal(path, f"must be one of {', '.join(known)}, not {value!r}.")
    return value


def whole_number(text: str) -> int | str:
    """Parse an integer. Return any other text unchanged, so that validation refuses it."""
    # Longer numbers are out of every range, and Python refuses to parse thousands of digits.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else text


def decimal_number(text: str) -> float | str:
    """Parse a number with or without a fraction. Return any other text unchanged, so that validation refuses it."""
    return float(text) if is_number(text) else text
