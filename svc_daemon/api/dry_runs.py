"""Dry runs: creates, attaches and finalizes return what they would do. All other requests with effects refuse one.

Work that was done although only a dry run was asked for can't be taken back, so no route ignores the request for one.
"""

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.bodies import read_bytes
from svc_daemon.api.endpoints import Endpoint, Handler
from svc_daemon.api.presenting import DRY_RUN, caller, context_of, is_dry_run
from svc_daemon.core.requests import parse_object, refusal
from svc_daemon.errors import ServiceError

#: The query parameter of the routes that have one.
DRY = {DRY_RUN: "true: only validate."}


def serving(row: Endpoint) -> Handler:
    """The row's handler, behind the refusal of a dry run where the row has none."""
    if row.method in ("GET", "OPTIONS") or row.reads or DRY_RUN in row.query:
        return row.handler

    async def handle(request: Request) -> Response:
        refuse_in_query(request)
        # What has a body says in its model whether there is a dry run.
        if row.body is None and not row.raw:
            caller(request)
            await refuse_in_body(request)
        return await row.handler(request)

    return handle


def refuse_in_query(request: Request) -> None:
    """Raises `invalid_request` where the query string asks for a dry run."""
    if is_dry_run(request):
        raise _refused()


async def refuse_in_body(request: Request) -> None:
    """The same of a body that nobody else reads; it may have any form."""
    data = await read_bytes(request, max_bytes=context_of(request).limits.json_bytes)
    if DRY_RUN.encode() in data and _is_asked(data):
        raise _refused()


def _is_asked(data: bytes) -> bool:
    try:
        return parse_object(data).get(DRY_RUN) not in (None, False)
    except ServiceError:
        return True


def _refused() -> ServiceError:
    return refusal(DRY_RUN, "There is no dry run of this.")
