"""Types of agents. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Any, Literal, NotRequired, TypedDict


class PolicyFieldsDict(TypedDict):
    """What an agent may search. Omitted fields are unchanged.

    A list of buckets or sources also sets `scope`. Unknown fields are refused, since a misspelled field would not
    limit anything.
    """

    scope: NotRequired[Literal["buckets", "sources", "team"] | None]
    bucket_ids: NotRequired[list[str] | None]
    """Ids or slugs; slugs are stored as ids. `*` means all active buckets."""
    source_ids: NotRequired[list[str] | None]
    filters: NotRequired[dict[str, Any] | None]
    """A filter in OpenAI's syntax, as in a search; an empty object removes the filter."""
    top_k: NotRequired[int | None]
    """Default number of passages for a request; null removes the setting."""
    score_threshold: NotRequired[float | None]
    """Minimum score of passages to use; null removes the setting."""


class AgentUpdateDict(TypedDict):
    """Body of `PUT /v1/agents/{agent_id}`; omitted fields are unchanged."""

    name: NotRequired[str | None]
    role: NotRequired[str | None]
    instructions: NotRequired[str | None]
    policy: NotRequired[PolicyFieldsDict | None]
    bound_surface: NotRequired[str | None]
    """Where the agent is used, such as `widget`; an empty string removes the value."""


class AgentCreateDict(TypedDict):
    """Body of `POST /v1/agents`."""

    name: NotRequired[str | None]
    role: NotRequired[str | None]
    instructions: NotRequired[str | None]
    policy: NotRequired[PolicyFieldsDict | None]
    bound_surface: NotRequired[str | None]
    """Where the agent is used, such as `widget`; an empty string removes the value."""
    agent_id: NotRequired[str | None]
    """The new agent's id; generated if omitted."""


class PolicyDict(TypedDict):
    scope: Literal["buckets", "sources", "team"]
    bucket_ids: list[str]
    """Used if `scope` is `buckets`."""
    source_ids: list[str]
    """Used if `scope` is `sources`."""
    filters: dict[str, Any] | None
    top_k: int | None
    score_threshold: float | None


class AgentDict(TypedDict):
    id: str
    agent_id: str
    """The same as `id`."""
    object: Literal["agent"]
    model: str
    """The model id, as listed for OpenAI clients."""
    name: str
    role: str
    instructions: str
    policy: PolicyDict
    policy_error: str | None
    """Why the stored policy is invalid; null if it is valid. With an invalid policy, the agent finds nothing."""
    policy_withheld: bool
    """Whether buckets or sources are left out of `policy`, because the key may not access them."""
    bound_surface: str | None
    created_at: str
    updated_at: str


class AgentAnswerDict(AgentDict):
    request_id: str


class AgentListDict(TypedDict):
    team_id: str
    agents: list[AgentDict]
    """The agents, including the default agent, ordered by id."""
    has_more: NotRequired[bool]
    last_id: NotRequired[str | None]
    request_id: str


class AgentDeletedDict(TypedDict):
    id: str
    agent_id: str
    object: Literal["agent"]
    deleted: Literal[True]
    request_id: str


class ModelDict(TypedDict):
    """An agent as a model of OpenAI's API."""

    id: str
    object: Literal["model"]
    created: int
    """Unix time in seconds."""
    owned_by: str


class ModelAnswerDict(ModelDict):
    request_id: str


class ModelListDict(TypedDict):
    object: Literal["list"]
    data: list[ModelDict]
    request_id: str
