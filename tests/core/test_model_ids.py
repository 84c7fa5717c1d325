"""Which agent a model id names."""

import pytest

from svc_daemon.core.model_ids import agent_of
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
