"""The operator's routes, for `svc-daemon` commands while the service runs. They are not part of the public API."""

import hmac
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from svc_daemon.api.endpoints import refuse_dry_run_in_body, refuse_dry_run_in_query
from svc_daemon.api.handlers.machine.services import view_embedding
from svc_daemon.api.requests import body_of, context_of, is_from_browser, is_from_this_machine
from svc_daemon.api.responses import respond
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.operations import keys as verbs
from svc_daemon.operations.index.rebuilding import rebuild_store
from svc_daemon.operations.installations import mark_restored
from svc_daemon.operations.remove.team_removals import queue_removal
from svc_daemon.operations.retrieve import availability
from svc_daemon.operations.shared.response_objects import view_task
from svc_daemon.wire import JsonMapping
from svc_daemon.wire import keys as wire
from svc_daemon.wire.light import headers
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.searches import SearchSwitchChange

Answering = Callable[[Request], Awaitable[JsonMapping]]


async def create_team(request: Request) -> JsonMapping:
    fields, context = await body_of(request, wire.TeamCreate), context_of(request)
    return await context.write(lambda connection: verbs.create_team(connection, context.ids, fields))


async def list_teams(request: Request) -> JsonMapping:
    return await context_of(request).read_in_thread(verbs.list_teams)


async def remove_team(request: Request) -> JsonMapping:
    context, team = context_of(request), request.path_params["team"]
    removed = await context.write(lambda connection: queue_removal(connection, context.ids, team))
    context.wakes.removing.set()
    return removed


async def create_key(request: Request) -> JsonMapping:
    fields, context = await body_of(request, wire.OperatorKeyCreate), context_of(request)
    return await context.write(lambda connection: verbs.create_team_key(connection, context.ids, fields))


async def rebuild_team(request: Request) -> JsonMapping:
    return view_task(await rebuild_store(context_of(request), request.path_params["team"]))


async def show_search(request: Request) -> JsonMapping:
    return context_of(request).look(availability.show_search)


async def switch_search(request: Request) -> JsonMapping:
    change, context = await body_of(request, SearchSwitchChange), context_of(request)
    return await context.write(lambda connection: availability.switch_search(connection, context.ids, change))


async def look_for_model(request: Request) -> JsonMapping:
    context = context_of(request)
    context.wakes.embedding.set()
    return view_embedding(context.embedding)


async def mark_state_restored(request: Request) -> JsonMapping:
    context = context_of(request)
    return await context.write(lambda connection: mark_restored(connection, context.ids))


def check_operator(request: Request) -> None:
    """Raise an error unless the operator sent the request.

    Raises `not_found` for another machine, `origin_not_allowed` for any browser, and `invalid_project_key` for a wrong
    operator token.
    """
    if not is_from_this_machine(request):
        raise NotFound(ErrorCode.NOT_FOUND)
    if is_from_browser(request):
        raise ServiceError(ErrorCode.ORIGIN_NOT_ALLOWED)
    scheme, _, token = request.headers.get(headers.AUTHORIZATION, "").partition(" ")
    expected: str = request.app.state.operator_token
    if scheme.lower() != "bearer" or not hmac.compare_digest(token.encode(), expected.encode()):
        raise ServiceError(ErrorCode.INVALID_PROJECT_KEY, "This needs the operator token of this run of the service.")


def _route(method: str, path: str, handler: Answering, *, has_body: bool = False) -> Route:
    """Build a route that only the operator may call."""

    async def guarded(request: Request) -> Response:
        check_operator(request)
        if method != "GET":
            refuse_dry_run_in_query(request)
            if not has_body:
                await refuse_dry_run_in_body(request)
        response = respond(request, await handler(request))
        # The response may contain a new API key.
        response.headers["Cache-Control"] = "no-store"
        return response

    return Route(path, guarded, methods=[method])


ROUTES = (
    _route("POST", "/admin/teams", create_team, has_body=True),
    _route("GET", "/admin/teams", list_teams),
    _route("POST", "/admin/teams/{team:path}/rebuild", rebuild_team),
    _route("DELETE", "/admin/teams/{team:path}", remove_team),
    _route("POST", "/admin/keys", create_key, has_body=True),
    _route("GET", "/admin/search", show_search),
    _route("PUT", "/admin/search", switch_search, has_body=True),
    _route("POST", "/admin/model", look_for_model),
    _route("POST", "/admin/restored", mark_state_restored),
)
