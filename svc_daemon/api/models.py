"""Handlers of the models that agents are to OpenAI's clients."""

from math import floor

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.presenting import answer, caller, context_of
from svc_daemon.core.ids import agent_of, model_of
from svc_daemon.core.search.agents import Agent
from svc_daemon.core.times import from_text
from svc_daemon.operations.agents import list_visible_agents, show_agent
from svc_daemon.wire import agents as wire


async def list_all(request: Request) -> Response:
    """Every agent that the key may use, as it is advertised: the default one first."""
    key = caller(request)
    found = await list_visible_agents(context_of(request), key)
    models = sorted((_view(agent, model_of(agent.id)) for agent in found), key=lambda model: model.id)
    return answer(request, wire.ModelList, {"data": models})


async def show(request: Request) -> Response:
    """The model under the id that was asked for, in whichever spelling."""
    key, model = caller(request), request.path_params["model"]
    agent = show_agent(context_of(request), key, agent_of(model))
    return answer(request, wire.ModelAnswer, _view(agent, model))


def _view(agent: Agent, model: str) -> wire.Model:
    created = floor(from_text(agent.created_at).timestamp()) if agent.created_at else 0
    return wire.Model(id=model, created=created, owned_by=agent.team_id)
