"""Agents: who answers, and what its policy lets it retrieve.

    scope       retrieves what is indexed and
    buckets     an active member of one of `bucket_ids`; `*` stands for every active bucket. Never a Q and A
    sources     one of `source_ids`, a Q and A too, whatever active bucket it is in, or in none
    team        in any active bucket or in none, a Q and A too

A policy narrows what the caller may see, and never widens it. It fails closed: text that is not a whole policy, with
every field that `policy_text` writes and no other, retrieves nothing.

Of a policy, what is not sent stays, so that a change of one field widens nothing by leaving out the others. Buckets or
sources that are sent choose the scope where that isn't sent; what the scope doesn't go by is dropped.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from svc_daemon.core.ids import BUCKET, DEFAULT_AGENT, SOURCE, is_id
from svc_daemon.core.search.filters import check_filter
from svc_daemon.errors import ServiceError
from svc_daemon.wire.codes import ErrorCode

BUCKETS, SOURCES, TEAM = "buckets", "sources", "team"
SCOPES = (BUCKETS, SOURCES, TEAM)
#: Stands in `bucket_ids` for every active bucket of the team.
EVERY_BUCKET = "*"
DEFAULT_NAME = "Default agent"


class PolicyFault(ValueError):
    """What is wrong with the text of a policy, as the end of a sentence about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalPolicy:
    """What an agent retrieves."""

    #: `buckets`, `sources` or `team`.
    scope: str = BUCKETS
    #: Counts with the scope `buckets`.
    bucket_ids: tuple[str, ...] = ()
    #: Counts with the scope `sources`.
    source_ids: tuple[str, ...] = ()
    #: In the grammar of `filters`; None lets everything through.
    filters: dict[str, Any] | None = None
    #: How many passages, where the caller doesn't say.
    top_k: int | None = None
    #: 0 to 1; passages below it are not retrieved.
    score_threshold: float | None = None

    @property
    def goes_by_bucket(self) -> bool:
        """Whether sources are found through their buckets only: no Q and A, and nothing that is in no bucket."""
        return self.scope == BUCKETS

    @property
    def is_empty(self) -> bool:
        """Whether it goes by a list in which nothing stands."""
        return self.scope != TEAM and not (self.bucket_ids if self.scope == BUCKETS else self.source_ids)

    def covers(self, bucket_id: str) -> bool:
        """Whether members of the bucket may be retrieved."""
        return self.scope != BUCKETS or EVERY_BUCKET in self.bucket_ids or bucket_id in self.bucket_ids

    def is_within(self, other: "RetrievalPolicy") -> bool:
        """Whether the other one retrieves all that this one does. In doubt it doesn't."""
        if self.scope == BUCKETS and not self.bucket_ids:
            return True
        return self._looks_within(other) and self._sifts_like(other)

    def _looks_within(self, other: "RetrievalPolicy") -> bool:
        """Whether it looks nowhere else."""
        if other.scope == TEAM:
            return True
        if self.scope != other.scope:
            return False
        if other.scope == SOURCES:
            return set(self.source_ids) <= set(other.source_ids)
        return all(other.covers(bucket_id) for bucket_id in self.bucket_ids)

    def _sifts_like(self, other: "RetrievalPolicy") -> bool:
        """Whether it lets nothing through that the other doesn't."""
        kept = (self.filters, *(self.filters["filters"] if self.filters and self.filters["type"] == "and" else ()))
        return (other.filters is None or other.filters in kept) and (self.score_threshold or 0) >= (
            other.score_threshold or 0
        )


#: Every active bucket: what no agent at all retrieves, and a new team's default one.
EVERYTHING = RetrievalPolicy(bucket_ids=(EVERY_BUCKET,))
NOTHING = RetrievalPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamAgent:
    """One agent of a team."""

    #: What stands behind the colon of its model id; `default` for the default one.
    id: str
    team_id: str
    name: str
    #: Who it is, in a few words.
    role: str = ""
    #: How it answers.
    instructions: str = ""
    policy: RetrievalPolicy = NOTHING
    #: Why the stored policy counts as one that retrieves nothing; None for a whole one.
    policy_fault: str | None = None
    #: Where people meet it, such as `widget`: in the way of its deletion.
    bound_surface: str | None = None
    created_at: str
    updated_at: str


def lost_default(team_id: str) -> TeamAgent:
    """What stands for a default agent that somebody took away: it retrieves nothing."""
    return TeamAgent(
        id=DEFAULT_AGENT, team_id=team_id, name=DEFAULT_NAME, policy_fault="is missing", created_at="", updated_at=""
    )


def policy_text(policy: RetrievalPolicy) -> str:
    """The policy as it is stored."""
    return json.dumps(asdict(policy))


def read_policy(text: str) -> RetrievalPolicy:
    """The policy that is stored so; raises PolicyFault for what is no whole one."""
    try:
        stored = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise PolicyFault("is no JSON") from error
    names = {field.name for field in fields(RetrievalPolicy)}
    if not isinstance(stored, dict) or stored.keys() != names:
        raise PolicyFault(f"is no object with exactly {', '.join(sorted(names))}")
    if not isinstance(stored["scope"], str) or stored["scope"] not in SCOPES:
        raise PolicyFault(f"has a scope other than {', '.join(SCOPES)}")
    _check_names(stored)
    _check_numbers(stored)
    _check_filters(stored["filters"])
    return RetrievalPolicy(
        **{**stored, "bucket_ids": tuple(stored["bucket_ids"]), "source_ids": tuple(stored["source_ids"])}
    )


def _check_names(stored: dict[str, Any]) -> None:
    if not _is_list_of(stored["bucket_ids"], BUCKET, (EVERY_BUCKET,)):
        raise PolicyFault("has bucket_ids that are no list of bucket ids")
    if not _is_list_of(stored["source_ids"], SOURCE):
        raise PolicyFault("has source_ids that are no list of source ids")


def _is_list_of(listed: Any, prefix: str, besides: Sequence[str] = ()) -> bool:
    return isinstance(listed, list) and all(
        isinstance(each, str) and (each in besides or is_id(each, prefix)) for each in listed
    )


def _check_numbers(stored: dict[str, Any]) -> None:
    top_k, threshold = stored["top_k"], stored["score_threshold"]
    if top_k is not None and (type(top_k) is not int or top_k < 1):
        raise PolicyFault("has a top_k that is no whole number from 1 on")
    if threshold is not None and (type(threshold) not in (int, float) or not 0 <= threshold <= 1):
        raise PolicyFault("has a score_threshold that is no number from 0 to 1")


def _check_filters(filters: Any) -> None:
    if filters is None:
        return
    try:
        check_filter(filters)
    except ServiceError as error:
        raise PolicyFault(f"has filters of which {error.message}") from error


#: What each scope goes by.
_LISTS = {BUCKETS: "bucket_ids", SOURCES: "source_ids"}

#: A path and a message.
Fault = tuple[str, str]


def invalid_profile(faults: list[Fault]) -> ServiceError:
    """A 400 `invalid_agent_profile` about several fields; at least one."""
    path, message = faults[0]
    told = f"{path}: {message}" if len(faults) == 1 else f"{len(faults)} fields of the agent are not valid."
    listed = [{"path": path, "message": message} for path, message in faults]
    return ServiceError(ErrorCode.INVALID_AGENT_PROFILE, told, errors=listed)


def find_faults(sent: Mapping[str, Any], most_results: int) -> Iterator[Fault]:
    """What is wrong with fields that fit their types; a search gives `most_results` at most."""
    for field in ("name", "bound_surface"):
        if not sent.get(field, "").isprintable():
            yield field, "has no control characters."
    if "name" in sent and not sent["name"].strip():
        yield "name", "must not be blank."
    top_k = sent.get("policy", {}).get("top_k")
    if top_k is not None and top_k > most_results:
        yield "policy.top_k", f"must be 1 to {most_results}, not {top_k}."
    if filters := sent.get("policy", {}).get("filters"):
        try:
            check_filter(filters, "policy.filters")
        except ServiceError as error:
            yield from ((each["path"], each["message"]) for each in error.details["errors"])


def change_policy(policy: RetrievalPolicy, sent: Mapping[str, Any]) -> RetrievalPolicy:
    """The policy with what was sent, its ids found; raises `invalid_agent_profile` where that contradicts itself."""
    scope = _scope(policy, sent)
    if faults := list(_misplaced(policy, scope, sent)):
        raise invalid_profile(faults)
    changed: dict[str, Any] = {name: sent[name] for name in ("top_k", "score_threshold") if name in sent}
    for other, field in _LISTS.items():
        changed[field] = tuple(sent.get(field, getattr(policy, field))) if other == scope else ()
    if "filters" in sent:
        changed["filters"] = sent["filters"] or None
    return replace(policy, scope=scope, **changed)


def _scope(policy: RetrievalPolicy, sent: Mapping[str, Any]) -> str:
    if "scope" in sent:
        return str(sent["scope"])
    chosen = [scope for scope, field in _LISTS.items() if sent.get(field)] or [
        scope for scope, field in _LISTS.items() if field in sent
    ]
    return chosen[0] if chosen else policy.scope


def _misplaced(policy: RetrievalPolicy, scope: str, sent: Mapping[str, Any]) -> Iterator[Fault]:
    for other, field in _LISTS.items():
        if other != scope and sent.get(field):
            yield f"policy.{field}", f"counts with the scope {other!r} only, and the scope is {scope!r}."
    own = _LISTS.get(scope)
    if own is not None and own not in sent and scope != policy.scope:
        yield f"policy.{own}", f"must be sent: the scope {scope!r} goes by it."
