"""Model ids, by which clients choose an agent, and which of them a key limited to some models may use."""

from collections.abc import Collection

from svc_daemon.errors import NotFound
from svc_daemon.wire.light.error_codes import ErrorCode

#: The accepted prefixes of model ids. Responses have the first one; old clients may send the second.
SPELLINGS = ("svc-agent", "svc-rag-agent")
#: The agent that a model id without a colon means.
DEFAULT_AGENT = "default"


def is_model(model: str) -> bool:
    """Return whether this is a model id."""
    spelling, separator, agent_id = model.partition(":")
    return spelling in SPELLINGS and bool(agent_id or not separator)


def agent_of(model: str) -> str:
    """Return the agent id in a model id. Raises `model_not_found`."""
    if not is_model(model):
        raise NotFound(
            ErrorCode.MODEL_NOT_FOUND,
            f"{model!r} is not the model id of an agent, such as {SPELLINGS[0]!r} or '{SPELLINGS[0]}:AGENT_ID'.",
        )
    return model.partition(":")[2] or DEFAULT_AGENT


def is_allowed(models: Collection[str] | None, agent_id: str) -> bool:
    """Return whether a key limited to these models may use the agent; None allows every agent."""
    return models is None or any(agent_of(model) == agent_id for model in models)


def is_model_spelling(agent_id: str) -> bool:
    """Return whether the agent id could be confused with a prefix of model ids."""
    return agent_id.lower() in SPELLINGS


def model_of(agent_id: str) -> str:
    """Return the model id by which clients name the agent."""
    return SPELLINGS[0] if agent_id == DEFAULT_AGENT else f"{SPELLINGS[0]}:{agent_id}"
