"""Agents on the wire: who answers, what its policy lets it retrieve, and the models that they are to clients."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator

from svc_daemon.wire.models import WireModel
from svc_daemon.wire.requests import NoDryRunBody
from svc_daemon.wire.scopes import BUCKETS, FILTERS, SOURCES, ScopedBody

#: It is used in paths and behind the colon of a model id.
AGENT_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"

AgentId = Annotated[str, Field(pattern=AGENT_ID_PATTERN)]
#: The fields of a policy that null takes away.
_NUMBERS = ("top_k", "score_threshold")
Named = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=1000)]


class PolicyFields(ScopedBody):
    """What an agent is to retrieve; what is not sent stays. Lists of buckets or of sources choose the scope, too.

    Other fields are refused: one that is misspelled and passed over would retrieve more than was meant. A plain name
    for one of these, such as `buckets` for `bucket_ids`, is taken.
    """

    model_config = ConfigDict(extra="forbid")
    scopes: ClassVar[Mapping[str, str]] = {BUCKETS: "bucket_ids", SOURCES: "source_ids", FILTERS: "filters"}

    scope: Literal["buckets", "sources", "team"] | None = None
    #: By id or slug, ids are kept; `*` is every active bucket.
    bucket_ids: Named | None = None
    source_ids: Named | None = None
    #: OpenAI's grammar, as in a search; an empty object takes them away.
    filters: dict[str, Any] | None = None
    #: Null takes it away, as the next one.
    top_k: Annotated[int, Field(ge=1)] | None = None
    score_threshold: Annotated[float, Field(ge=0, le=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, fields: Any) -> Any:
        """Null is what is not sent, as everywhere, but for the numbers: no other value could take one away."""
        if not isinstance(fields, dict):
            return fields
        if unknown := sorted(map(str, fields.keys() - cls.model_fields.keys())):
            raise ValueError(f"has no field {unknown[0]!r}; it has {', '.join(cls.model_fields)}.")
        return {name: value for name, value in fields.items() if value is not None or name in _NUMBERS}


class AgentFields(ScopedBody):
    """What an agent is to be. A scope beside the policy is refused: the agent would be left with every bucket."""

    foreign_scopes: ClassVar[Mapping[str, str]] = {"scorethreshold": FILTERS, "topk": FILTERS}
    #: A client that sends back what it was shown sends the agent's own id.
    unscoped: ClassVar[Collection[str]] = ("agent", "agentid")
    refusal: ClassVar[str] = "is no field of an agent; what it searches is in its `policy`."

    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    role: Annotated[str, Field(max_length=2000)] | None = None
    instructions: Annotated[str, Field(max_length=20_000)] | None = None
    policy: PolicyFields | None = None
    #: Where people meet it, such as `widget`; an empty text takes it away.
    bound_surface: Annotated[str, Field(max_length=200)] | None = None


class AgentUpdate(AgentFields, NoDryRunBody):
    """Body of `PUT /v1/agents/{agent_id}`; what is not sent stays."""


class AgentCreate(AgentFields):
    """Body of `POST /v1/agents`."""

    #: One is made where none is sent.
    agent_id: AgentId | None = None
    #: Only validate: nothing is made, no idempotency key is claimed.
    dry_run: bool = False


class Policy(WireModel):
    scope: Literal["buckets", "sources", "team"]
    #: Counts with the scope `buckets`.
    bucket_ids: list[str]
    #: Counts with the scope `sources`.
    source_ids: list[str]
    filters: dict[str, Any] | None
    top_k: int | None
    score_threshold: float | None


class Agent(WireModel):
    id: str
    #: The same; part of the model id.
    agent_id: str
    object: Literal["agent"] = "agent"
    #: As it is advertised.
    model: str
    name: str
    role: str
    instructions: str
    policy: Policy
    #: Why the stored policy counts as one that retrieves nothing; null for a whole one.
    policy_error: str | None
    #: The policy names buckets or sources that the key can't reach; they are left out here.
    policy_withheld: bool = False
    bound_surface: str | None
    created_at: str
    updated_at: str


class AgentAnswer(Agent):
    request_id: str


class AgentList(WireModel):
    team_id: str
    #: By id, the default one among them.
    agents: list[Agent]
    has_more: bool | None = None
    last_id: str | None = None
    request_id: str


class AgentDeleted(WireModel):
    id: str
    agent_id: str
    object: Literal["agent"] = "agent"
    deleted: Literal[True] = True
    request_id: str


class Model(WireModel):
    """An agent as OpenAI's clients list models."""

    id: str
    object: Literal["model"] = "model"
    #: Unix seconds.
    created: int
    owned_by: str


class ModelAnswer(Model):
    request_id: str


class ModelList(WireModel):
    object: Literal["list"] = "list"
    data: list[Model]
    request_id: str
