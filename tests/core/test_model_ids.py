"""Which agent a model id names."""

import pytest

from svc_daemon.core.model_ids import agent_of, is_allowed, is_model_spelling
from svc_daemon.errors import NotFound


@pytest.mark.parametrize(
    ("model", "agent_id"),
    [
        ("svc-agent", "default"),
        ("svc-rag-agent", "default"),
        ("svc-agent:sales", "sales"),
        ("svc-rag-agent:sales", "sales"),
        ("svc-agent:a:b", "a:b"),
    ],
)
def test_both_spellings_name_an_agent(model: str, agent_id: str) -> None:
    assert agent_of(model) == agent_id


@pytest.mark.parametrize("model", ["", "gpt-5", "svc-agent:", "svc-agents", "SVC-AGENT", ":svc-agent"])
def test_anything_else_is_no_model_of_ours(model: str) -> None:
    with pytest.raises(NotFound) as refused:
        agent_of(model)
    assert refused.value.code == "model_not_found"


@pytest.mark.parametrize(
    ("agent_id", "is_one"),
    [("svc-agent", True), ("svc-rag-agent", True), ("SVC-Agent", True), ("svc-agents", False), ("default", False)],
)
def test_a_models_own_spelling_is_no_id(agent_id: str, is_one: bool) -> None:
    assert is_model_spelling(agent_id) is is_one


@pytest.mark.parametrize(
    ("models", "agent_id", "allowed"),
    [
        (None, "sales", True),
        ((), "default", False),
        (("svc-agent",), "default", True),
        (("svc-rag-agent",), "default", True),
        (("svc-rag-agent:default",), "default", True),
        (("svc-agent",), "sales", False),
        (("svc-agent:sales", "svc-agent:b"), "sales", True),
    ],
)
def test_a_list_of_models_allows_their_agents(models: tuple[str, ...] | None, agent_id: str, allowed: bool) -> None:
    assert is_allowed(models, agent_id) is allowed
