"""HTTP handlers that list agents as models, as OpenAI's API does."""

from math import floor

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.endpoints import Endpoint
from svc_daemon.api.requests import caller, context_of
from svc_daemon.api.responses import respond
from svc_daemon.core.access.model_ids import agent_of, model_of
from svc_daemon.core.search.agents import TeamAgent
from svc_daemon.core.times import from_text
from svc_daemon.operations import agents as verbs
from svc_daemon.operations.agents import list_visible_agents
from svc_daemon.wire.light.error_codes import ErrorCode as E
from svc_daemon.wire.openai import models as wire


async def list_models(request: Request) -> Response:
    """List the agents that the key may use, the default one first."""
    key = caller(request)
    found = await list_visible_agents(context_of(request), key)
    models = sorted((_view_model(agent, model_of(agent.id)) for agent in found), key=lambda model: model["id"])
    return respond(request, {"object": "list", "data": models})


async def show_model(request: Request) -> Response:
    """Return the model, with its id spelled as in the request."""
    key, model = caller(request), request.path_params["model"]
    agent = verbs.show_agent(context_of(request), key, agent_of(model))
    return respond(request, _view_model(agent, model))


def _view_model(agent: TeamAgent, model: str) -> wire.Model:
    created = floor(from_text(agent.created_at).timestamp()) if agent.created_at else 0
    return wire.Model(id=model, object="model", created=created, owned_by=agent.team_id)


# fmt: off
ENDPOINTS = (
    Endpoint("GET", "/v1/models", list_models, "List the agents as models", {200: wire.ModelList}),
    Endpoint("GET", "/v1/models/{model}", show_model, "Show an agent as a model", {200: wire.ModelAnswer},
             errors=(E.MODEL_NOT_ALLOWED, E.AGENT_NOT_FOUND, E.MODEL_NOT_FOUND)),
    Endpoint("GET", "/v1/rag-agent/models", list_models, "List the agents as models", {200: wire.ModelList}),
)
# fmt: on
