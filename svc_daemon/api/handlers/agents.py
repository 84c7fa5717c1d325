"""HTTP handlers for agents."""

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.bodies import Model, parse_model, read_json, refuse_in_query
from svc_daemon.api.endpoints import DRY, PAGE, Endpoint
from svc_daemon.api.requests import caller, context_of, creation_of, is_dry_run, meaning_of, page_of, query_flag
from svc_daemon.api.responses import created, respond, would_create
from svc_daemon.core.access import api_keys
from svc_daemon.core.search.agents import invalid_profile
from svc_daemon.errors import ServiceError
from svc_daemon.operations import agents as verbs
from svc_daemon.operations.agents import view_agent
from svc_daemon.operations.shared.idempotency import find_earlier
from svc_daemon.wire import agents as wire
from svc_daemon.wire.light.error_codes import ErrorCode as E
from svc_daemon.wire.sources import DryRun


async def create(request: Request) -> Response:
    creation = creation_of(request, api_keys.AGENT_MANAGE)
    fields = await _profile(request, wire.AgentCreate)
    context = context_of(request)
    creation = replace(creation, fingerprint=meaning_of(fields))
    if is_dry_run(request, fields.dry_run):
        if find_earlier(context, creation) is not None:
            return would_create(request, None)
        planned = context.read(lambda connection: verbs.plan_agent(connection, context, creation.key, fields))
        unknown = {"created_at", "updated_at"} | (set() if fields.agent_id else {"id", "agent_id", "model"})
        return would_create(request, {name: each for name, each in view_agent(planned).items() if name not in unknown})
    outcome = await verbs.create_new_agent(context, creation, fields)
    return created(request, outcome)


async def list_all(request: Request) -> Response:
    key = caller(request, api_keys.AGENT_READ)
    page, paging = page_of(request, await verbs.list_agents_as_seen(context_of(request), key), "")
    return respond(request, {"team_id": key.team_id, "agents": page, **paging})


async def show(request: Request) -> Response:
    key = caller(request, api_keys.AGENT_READ)
    agent = verbs.show_agent_as_seen(context_of(request), key, request.path_params["agent_id"])
    return respond(request, agent)


async def update(request: Request) -> Response:
    key = caller(request, api_keys.AGENT_MANAGE)
    fields = await _profile(request, wire.AgentUpdate)
    agent = await verbs.change_agent(context_of(request), key, request.path_params["agent_id"], fields)
    return respond(request, agent)


async def delete(request: Request) -> Response:
    key = caller(request, api_keys.AGENT_MANAGE)
    agent_id = request.path_params["agent_id"]
    force = query_flag(request, "force")
    await verbs.delete_agent(context_of(request), key, agent_id, force=force)
    return respond(request, {"id": agent_id, "agent_id": agent_id, "object": "agent", "deleted": True})


async def _profile(request: Request, model: type[Model]) -> Model:
    """Read an agent's fields from the body. Raises `invalid_agent_profile`."""
    refuse_in_query(request, model)
    sent = await read_json(request, max_bytes=context_of(request).limits.json_bytes)
    try:
        return parse_model(sent, model)
    except ServiceError as error:
        raise invalid_profile([(each["path"], each["message"]) for each in error.details["errors"]]) from error


_AGENT = "/v1/agents/{agent_id}"
_NO_AGENT = (E.MODEL_NOT_ALLOWED, E.AGENT_NOT_FOUND)

# fmt: off
ENDPOINTS = (
    Endpoint("POST", "/v1/agents", create, "Create an agent",
             {201: wire.AgentAnswer, 200: wire.AgentAnswer | DryRun},
             body=wire.AgentCreate, query=DRY, repeatable=True,
             errors=(E.AGENT_EXISTS, E.AGENT_LIMIT_REACHED, E.AGENT_REPLAY_CHECK_UNAVAILABLE, E.INVALID_AGENT_PROFILE,
                     E.MODEL_NOT_ALLOWED)),
    Endpoint("GET", "/v1/agents", list_all, "List agents", {200: wire.AgentList}, query=PAGE),
    Endpoint("GET", _AGENT, show, "Show an agent", {200: wire.AgentAnswer}, errors=_NO_AGENT),
    Endpoint("PUT", _AGENT, update, "Change some fields of an agent", {200: wire.AgentAnswer},
             body=wire.AgentUpdate, errors=(*_NO_AGENT, E.NO_UPDATES, E.INVALID_AGENT_PROFILE)),
    Endpoint("DELETE", _AGENT, delete, "Delete an agent", {200: wire.AgentDeleted},
             query={"force": "true: even if it is bound to a surface."}, errors=(*_NO_AGENT, E.DELETE_BLOCKED)),
)
# fmt: on
