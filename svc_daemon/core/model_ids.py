"""Model ids: which agent a caller means (specification, Agent and model IDs). Both spellings name the same agents."""

from collections.abc import Collection

from svc_daemon.errors import NotFound
from svc_daemon.wire.codes import ErrorCode

#: The advertised spelling and the one of old clients.
SPELLINGS = ("svc-agent", "svc-rag-agent")
#: The agent id that a bare spelling stands for.
DEFAULT_AGENT = "default"


def agent_of(model: str) -> str:
    """The agent id in a model id; raises `model_not_found` for what is no agent's."""
    spelling, separator, agent_id = model.partition(":")
    if spelling not in SPELLINGS or (separator and not agent_id):
        raise NotFound(
            ErrorCode.MODEL_NOT_FOUND,
            f"{model!r} is no agent's model id: that is {SPELLINGS[0]!r}, or '{SPELLINGS[0]}:' and an agent's id.",
        )
    return agent_id or DEFAULT_AGENT


def is_allowed(models: Collection[str] | None, agent_id: str) -> bool:
    """Whether a key with these allowed models, in either spelling, may use the agent; None allows all."""
    return models is None or any(agent_of(model) == agent_id for model in models)


def is_model_spelling(agent_id: str) -> bool:
    """Whether it reads as the default agent's model id: of an agent called so nobody could say which is meant."""
    return agent_id.lower() in SPELLINGS


def model_of(agent_id: str) -> str:
    """The model id under which an agent is advertised."""
    return SPELLINGS[0] if agent_id == DEFAULT_AGENT else f"{SPELLINGS[0]}:{agent_id}"
