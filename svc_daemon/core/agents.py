"""Agents: who answers, and what its policy lets it retrieve.

    scope       retrieves what is indexed and
    buckets     an active member of one of `bucket_ids`; `*` stands for every active bucket. Never a Q and A
    sources     one of `source_ids`, a Q and A too, whatever active bucket it is in, or in none
    team        in any active bucket or in none, a Q and A too

A policy narrows what the caller may see, and never widens it. It fails closed: text that is not a whole policy, with
every field that `policy_text` writes and no other, retrieves nothing.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from svc_daemon.core.filters import check_filter
from svc_daemon.core.ids import BUCKET, SOURCE, is_id
from svc_daemon.core.model_ids import DEFAULT_AGENT
from svc_daemon.errors import ServiceError

BUCKETS, SOURCES, TEAM = "buckets", "sources", "team"
SCOPES = (BUCKETS, SOURCES, TEAM)
#: Stands in `bucket_ids` for every active bucket of the team.
EVERY_BUCKET = "*"
DEFAULT_NAME = "Default agent"


class PolicyFault(ValueError):
    """What is wrong with the text of a policy, as the end of a sentence about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
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

    def is_within(self, other: "Policy") -> bool:
        """Whether the other one retrieves all that this one does. In doubt it doesn't."""
        if self.scope == BUCKETS and not self.bucket_ids:
            return True
        return self._looks_within(other) and self._sifts_like(other)

    def _looks_within(self, other: "Policy") -> bool:
        """Whether it looks nowhere else."""
        if other.scope == TEAM:
            return True
        if self.scope != other.scope:
            return False
        if other.scope == SOURCES:
            return set(self.source_ids) <= set(other.source_ids)
        return all(other.covers(bucket_id) for bucket_id in self.bucket_ids)

    def _sifts_like(self, other: "Policy") -> bool:
        """Whether it lets nothing through that the other doesn't."""
        kept = (self.filters, *(self.filters["filters"] if self.filters and self.filters["type"] == "and" else ()))
        return (other.filters is None or other.filters in kept) and (self.score_threshold or 0) >= (
            other.score_threshold or 0
        )


#: Every active bucket: what no agent at all retrieves, and a new team's default one.
EVERYTHING = Policy(bucket_ids=(EVERY_BUCKET,))
NOTHING = Policy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent of a team."""

    #: What stands behind the colon of its model id; `default` for the default one.
    id: str
    team_id: str
    name: str
    #: Who it is, in a few words.
    role: str = ""
    #: How it answers.
    instructions: str = ""
    policy: Policy = NOTHING
    #: Why the stored policy counts as one that retrieves nothing; None for a whole one.
    policy_fault: str | None = None
    #: Where people meet it, such as `widget`: in the way of its deletion.
    bound_surface: str | None = None
    created_at: str
    updated_at: str


def lost_default(team_id: str) -> Agent:
    """What stands for a default agent that somebody took away: it retrieves nothing."""
    return Agent(
        id=DEFAULT_AGENT, team_id=team_id, name=DEFAULT_NAME, policy_fault="is missing", created_at="", updated_at=""
    )


def policy_text(policy: Policy) -> str:
    """The policy as it is stored."""
    return json.dumps(asdict(policy))


def read_policy(text: str) -> Policy:
    """The policy that is stored so; raises PolicyFault for what is no whole one."""
    try:
        stored = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise PolicyFault("is no JSON") from error
    names = {field.name for field in fields(Policy)}
    if not isinstance(stored, dict) or stored.keys() != names:
        raise PolicyFault(f"is no object with exactly {', '.join(sorted(names))}")
    if not isinstance(stored["scope"], str) or stored["scope"] not in SCOPES:
        raise PolicyFault(f"has a scope other than {', '.join(SCOPES)}")
    _check_names(stored)
    _check_numbers(stored)
    _check_filters(stored["filters"])
    return Policy(**{**stored, "bucket_ids": tuple(stored["bucket_ids"]), "source_ids": tuple(stored["source_ids"])})


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
