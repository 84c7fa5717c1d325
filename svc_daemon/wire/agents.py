"""Models of agents: their fields and their retrieval policy."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from svc_daemon.wire.requests import BUCKETS, FILTERS, SOURCES, NoDryRunBody, Paging, ScopedBody

#: Agent ids are used in URL paths and after the colon of a model id.
AGENT_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"

PolicyScope = Literal["buckets", "sources", "team"]
AgentId = Annotated[str, Field(pattern=AGENT_ID_PATTERN)]
#: Fields with a number. Null removes the stored number; in other fields, null is ignored.
_NUMBERS = ("top_k", "score_threshold")
Named = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=1000)]


class PolicyFields(ScopedBody):
    """What an agent may search. Omitted fields are unchanged.

    A list of buckets or sources also sets `scope`. Unknown fields are refused, since a misspelled field would not limit
    anything.
    """

    model_config = ConfigDict(extra="forbid")
    scopes: ClassVar[Mapping[str, str]] = {BUCKETS: "bucket_ids", SOURCES: "source_ids", FILTERS: "filters"}

    scope: PolicyScope | None = None
    #: Ids or slugs; slugs are stored as ids. `*` means all active buckets.
    bucket_ids: Named | None = None
    source_ids: Named | None = None
    #: A filter in OpenAI's syntax, as in a search; an empty object removes the filter.
    filters: dict[str, Any] | None = None
    #: Default number of passages for a request; null removes the setting.
    top_k: Annotated[int, Field(ge=1)] | None = None
    #: Minimum score of passages to use; null removes the setting.
    score_threshold: Annotated[float, Field(ge=0, le=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, fields: Any) -> Any:
        """Remove fields that are null, except fields with a number, in which null has a meaning."""
        if not isinstance(fields, dict):
            return fields
        if unknown := sorted(map(str, fields.keys() - cls.model_fields.keys())):
            raise ValueError(f"has no field {unknown[0]!r}; it has {', '.join(cls.model_fields)}.")
        return {name: value for name, value in fields.items() if value is not None or name in _NUMBERS}


class AgentFields(ScopedBody):
    """The fields of an agent. Only `policy` limits what the agent searches, so limits in other fields are refused."""

    foreign_scopes: ClassVar[Mapping[str, str]] = {"scorethreshold": FILTERS, "topk": FILTERS}
    #: Fields that are not refused, so that clients can send back an agent as they received it.
    unscoped: ClassVar[Collection[str]] = ("agent", "agentid")
    refusal: ClassVar[str] = "is not a field of an agent; its `policy` sets what it searches."

    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    role: Annotated[str, Field(max_length=2000)] | None = None
    instructions: Annotated[str, Field(max_length=20_000)] | None = None
    policy: PolicyFields | None = None
    #: Where the agent is used, such as `widget`; an empty string removes the value.
    bound_surface: Annotated[str, Field(max_length=200)] | None = None


class AgentUpdate(AgentFields, NoDryRunBody):
    """Body of `PUT /v1/agents/{agent_id}`; omitted fields are unchanged."""


class AgentCreate(AgentFields):
    """Body of `POST /v1/agents`."""

    #: The new agent's id; generated if omitted.
    agent_id: AgentId | None = None
    #: Only validate the request; nothing is created.
    dry_run: bool = False


class Policy(TypedDict):
    scope: PolicyScope
    #: Used if `scope` is `buckets`.
    bucket_ids: list[str]
    #: Used if `scope` is `sources`.
    source_ids: list[str]
    filters: dict[str, Any] | None
    top_k: int | None
    score_threshold: float | None


class Agent(TypedDict):
    id: str
    #: The same as `id`.
    agent_id: str
    object: Literal["agent"]
    #: The model id, as listed for OpenAI clients.
    model: str
    name: str
    role: str
    instructions: str
    policy: Policy
    #: Why the stored policy is invalid; null if it is valid. With an invalid policy, the agent finds nothing.
    policy_error: str | None
    #: Whether buckets or sources are left out of `policy`, because the key may not access them.
    policy_withheld: bool
    bound_surface: str | None
    created_at: str
    updated_at: str


class AgentAnswer(Agent):
    request_id: str


class AgentList(Paging):
    team_id: str
    #: The agents, including the default agent, ordered by id.
    agents: list[Agent]
    request_id: str


class AgentDeleted(TypedDict):
    id: str
    agent_id: str
    object: Literal["agent"]
    deleted: Literal[True]
    request_id: str
