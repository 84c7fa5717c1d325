"""Handlers of agents."""

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.bodies import Model, parse_model, read_json, refuse_scopes_in_query
from svc_daemon.api.creating import meaning_of
from svc_daemon.api.presenting import (
    answer,
    caller,
    context_of,
    created,
    flag,
    idempotency_key,
    is_dry_run,
    page_limit,
    respond,
    would_create,
)
from svc_daemon.api.request_ids import request_id_of
from svc_daemon.core.access import api_keys
from svc_daemon.core.search.agents import invalid_profile
from svc_daemon.core.uploads.idempotency import Claim
from svc_daemon.errors import ServiceError
from svc_daemon.operations import agents as verbs
from svc_daemon.operations.agents import view_agent
from svc_daemon.operations.replays import Repeatable, find_outcome
from svc_daemon.wire import agents as wire


async def create(request: Request) -> Response:
    key = caller(request, api_keys.AGENT_MANAGE)
    repeat_key = idempotency_key(request)
    fields = await _profile(request, wire.AgentCreate)
    context = context_of(request)
    repeatable = Repeatable(key, repeat_key, Claim(route="POST /v1/agents", fingerprint=meaning_of(fields)))
    if is_dry_run(request, fields.dry_run):
        if find_outcome(context, repeatable) is not None:
            return would_create(request, None)
        planned = context.read(lambda connection: verbs.plan_agent(connection, context, key, fields))
        unknown = {"created_at", "updated_at"} | (set() if fields.agent_id else {"id", "agent_id", "model"})
        return would_create(request, view_agent(planned).model_dump(exclude=unknown))
    outcome = await verbs.create_new_agent(context, repeatable, fields)
    return created(request, wire.AgentAnswer, outcome)


async def list_all(request: Request) -> Response:
    key = caller(request, api_keys.AGENT_READ)
    limit = page_limit(request)
    found = await verbs.list_agents_as_seen(context_of(request), key)
    rest = [agent for agent in found if agent.id > request.query_params.get("after", "")]
    page = rest if limit is None else rest[:limit]
    told = wire.AgentList(
        team_id=key.team_id,
        agents=page,
        has_more=len(page) < len(rest),
        last_id=page[-1].id if page else None,
        request_id=request_id_of(request.scope),
    )
    return respond(request, told)


async def show(request: Request) -> Response:
    key = caller(request, api_keys.AGENT_READ)
    agent = verbs.show_agent_as_seen(context_of(request), key, request.path_params["agent_id"])
    return answer(request, wire.AgentAnswer, agent)


async def update(request: Request) -> Response:
    key = caller(request, api_keys.AGENT_MANAGE)
    fields = await _profile(request, wire.AgentUpdate)
    agent = await verbs.change_agent(context_of(request), key, request.path_params["agent_id"], fields)
    return answer(request, wire.AgentAnswer, view_agent(agent))


async def delete(request: Request) -> Response:
    key = caller(request, api_keys.AGENT_MANAGE)
    agent_id = request.path_params["agent_id"]
    force = flag("force", request.query_params.get("force"))
    await verbs.delete_agent(context_of(request), key, agent_id, force=force)
    return answer(request, wire.AgentDeleted, {"id": agent_id, "agent_id": agent_id})


async def _profile(request: Request, model: type[Model]) -> Model:
    """The body as the model; one that doesn't fit is `invalid_agent_profile`."""
    refuse_scopes_in_query(request, model)
    sent = await read_json(request, max_bytes=context_of(request).limits.json_bytes)
    try:
        return parse_model(sent, model)
    except ServiceError as error:
        raise invalid_profile([(each["path"], each["message"]) for each in error.details["errors"]]) from error
