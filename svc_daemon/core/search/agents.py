"""Agents, and the sources that their policies allow.

The scope of a policy selects indexed sources:

    buckets     active sources in the buckets of `bucket_ids`, or in every active bucket if that is `*`; no Q&A sources
    sources     the sources in `source_ids`, including Q&A sources, in any active bucket or in no bucket
    team        all sources of the team, including Q&A sources, in any active bucket or in no bucket

A policy only restricts what the caller may see. An invalid stored policy retrieves nothing.

An update keeps the policy fields that are not sent. If `bucket_ids` or `source_ids` is sent without a scope, the scope
becomes `buckets` or `sources`.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

from svc_daemon.core.access.model_ids import DEFAULT_AGENT
from svc_daemon.core.ids import BUCKET, SOURCE, is_id
from svc_daemon.core.search.filters import check_filter
from svc_daemon.errors import ServiceError
from svc_daemon.wire.agents import PolicyScope
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.names import find_fault_of_name, find_fault_of_text
from svc_daemon.wire.light.parsing import parse_json

BUCKETS: Final = "buckets"
SOURCES: Final = "sources"
TEAM: Final = "team"
SCOPES = (BUCKETS, SOURCES, TEAM)
#: The value in `bucket_ids` that means every active bucket of the team.
EVERY_BUCKET = "*"
DEFAULT_NAME = "Default agent"


class PolicyFault(ValueError):
    """A stored policy is invalid. The message completes a sentence, such as "is missing"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalPolicy:
    """Which sources an agent may retrieve, and how many passages."""

    #: `buckets`, `sources` or `team`.
    scope: PolicyScope = BUCKETS
    #: Buckets to retrieve from, for the scope `buckets`.
    bucket_ids: tuple[str, ...] = ()
    #: Sources to retrieve, for the scope `sources`.
    source_ids: tuple[str, ...] = ()
    #: A filter (see `core.search.filters`), or None.
    filters: dict[str, Any] | None = None
    #: Number of passages to retrieve if the caller doesn't set it.
    top_k: int | None = None
    #: Minimum score of retrieved passages, 0 to 1.
    score_threshold: float | None = None

    @property
    def goes_by_bucket(self) -> bool:
        """Return whether only sources in buckets are retrieved, of the types in `core.readiness.is_found_by_bucket`."""
        return self.scope == BUCKETS

    @property
    def is_empty(self) -> bool:
        """Return whether the policy retrieves nothing, because its list of buckets or sources is empty."""
        return self.scope != TEAM and not (self.bucket_ids if self.scope == BUCKETS else self.source_ids)

    def covers(self, bucket_id: str) -> bool:
        """Return whether the policy allows sources in the bucket to be retrieved."""
        return self.scope != BUCKETS or EVERY_BUCKET in self.bucket_ids or bucket_id in self.bucket_ids

    def is_within(self, other: "RetrievalPolicy") -> bool:
        """Return whether `other` allows everything that this policy allows; False if that is uncertain."""
        if self.scope == BUCKETS and not self.bucket_ids:
            return True
        if other.scope not in (TEAM, self.scope):
            return False
        if other.scope == SOURCES and not set(self.source_ids) <= set(other.source_ids):
            return False
        if other.scope == BUCKETS and not all(map(other.covers, self.bucket_ids)):
            return False
        kept = (self.filters, *(self.filters["filters"] if self.filters and self.filters["type"] == "and" else ()))
        if other.filters is not None and other.filters not in kept:
            return False
        return (self.score_threshold or 0) >= (other.score_threshold or 0)


#: The policy of a new team's default agent and of requests without an agent.
EVERYTHING = RetrievalPolicy(bucket_ids=(EVERY_BUCKET,))
NOTHING = RetrievalPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamAgent:
    """An agent of a team: what it retrieves, and how it answers."""

    #: The part of the model id after the colon; `default` for the default agent.
    id: str
    team_id: str
    name: str
    #: A short description of the agent's role, such as `the HR assistant`.
    role: str = ""
    #: Instructions for the model on how to answer.
    instructions: str = ""
    policy: RetrievalPolicy = NOTHING
    #: Why the stored policy is invalid; None if it is valid.
    policy_fault: str | None = None
    #: Where the agent is in use, such as `widget`; an agent in use can't be deleted.
    bound_surface: str | None = None
    created_at: str
    updated_at: str


def lost_default(team_id: str) -> TeamAgent:
    """Build an agent that retrieves nothing, for a team without a stored default agent."""
    return TeamAgent(
        id=DEFAULT_AGENT, team_id=team_id, name=DEFAULT_NAME, policy_fault="is missing", created_at="", updated_at=""
    )


def policy_text(policy: RetrievalPolicy) -> str:
    """Serialize the policy for storage."""
    return json.dumps(asdict(policy))


def read_policy(text: str) -> RetrievalPolicy:
    """Parse a stored policy; raises PolicyFault if it is incomplete or invalid."""
    try:
        stored = parse_json(text)
    except (TypeError, ValueError) as error:
        raise PolicyFault("is not JSON") from error
    names = {field.name for field in fields(RetrievalPolicy)}
    if not isinstance(stored, dict) or stored.keys() != names:
        raise PolicyFault(f"is not an object with exactly {', '.join(sorted(names))}")
    if not isinstance(stored["scope"], str) or stored["scope"] not in SCOPES:
        raise PolicyFault(f"has a scope other than {', '.join(SCOPES)}")
    for name, prefix, others in (("bucket_ids", BUCKET, (EVERY_BUCKET,)), ("source_ids", SOURCE, ())):
        listed = stored[name]
        if not isinstance(listed, list) or not all(
            isinstance(each, str) and (each in others or is_id(each, prefix)) for each in listed
        ):
            raise PolicyFault(f"has {name} that are not a list of {name.removesuffix('_ids')} ids")
    top_k, threshold = stored["top_k"], stored["score_threshold"]
    if top_k is not None and (type(top_k) is not int or top_k < 1):
        raise PolicyFault("has a top_k that is not a whole number of at least 1")
    if threshold is not None and (type(threshold) not in (int, float) or not 0 <= threshold <= 1):
        raise PolicyFault("has a score_threshold that is not a number from 0 to 1")
    try:
        if stored["filters"] is not None:
            check_filter(stored["filters"])
    except ServiceError as error:
        raise PolicyFault(f"has filters of which {error.message}") from error
    return RetrievalPolicy(
        **{**stored, "bucket_ids": tuple(stored["bucket_ids"]), "source_ids": tuple(stored["source_ids"])}
    )


#: The policy field that each scope uses.
_LISTS: dict[PolicyScope, str] = {BUCKETS: "bucket_ids", SOURCES: "source_ids"}

#: An invalid field: its path, and an error message.
Fault = tuple[str, str]


def invalid_profile(faults: list[Fault]) -> ServiceError:
    """Build a 400 `invalid_agent_profile` for one or more fields of an agent."""
    path, message = faults[0]
    summary = f"{path}: {message}" if len(faults) == 1 else f"{len(faults)} fields of the agent are not valid."
    listed = [{"path": path, "message": message} for path, message in faults]
    return ServiceError(ErrorCode.INVALID_AGENT_PROFILE, summary, errors=listed)


def find_faults(sent: Mapping[str, Any], most_results: int) -> Iterator[Fault]:
    """Yield the errors in the values of the sent fields; the caller has checked their types.

    `most_results` is the maximum number of passages of a search.
    """
    for field in ("name", "bound_surface", "role", "instructions"):
        text = sent.get(field, "")
        fault = find_fault_of_name(text) if field in {"name", "bound_surface"} and text else find_fault_of_text(text)
        if fault:
            yield field, fault
    top_k = sent.get("policy", {}).get("top_k")
    if top_k is not None and top_k > most_results:
        yield "policy.top_k", f"must be 1 to {most_results}, not {top_k}."
    if filters := sent.get("policy", {}).get("filters"):
        try:
            check_filter(filters, "policy.filters")
        except ServiceError as error:
            yield from ((each["path"], each["message"]) for each in error.details["errors"])


def change_policy(policy: RetrievalPolicy, sent: Mapping[str, Any]) -> RetrievalPolicy:
    """Return the policy with the sent fields changed. Raises `invalid_agent_profile` if they contradict each other."""
    chosen = [scope for scope, field in _LISTS.items() if sent.get(field)]
    chosen += [scope for scope, field in _LISTS.items() if field in sent]
    scope: PolicyScope = sent["scope"] if "scope" in sent else next(iter(chosen), policy.scope)
    faults = [
        (f"policy.{field}", f"counts with the scope {other!r} only, and the scope is {scope!r}.")
        for other, field in _LISTS.items()
        if other != scope and sent.get(field)
    ]
    own = _LISTS.get(scope)
    if own is not None and own not in sent and scope != policy.scope:
        faults.append((f"policy.{own}", f"must be sent: the scope {scope!r} goes by it."))
    if faults:
        raise invalid_profile(faults)
    changed: dict[str, Any] = {name: sent[name] for name in ("top_k", "score_threshold") if name in sent}
    for other, field in _LISTS.items():
        changed[field] = tuple(sent.get(field, getattr(policy, field))) if other == scope else ()
    if "filters" in sent:
        changed["filters"] = sent["filters"] or None
    return replace(policy, scope=scope, **changed)
