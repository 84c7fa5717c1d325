"""Search: the provider finds, the state decides.

The provider is asked first and the state after it, in one snapshot: a hit counts only if its source is indexed in that
very generation and an active member of a bucket in scope. So what was deleted is missed from the moment the delete
answered, whatever the index still holds. While a team's index is made anew its searches are refused, and one that this
overtook is refused too, or asks again: an index that is being filled would answer with less than there is.

Where hits drop out, the question may be asked again. When a bucket changed since its scope was read, a source may have
been replaced in between, and the index was asked before it held the new one: asked again, a search finds the old one or
the new one, never neither. When what is gone fills the page, the next one is asked for more.

Where a search looks is the intersection of what the key may reach, what the request names and what the agent's policy
covers. A bucket that is named and that the key may not reach is missing, as everywhere; one that the agent does not
cover is left out, and a warning says so. The policy's filters, number of passages and threshold go into the request.
"""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from sqlite3 import Connection
from typing import Any

from svc_daemon.core import readiness
from svc_daemon.core.agents import EVERYTHING, SOURCES, Agent, Policy, lost_default
from svc_daemon.core.filters import check_filter, passes
from svc_daemon.core.model_ids import DEFAULT_AGENT, agent_of, is_allowed
from svc_daemon.core.refusals import refusal
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.operations.contexts import Context
from svc_daemon.operations.keys import get_usable_bucket
from svc_daemon.operations.maintenance import refuse_in_maintenance
from svc_daemon.operations.query_vectors import choose_matching
from svc_daemon.provider.contract import Hit, SearchPage, SearchQuery
from svc_daemon.provider.errors import ProviderError, SearchTimeout
from svc_daemon.store.agents import find_agent
from svc_daemon.store.buckets import Bucket, find_bucket, list_buckets, take_census
from svc_daemon.store.keys import Key
from svc_daemon.store.memberships import list_unplaced
from svc_daemon.store.sources import Source, SourceFilter, list_active_sources, list_indexed_sources, list_sources
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.searches import SearchRequest

#: How often a search asks at most.
MAX_ROUNDS = 5
#: How much more it asks for when too much of the page was gone.
GROWTH = 8


@dataclass(frozen=True, slots=True)
class Found:
    """One hit with its source, as they stood in the same snapshot."""

    hit: Hit
    source: Source
    #: The buckets in scope in which it is active.
    bucket_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Results:
    found: tuple[Found, ...]
    has_more: bool
    warnings: tuple[str, ...]
    #: Whose policy it went by; None where the request named buckets and no agent.
    agent: Agent | None = None
    #: What every hit scores at least, by the request and by the policy; None where neither says.
    score_threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to look: buckets, and within them all sources or only some."""

    #: Sources are found through their buckets; else also those that no search of a bucket finds.
    goes_by_bucket: bool
    #: Sources that are in no bucket count too.
    takes_unplaced: bool
    #: Buckets that the request named and the agent does not search.
    left_out: tuple[str, ...]
    #: Each bucket's revision when the scope was read: it moves with every change of membership.
    revisions: dict[str, int]
    source_ids: tuple[str, ...] | None
    #: The rebuild that made the index: another one at the end means that the index was another one too.
    rebuild_id: str | None

    @property
    def bucket_ids(self) -> tuple[str, ...]:
        return tuple(self.revisions)


@dataclass(frozen=True, slots=True)
class Judged:
    """A page as the state sees it."""

    results: Results
    #: Hits dropped out, and there are more behind them than were asked for.
    is_short: bool
    #: Hits dropped out because the buckets changed since the scope was read, or the index was made anew.
    is_overtaken: bool

    @property
    def is_settled(self) -> bool:
        return not self.is_short and not self.is_overtaken


async def search(context: Context, key: Key, request: SearchRequest) -> Results:
    """The best chunks for the query within what the key may reach and the agent retrieves.

    Raises `invalid_request`, `model_not_found`, `model_not_allowed`, `agent_not_found`, `bucket_not_found`,
    `metadata_filter_too_large`, `team_store_maintenance`, `bucket_store_indexing_pending`, `search_timeout` and
    `search_failed`.
    """
    _check(context, request)
    agent = _get_agent(context, key, request)
    policy = EVERYTHING if agent is None else agent.policy
    narrowed = _narrow(context, request, policy)
    scope, results = await _ask_until_settled(context, key, narrowed, policy)
    if not results.found:
        await context.read_aside(lambda connection: _refuse_if_pending(connection, request, scope))
    warnings = (*(_left_out(bucket) for bucket in scope.left_out), *results.warnings)
    return replace(results, agent=agent, score_threshold=narrowed.score_threshold, warnings=warnings)


def _check(context: Context, request: SearchRequest) -> None:
    limits = context.limits
    if not request.query.strip():
        raise refusal("query", "must not be blank.")
    if len(request.query) > limits.query_characters:
        raise refusal("query", f"has {len(request.query)} characters; the limit is {limits.query_characters}.")
    if request.max_num_results > limits.search_results:
        raise refusal("max_num_results", f"must be 1 to {limits.search_results}, not {request.max_num_results}.")
    if request.source_ids is not None and len(request.source_ids) > limits.search_sources:
        raise ServiceError(
            ErrorCode.METADATA_FILTER_TOO_LARGE,
            f"The search names {len(request.source_ids)} sources; search a bucket instead.",
            max_source_ids=limits.search_sources,
        )
    if request.buckets is not None and len(request.buckets) > limits.search_sources:
        raise refusal("buckets", f"names {len(request.buckets)} buckets; the limit is {limits.search_sources}.")
    if request.filters is not None:
        check_filter(request.filters)


def _get_agent(context: Context, key: Key, request: SearchRequest) -> Agent | None:
    """The agent that is named, the default one where nothing is; None where buckets stand for themselves."""
    if request.agent is None and request.buckets is not None:
        return None
    agent_id = DEFAULT_AGENT if request.agent is None else agent_of(request.agent)
    if not is_allowed(key.models, agent_id):
        raise ServiceError(ErrorCode.MODEL_NOT_ALLOWED, f"This key may not use the agent {agent_id!r}.")
    agent = context.look(lambda connection: find_agent(connection, key.team_id, agent_id))
    if agent is None and agent_id == DEFAULT_AGENT:
        return lost_default(key.team_id)
    if agent is None:
        raise NotFound(ErrorCode.AGENT_NOT_FOUND, f"There is no agent {agent_id!r}.", agent_id=agent_id)
    return agent


def _narrow(context: Context, request: SearchRequest, policy: Policy) -> SearchRequest:
    """The request with what the policy adds to it; raises `metadata_filter_too_large`."""
    changed: dict[str, Any] = {}
    if policy.scope == SOURCES:
        changed["source_ids"] = _common(context, policy.source_ids, request.source_ids)
    if policy.filters is not None:
        filters = [policy.filters, request.filters] if request.filters else [policy.filters]
        changed["filters"] = {"type": "and", "filters": filters}
    if policy.top_k is not None and "max_num_results" not in request.model_fields_set:
        changed["max_num_results"] = min(policy.top_k, context.limits.search_results)
    if policy.score_threshold is not None:
        changed["score_threshold"] = max(policy.score_threshold, request.score_threshold or 0.0)
    return request.model_copy(update=changed)


def _common(context: Context, source_ids: Sequence[str], named: list[str] | None) -> list[str]:
    """The policy's sources that the request doesn't rule out."""
    if len(source_ids) > context.limits.search_sources:
        raise ServiceError(
            ErrorCode.METADATA_FILTER_TOO_LARGE,
            f"The agent searches {len(source_ids)} sources by their ids; give it a bucket instead.",
            max_source_ids=context.limits.search_sources,
        )
    return [source_id for source_id in source_ids if named is None or source_id in named]


def _find_scope(connection: Connection, context: Context, key: Key, request: SearchRequest, policy: Policy) -> Scope:
    buckets = _buckets(connection, key, request.buckets)
    scope = Scope(
        goes_by_bucket=policy.goes_by_bucket or request.buckets is not None,
        takes_unplaced=not policy.goes_by_bucket and request.buckets is None and key.buckets is None,
        left_out=tuple(bucket.slug for bucket in buckets if request.buckets and not policy.covers(bucket.id)),
        revisions={bucket.id: bucket.revision for bucket in buckets if policy.covers(bucket.id)},
        source_ids=None if request.source_ids is None else tuple(request.source_ids),
        rebuild_id=refuse_in_maintenance(connection, context, key.team_id),
    )
    # Where buckets don't say what the key may reach, the index is asked for the sources in them by name.
    if request.filters is None and not request.tags and (scope.goes_by_bucket or key.buckets is None):
        return scope
    members = _members(connection, key, scope)
    wanted = dict.fromkeys(source.id for source in members if _is_wanted(source, request))
    return replace(scope, source_ids=tuple(wanted))


def _buckets(connection: Connection, key: Key, named: list[str] | None) -> list[Bucket]:
    """The buckets that were named, else every active one that the key may reach."""
    if named is not None:
        return [get_usable_bucket(connection, key, bucket) for bucket in named]
    active = list_buckets(connection, key.team_id, (readiness.ACTIVE,))
    return [bucket for bucket in active if key.buckets is None or bucket.id in key.buckets]


def _members(connection: Connection, key: Key, scope: Scope) -> Iterator[Source]:
    """Every source that may be in scope; whether it is, is judged with the hits."""
    if scope.goes_by_bucket:
        for bucket_id in scope.bucket_ids:
            yield from list_sources(connection, key.team_id, bucket_id, SourceFilter())
        return
    for source in list_indexed_sources(connection, key.team_id):
        if scope.takes_unplaced or not scope.revisions.keys().isdisjoint(source.places):
            yield source


def _is_wanted(source: Source, request: SearchRequest) -> bool:
    if request.source_ids is not None and source.id not in request.source_ids:
        return False
    if not set(request.tags or ()) <= set(source.tags):
        return False
    return request.filters is None or passes(request.filters, _attributes(source))


def _attributes(source: Source) -> dict[str, object]:
    own = {name: getattr(source, name) for name in ("type", "filename", "title", "content_type", "source_url")}
    return {**source.metadata, **own}


async def _ask_until_settled(
    context: Context, key: Key, request: SearchRequest, policy: Policy
) -> tuple[Scope, Results]:
    deadline_s = context.clock.monotonic() + context.limits.search_seconds
    matching = await choose_matching(context, request, deadline_s)
    # Some hits may turn out to be gone: ask for a few more than are wanted.
    limit = request.max_num_results * 2 + 5
    find_scope = partial(_find_scope, context=context, key=key, request=request, policy=policy)
    for _ in range(MAX_ROUNDS):
        scope = await context.read_aside(find_scope)
        query = SearchQuery(
            text=request.query,
            bucket_ids=scope.bucket_ids if scope.goes_by_bucket else None,
            source_ids=scope.source_ids,
            limit=limit,
            mode=matching.mode,
            vector=matching.vector,
            explain=request.explain,
            deadline_s=deadline_s,
        )
        page = await asyncio.to_thread(_ask, context, key.team_id, query)
        judge = partial(_judge, context=context, key=key, request=request, scope=scope, page=page)
        judged = await context.read_aside(judge)
        if judged.is_settled:
            break
        limit *= 1 if judged.is_overtaken else GROWTH
    return scope, replace(judged.results, warnings=(*matching.warnings, *judged.results.warnings))


def _ask(context: Context, team_id: str, query: SearchQuery) -> SearchPage:
    try:
        return context.provider.search(team_id, query)
    except ProviderError as error:
        # A rebuild that has begun since may have closed the index under the search.
        context.read(partial(refuse_in_maintenance, context=context, team_id=team_id))
        if isinstance(error, SearchTimeout):
            raise ServiceError(ErrorCode.SEARCH_TIMEOUT, budget_seconds=context.limits.search_seconds) from error
        raise ServiceError(ErrorCode.SEARCH_FAILED, str(error)) from error


def _judge(
    connection: Connection, *, context: Context, key: Key, request: SearchRequest, scope: Scope, page: SearchPage
) -> Judged:
    """What of the page counts now, and whether to ask again. Raises `team_store_maintenance`."""
    is_remade = refuse_in_maintenance(connection, context, key.team_id) != scope.rebuild_id
    sources = list_active_sources(connection, key.team_id, list({hit.source_id for hit in page.hits}))
    unplaced = list_unplaced(connection, key.team_id, list(sources)) if scope.takes_unplaced else set()
    kept = [found for hit in page.hits if (found := _keep(hit, sources.get(hit.source_id), scope, unplaced))]
    has_lost = len(kept) < len(page.hits)
    is_short = has_lost and page.has_more and len(kept) < request.max_num_results
    is_overtaken = is_remade or (has_lost and _revisions(connection, key, scope) != scope.revisions)
    return Judged(_results(kept, page, request), is_short=is_short, is_overtaken=is_overtaken)


def _revisions(connection: Connection, key: Key, scope: Scope) -> dict[str, int]:
    buckets = (find_bucket(connection, key.team_id, bucket_id) for bucket_id in scope.bucket_ids)
    return {bucket.id: bucket.revision for bucket in buckets if bucket is not None}


def _results(kept: list[Found], page: SearchPage, request: SearchRequest) -> Results:
    threshold = request.score_threshold or 0.0
    good = [found for found in kept if found.hit.score >= threshold]
    has_more = page.has_more or len(good) > request.max_num_results
    return Results(tuple(good[: request.max_num_results]), has_more, page.warnings)


def _keep(hit: Hit, source: Source | None, scope: Scope, unplaced: Collection[str]) -> Found | None:
    if source is None or hit.generation not in source.generations:
        return None
    active = tuple(bucket for bucket in scope.bucket_ids if source.places.get(bucket) == readiness.ACTIVE)
    return Found(hit, source, active) if active or source.id in unplaced else None


def _left_out(bucket: str) -> str:
    return f"The agent does not search the bucket {bucket!r}; it was left out."


def _refuse_if_pending(connection: Connection, request: SearchRequest, scope: Scope) -> None:
    """No indexed content: say so when something is on its way, or when one bucket was asked for by name."""
    censuses = [take_census(connection, bucket_id) for bucket_id in scope.bucket_ids]
    if any(census.retrievable for census in censuses):
        return
    pending = sum(census.pending for census in censuses)
    if pending or (request.buckets is not None and len(scope.bucket_ids) == 1):
        raise ServiceError(ErrorCode.BUCKET_STORE_INDEXING_PENDING, pending_member_count=pending, retry_after_seconds=1)
