"""Both spellings of a model id name an agent, and a key limited to some models may use their agents only."""

import pytest

from svc_daemon.core.access.model_ids import agent_of, is_allowed, is_model_spelling
from svc_daemon.errors import NotFound


@pytest.mark.rule("model.spellings", "version.models")
def test_both_spellings_of_a_model_name_the_agent() -> None:
    for model, agent_id in [
        *(("svc-agent", "default"), ("svc-rag-agent", "default"), ("svc-agent:sales", "sales")),
        *(("svc-rag-agent:sales", "sales"), ("svc-agent:a:b", "a:b")),
    ]:
        assert agent_of(model) == agent_id, model
    for model in ["", "gpt-5", "svc-agent:", "svc-agents", "SVC-AGENT", ":svc-agent"]:
        with pytest.raises(NotFound) as refused:
            agent_of(model)
        assert refused.value.code == "model_not_found", model


@pytest.mark.parametrize("agent_id", ["svc-agent", "svc-rag-agent", "SVC-Agent", "svc-agents", "default"])
def test_a_spelling_of_a_model_is_not_an_agent_id(agent_id: str) -> None:
    assert is_model_spelling(agent_id) is (agent_id not in ("svc-agents", "default"))


@pytest.mark.parametrize(
    ("models", "agent_id", "allowed"),
    [
        *((None, "sales", True), ((), "default", False), (("svc-agent",), "sales", False)),
        *((("svc-agent",), "default", True), (("svc-rag-agent",), "default", True)),
        *((("svc-rag-agent:default",), "default", True), (("svc-agent:sales", "svc-agent:b"), "sales", True)),
    ],
)
def test_a_list_of_models_allows_their_agents(models: tuple[str, ...] | None, agent_id: str, allowed: bool) -> None:
    assert is_allowed(models, agent_id) is allowed
