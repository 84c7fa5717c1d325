"""Search: the index finds hits, and the state database decides which of them are valid.

So a deleted source is no longer found, even if the index still has its document.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial

from svc_daemon.core import readiness
from svc_daemon.core.json_bodies import refusal
from svc_daemon.core.search.agents import EVERYTHING, RetrievalPolicy, TeamAgent
from svc_daemon.core.search.filters import check_filter, warn_of_keys
from svc_daemon.core.task_retries import retry_after_s
from svc_daemon.databases.contract import Connection
from svc_daemon.embed.contract import EmbedFailed
from svc_daemon.errors import ServiceError
from svc_daemon.operations.retrieve.availability import refuse_in_maintenance
from svc_daemon.operations.retrieve.search_scopes import (
    SearchScope,
    choose_agent,
    find_scope,
    narrow,
    warn_of_absent,
    warn_of_agent,
)
from svc_daemon.operations.shared.usage import counting_answer
from svc_daemon.process.contexts import Context
from svc_daemon.process.embedders import EmbedderInUse, EmbeddingState
from svc_daemon.provider.contract import Hit, HitPage, QueryVector, SearchMode, SearchQuery, Suggestion
from svc_daemon.provider.errors import IndexBuilding, ProviderError, SearchTimeout
from svc_daemon.store.rows.buckets import list_revisions, take_census
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sources.memberships import list_unplaced
from svc_daemon.store.rows.sources.search_candidates import FoundSource, list_active_sources
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.searches import SearchRequest

#: Maximum share of a search's time limit that embedding the query may take.
EMBED_SHARE = 0.5
_NO_MODEL = "The search used keywords only, because no embedding model is set up."


@dataclass(frozen=True, slots=True)
class Matching:
    """How a search matches (by keyword, meaning or both), and the vector of its query, if any."""

    mode: SearchMode
    vector: QueryVector | None = None
    #: Warnings for the caller.
    warnings: tuple[str, ...] = ()


async def choose_matching(context: Context, request: SearchRequest, deadline_s: float) -> Matching:
    """Return how the search matches, with the query's vector. A hybrid search without a vector matches by keyword.

    Raises `search_timeout` at the deadline, and `search_failed` if a semantic search has no vector.
    """
    mode = SearchMode(request.mode)
    embed_by_s = deadline_s - context.limits.search_seconds * (1 - EMBED_SHARE)
    try:
        return Matching(mode, await _embed_query(context.embedding, request.query, embed_by_s))
    except EmbedFailed as error:
        # Wake the embedding worker, because the embedding server may have another model now.
        context.wakes.embedding.set()
        if context.clock.monotonic() >= deadline_s:
            raise ServiceError(ErrorCode.SEARCH_TIMEOUT, budget_seconds=context.limits.search_seconds) from error
        if mode is SearchMode.SEMANTIC:
            raise ServiceError(ErrorCode.SEARCH_FAILED, f"The query has no vector: {error}") from error
        return Matching(SearchMode.KEYWORD, warnings=(f"The search used keywords only: {error}",))


async def _embed_query(embedding: EmbedderInUse, text: str, embed_by_s: float) -> QueryVector:
    # Read `embedder` once, because it may change during the call.
    embedder = embedding.embedder
    if embedder is None:
        raise EmbedFailed(embedding.message or "The embedding model is being loaded.")
    values = await embedding.run(embedder.embed_query, text, embed_by_s)
    return QueryVector(model=embedder.model, values=values)


#: Maximum number of index queries per search.
MAX_ROUNDS = 5
#: If too few hits are valid, the next query asks for this many times as many hits.
GROWTH = 8


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A valid hit and its source."""

    hit: Hit
    source: FoundSource
    #: The searched buckets in which the source is active.
    bucket_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Results:
    found: tuple[SearchHit, ...]
    has_more: bool
    warnings: tuple[str, ...]
    #: The agent whose policy was applied, if any.
    agent: TeamAgent | None = None
    #: Minimum score of a hit, set by the request or the policy; None if neither sets a minimum.
    score_threshold: float | None = None
    #: Number of chunks in the team's index.
    chunks: int = 0
    #: For words of the query that stand nowhere.
    suggestions: tuple[Suggestion, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """The hits of one index query, checked against the state database."""

    results: Results
    #: Whether the index must be queried for more hits, because too few of these hits are valid.
    is_short: bool
    #: Whether the index must be queried again, because buckets or the index have changed meanwhile.
    is_overtaken: bool

    @property
    def is_settled(self) -> bool:
        return not self.is_short and not self.is_overtaken


async def search(context: Context, key: KeyRow, request: SearchRequest) -> Results:
    """Return the chunks that match the query best, from the sources that the key and the agent's policy allow.

    Raises ServiceError if the search is refused or fails.
    """
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
    agent = choose_agent(context, key, request)
    narrowed = narrow(context, request, _policy_of(agent))
    with counting_answer(context, key.team_id), context.metrics.searches_s.timing(context.clock.monotonic):
        results = await _ask_until_settled(context, key, narrowed, agent)
    warnings = (*results.warnings, *warn_of_keys(request.filters))
    if request.filters is not None and not results.found:
        absent = partial(warn_of_absent, context=context, key=key, request=request, policy=_policy_of(agent))
        warnings += tuple(await context.search_in_thread(context.read, absent))
    return replace(results, agent=agent, score_threshold=narrowed.score_threshold, warnings=warnings)


def _policy_of(agent: TeamAgent | None) -> RetrievalPolicy:
    return EVERYTHING if agent is None else agent.policy


async def _ask_until_settled(context: Context, key: KeyRow, request: SearchRequest, agent: TeamAgent | None) -> Results:
    deadline_s = context.clock.monotonic() + context.limits.search_seconds
    asking = _Asking(context, key, request, agent, deadline_s)
    mode = SearchMode(request.mode)
    if mode is SearchMode.KEYWORD or context.embedding.state is EmbeddingState.OFF:
        # Without a model, every search matches by keyword.
        warnings = (_NO_MODEL,) if mode is SearchMode.SEMANTIC else ()
        matching = Matching(SearchMode.KEYWORD, warnings=warnings)
        return await context.search_in_thread(lambda: asking.settle(asking.look(), matching))
    # Find the scope first: if this refuses the search, the query need not be embedded.
    scope = await context.search_in_thread(asking.look)
    matching = await choose_matching(context, request, deadline_s)
    return await context.search_in_thread(asking.settle, scope, matching)


@dataclass(frozen=True, slots=True)
class _Asking:
    """One search. Its methods run in a thread."""

    context: Context
    key: KeyRow
    request: SearchRequest
    agent: TeamAgent | None
    deadline_s: float

    def look(self) -> SearchScope:
        """Return the scope of the search; raises the errors of `find_scope`."""
        policy = _policy_of(self.agent)
        return self.context.read(
            lambda connection: find_scope(connection, self.context, self.key, self.request, policy)
        )

    def settle(self, scope: SearchScope, matching: Matching) -> Results:
        """Query the index until enough hits are valid, and return the valid hits. Raises the errors of `search`."""
        limit = self.request.max_num_results
        for _ in range(MAX_ROUNDS):
            query = SearchQuery(
                text=self.request.query,
                bucket_ids=scope.bucket_ids if scope.goes_by_bucket else None,
                source_ids=scope.source_ids,
                counted_in=self.key.buckets,
                limit=limit,
                mode=matching.mode,
                vector=matching.vector,
                explain=self.request.explain,
                deadline_s=self.deadline_s,
            )
            page = _ask(self.context, self.key.team_id, query)
            judged = self.context.read(
                partial(_judge_page, context=self.context, key=self.key, request=self.request, scope=scope, page=page)
            )
            if judged.is_settled:
                break
            limit *= 1 if judged.is_overtaken else GROWTH
            scope = self.look()
        if not judged.results.found:
            self.context.read(lambda connection: _refuse_if_pending(connection, self.request, scope))
        of_scope = (*warn_of_agent(self.agent, scope), *scope.warnings)
        warnings = (*of_scope, *matching.warnings, *judged.results.warnings)
        return replace(judged.results, warnings=warnings)


def _ask(context: Context, team_id: str, query: SearchQuery) -> HitPage:
    try:
        return context.provider.search(team_id, query)
    except IndexBuilding as error:
        raise ServiceError(
            ErrorCode.TEAM_STORE_MAINTENANCE,
            "The words of the team's documents are being indexed again; try again shortly.",
            retry_after_seconds=retry_after_s(error.building.elapsed_s, error.building.done, error.building.total),
        ) from error
    except ProviderError as error:
        # If the index is closed because of a rebuild, report the rebuild instead of the error.
        context.read(partial(refuse_in_maintenance, context=context, team_id=team_id))
        if isinstance(error, SearchTimeout):
            raise ServiceError(ErrorCode.SEARCH_TIMEOUT, budget_seconds=context.limits.search_seconds) from error
        raise ServiceError(ErrorCode.SEARCH_FAILED, str(error)) from error


def _judge_page(
    connection: Connection,
    *,
    context: Context,
    key: KeyRow,
    request: SearchRequest,
    scope: SearchScope,
    page: HitPage,
) -> Judged:
    """Return the hits that are still valid, and whether to query again. Raises `team_store_maintenance`."""
    is_remade = refuse_in_maintenance(connection, context, key.team_id) != scope.rebuild_id
    sources = list_active_sources(connection, key.team_id, list({hit.source_id for hit in page.hits}))
    unplaced = list_unplaced(connection, key.team_id, list(sources)) if scope.takes_unplaced else set()
    kept = [found for hit in page.hits if (found := _keep(hit, sources.get(hit.source_id), scope, unplaced))]
    has_lost = len(kept) < len(page.hits)
    is_short = has_lost and page.has_more and len(kept) < request.max_num_results
    # A source's new text may have taken the place of the one that the index was asked for.
    is_outrun = any(
        hit.generation < sources[hit.source_id].generations.start for hit in page.hits if hit.source_id in sources
    )
    is_overtaken = is_remade or is_outrun
    is_overtaken |= has_lost and list_revisions(connection, scope.bucket_ids) != scope.revisions
    good = [found for found in kept if found.hit.score >= (request.score_threshold or 0.0)]
    has_more = page.has_more or len(good) > request.max_num_results
    results = Results(
        tuple(good[: request.max_num_results]),
        has_more,
        page.warnings,
        chunks=page.chunks,
        suggestions=page.suggestions,
    )
    return Judged(results, is_short=is_short, is_overtaken=is_overtaken)


def _keep(hit: Hit, source: FoundSource | None, scope: SearchScope, unplaced: Collection[str]) -> SearchHit | None:
    if source is None or hit.generation not in source.generations:
        return None
    active = tuple(bucket for bucket in scope.bucket_ids if source.places.get(bucket) == readiness.ACTIVE)
    return SearchHit(hit, source, active) if active or source.id in unplaced else None


def _refuse_if_pending(connection: Connection, request: SearchRequest, scope: SearchScope) -> None:
    """Raise `bucket_store_indexing_pending` if no source in the searched buckets is ready yet and some are pending.

    A search of a single named bucket is refused even if no source is pending.
    """
    censuses = [take_census(connection, bucket_id, members=False) for bucket_id in scope.bucket_ids]
    if any(census.retrievable for census in censuses):
        return
    pending, failed = (sum(getattr(census, name) for census in censuses) for name in ("pending", "failed"))
    is_single = request.buckets is not None and len(scope.bucket_ids) + len(scope.left_out) == 1
    if not pending and not (is_single and scope.bucket_ids):
        return
    what = f"The {'bucket has' if len(censuses) == 1 else 'buckets have'} no indexed content"
    if pending:
        what += f" yet: {pending} {'source is' if pending == 1 else 'sources are'} being indexed."
    elif failed:
        what += f": {failed} {'source' if failed == 1 else 'sources'} could not be indexed."
    elif any(census.total for census in censuses):
        what += ": a search of a bucket finds no questions and answers."
    else:
        what += ": nothing is in it."
    raise ServiceError(
        ErrorCode.BUCKET_STORE_INDEXING_PENDING, what, pending_member_count=pending, retry_after_seconds=1
    )
