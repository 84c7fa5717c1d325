"""What every handler does before and after its verb: find the context and the caller, read parameters, answer."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.bodies import read_model, read_optional_model
from svc_daemon.api.request_ids import request_id_of
from svc_daemon.core.requests import refusal
from svc_daemon.core.uploads.destinations import in_path
from svc_daemon.operations.destinations import Destination, find_destination
from svc_daemon.operations.keys import authenticate, require
from svc_daemon.operations.replays import Outcome, check_key
from svc_daemon.process.contexts import Context
from svc_daemon.store.keys import KeyRow
from svc_daemon.wire import headers
from svc_daemon.wire.sources import DryRun

Model = TypeVar("Model", bound=BaseModel)

DRY_RUN = "dry_run"

_TRUE, _FALSE = ("true", "1"), ("false", "0", "")


def context_of(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


def caller(request: Request, capability: str | None = None) -> KeyRow:
    """The key that asks; raises `invalid_project_key` and `forbidden_project_key`."""
    key = authenticate(context_of(request), request.headers.get(headers.AUTHORIZATION))
    if capability is not None:
        require(key, capability)
    return key


def path_destination(request: Request, key: KeyRow) -> Destination:
    """The bucket of the path, for something new; raises `bucket_not_found`."""
    context, naming = context_of(request), in_path(request.path_params["bucket"])
    return context.look(lambda connection: find_destination(connection, context, key, naming))


def idempotency_key(request: Request) -> str | None:
    """The `Idempotency-Key` as sent; raises `invalid_idempotency_key`."""
    return check_key(context_of(request), header_of(request, headers.IDEMPOTENCY_KEY))


def header_of(request: Request, name: str) -> str | None:
    """The header as sent, None without one; several lines in one, as RFC 9110 has it, so that none is passed over."""
    lines = request.headers.getlist(name)
    return ", ".join(lines) if lines else None


async def body_of(request: Request, model: type[Model]) -> Model:
    """The JSON body as the model; raises what `bodies.read_json` and the model raise."""
    return await read_model(request, model, max_bytes=context_of(request).limits.json_bytes)


async def optional_body_of(request: Request, model: type[Model]) -> Model:
    """The same, where no body at all stands for an empty object."""
    return await read_optional_model(request, model, max_bytes=context_of(request).limits.json_bytes)


def answer(request: Request, model: type[BaseModel], body: BaseModel | dict[str, Any], **more: Any) -> Response:
    """200 with the body, what `more` adds to it, and the request's id."""
    fields = body if isinstance(body, dict) else body.model_dump()
    return respond(request, model(**fields, **more, request_id=request_id_of(request.scope)))


def created(request: Request, model: type[BaseModel], outcome: Outcome, status: int = 201) -> Response:
    """`status` for a first answer; 200 and `Idempotent-Replayed: true` for one that was given before."""
    told = model(**outcome.body, request_id=request_id_of(request.scope))
    if not outcome.replayed:
        return respond(request, told, status)
    return mark_replayed(respond(request, told))


def mark_replayed(response: Response) -> Response:
    """Say that this answer was given before."""
    response.headers[headers.IDEMPOTENT_REPLAYED] = "true"
    return response


def is_dry_run(request: Request, in_body: bool = False) -> bool:
    """Whether a create is only to be judged, by its body or its query; raises `invalid_request`."""
    return any([in_body, *(flag(DRY_RUN, text) for text in request.query_params.getlist(DRY_RUN))])


def would_create(request: Request, wanted: dict[str, Any] | None, errors: Iterable[dict[str, str]] = ()) -> Response:
    """The answer to a request that is only judged; None where it would make nothing."""
    return respond(request, DryRun(would_create=wanted, errors=list(errors), request_id=request_id_of(request.scope)))


def respond(
    request: Request, model: BaseModel, status: int = 200, *, without: Mapping[str, Any] | None = None
) -> Response:
    """The model as JSON, `without` some fields; the two of paging only where a page was asked for."""
    paging = set() if "limit" in request.query_params else {"has_more", "last_id"} & _paging(model)
    unasked = {**dict.fromkeys(paging, True), **(without or {})}
    return Response(model.model_dump_json(exclude=unasked), status, media_type="application/json")


async def respond_aside(request: Request, make: Callable[[], BaseModel]) -> Response:
    """As `respond`, with the model made and written in a thread: ten thousand rows take a third of a second."""
    return await asyncio.to_thread(lambda: respond(request, make()))


def page_limit(request: Request) -> int | None:
    """The `limit` asked for; raises `invalid_request` out of range, never clamps."""
    text = request.query_params.get("limit")
    if text is None:
        return None
    most = context_of(request).limits.page_rows
    if not _is_short_number(text) or not 1 <= int(text) <= most:
        raise refusal("limit", f"must be a whole number from 1 to {most}, not {text!r}.")
    return int(text)


def flag(path: str, text: str | None) -> bool:
    """A boolean of a query or form; raises `invalid_request`."""
    value = (text or "").lower()
    if value not in _TRUE + _FALSE:
        raise refusal(path, f"must be true or false, not {text!r}.")
    return value in _TRUE


def whole_number(text: str) -> int | str:
    """The number that a parameter spells, or the text itself, for the model to refuse."""
    return int(text) if _is_short_number(text) else text


def decimal_number(text: str) -> float | str:
    """The same, where it may have a fraction."""
    try:
        return float(text)
    except ValueError:
        return text


def _is_short_number(text: str) -> bool:
    # Longer ones are out of every range, and Python refuses to read those of some thousand digits.
    return text.isascii() and text.isdigit() and len(text) <= 18


def _paging(model: BaseModel) -> set[str]:
    # A search page always tells whether there is more; only lists grow the two fields with `limit`.
    return set(type(model).model_fields) if "last_id" in type(model).model_fields else set()
