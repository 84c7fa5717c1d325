"""The vector of a query, and what a search does without one.

A model that is not there or that fails never keeps a hybrid search from finding words; who asked for meaning alone
hears of it.
"""

from dataclasses import dataclass

from svc_daemon.embed.contract import EmbedFailed
from svc_daemon.errors import ServiceError
from svc_daemon.operations.contexts import Context
from svc_daemon.operations.embedding import Embedding, EmbeddingState
from svc_daemon.provider.contract import QueryVector, SearchMode
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.searches import SearchRequest

#: The share of a search's time that a model may take; the rest is for looking.
EMBED_SHARE = 0.5
_NO_MODEL = "The search went by keyword: no embedding model is set up, and meaning is not looked for without one."


@dataclass(frozen=True, slots=True)
class Matching:
    """How a search is going to match."""

    mode: SearchMode
    vector: QueryVector | None = None
    #: What the user should hear of it.
    warnings: tuple[str, ...] = ()


def may_embed(context: Context, request: SearchRequest) -> bool:
    """Whether the query is to have a vector, if its model makes one."""
    return SearchMode(request.mode) is not SearchMode.KEYWORD and context.embedding.state is not EmbeddingState.OFF


def without_vector(request: SearchRequest) -> Matching:
    """How to match where no vector is to be had: by keyword is what hybrid is without a model."""
    is_less = SearchMode(request.mode) is SearchMode.SEMANTIC
    return Matching(SearchMode.KEYWORD, warnings=(_NO_MODEL,) if is_less else ())


async def choose_matching(context: Context, request: SearchRequest, deadline_s: float) -> Matching:
    """By meaning where a model makes a vector of the query, else by keyword.

    Raises `search_timeout` at the deadline, and `search_failed` where a semantic search gets no vector.
    """
    mode = SearchMode(request.mode)
    embed_by_s = deadline_s - context.limits.search_seconds * (1 - EMBED_SHARE)
    try:
        vector = await _embed_query(context.embedding, request.query, embed_by_s)
    except EmbedFailed as error:
        # A server may have shown that it runs another model by now: the worker looks, and opens that one.
        context.wakes.embedding.set()
        return _without_vector(context, mode, error, deadline_s)
    return Matching(mode, vector)


async def _embed_query(embedding: Embedding, text: str, embed_by_s: float) -> QueryVector:
    # Looked at once: another model may be chosen while this one is asked.
    embedder = embedding.embedder
    if embedder is None:
        raise EmbedFailed(embedding.message or "The embedding model is being loaded.")
    values = await embedding.run(embedder.embed_query, text, embed_by_s)
    return QueryVector(model=embedder.model, values=values)


def _without_vector(context: Context, mode: SearchMode, error: EmbedFailed, deadline_s: float) -> Matching:
    if context.clock.monotonic() >= deadline_s:
        raise ServiceError(ErrorCode.SEARCH_TIMEOUT, budget_seconds=context.limits.search_seconds) from error
    if mode is SearchMode.SEMANTIC:
        raise ServiceError(ErrorCode.SEARCH_FAILED, f"The query has no vector: {error}") from error
    return Matching(SearchMode.KEYWORD, warnings=(f"The search went by keyword alone: {error}",))
