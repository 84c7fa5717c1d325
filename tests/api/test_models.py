"""Agents as models of the OpenAI-compatible API: the lists, both spellings of an id, and keys with allowed models."""

from datetime import datetime
from typing import Any

import pytest

from tests.api.answers import details_of
from tests.api.daemons import Daemon

LISTS = ("/v1/models", "/v1/rag-agent/models")


@pytest.fixture(scope="module")
def daemon_with_agents(shared: Daemon) -> Daemon:
    """A daemon with two named agents."""
    for agent_id in ("sales", "legal"):
        shared.post("/v1/agents", 201, json={"agent_id": agent_id})
    return shared


def listed(daemon: Daemon, path: str, key: str | None = None) -> list[dict[str, Any]]:
    page = daemon.show(path, key=key)
    assert (page["object"], set(page)) == ("list", {"object", "data", "request_id"})
    return list(page["data"])


@pytest.mark.rule("agents.models", "agents.rag-models")
def test_every_agent_is_listed_as_a_model_and_found_under_both_spellings(daemon_with_agents: Daemon) -> None:
    made = int(datetime.fromisoformat(daemon_with_agents.show("/v1/agents/sales")["created_at"]).timestamp())
    for path in LISTS:
        models = listed(daemon_with_agents, path)
        assert [model["id"] for model in models] == ["svc-agent", "svc-agent:legal", "svc-agent:sales"]
        sales = {"id": "svc-agent:sales", "object": "model", "created": made, "owned_by": daemon_with_agents.team_id}
        assert (models[2], {tuple(model) for model in models}) == (sales, {tuple(models[2])})
    for model in ("svc-agent", "svc-rag-agent", "svc-agent:sales", "svc-rag-agent:sales"):
        assert daemon_with_agents.show(f"/v1/models/{model}")["id"] == model


@pytest.mark.rule("agents.models")
def test_key_sees_only_the_models_that_it_may_use(daemon_with_agents: Daemon) -> None:
    for allowed in ("svc-agent:sales", "svc-rag-agent:sales"):
        key = daemon_with_agents.add_key(models=(allowed, "svc-agent:made-later"))
        for path in LISTS:
            assert [model["id"] for model in listed(daemon_with_agents, path, key)] == ["svc-agent:sales"], allowed
        assert daemon_with_agents.ask("GET", "/v1/models/svc-rag-agent:sales", key=key).is_success
        details_of(daemon_with_agents.ask("GET", "/v1/models/svc-agent", key=key), "model_not_allowed")
