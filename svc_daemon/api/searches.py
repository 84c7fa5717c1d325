"""Handlers of search."""

from collections.abc import Callable
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.bodies import parse_model
from svc_daemon.api.presenting import answer, body_of, caller, context_of, decimal_number, flag, whole_number
from svc_daemon.api.sources import view_location
from svc_daemon.core.access import api_keys
from svc_daemon.core.requests import refusal, refusals
from svc_daemon.errors import ServiceError
from svc_daemon.operations.searches import SearchResults, search
from svc_daemon.provider.contract import Hit, KeywordMatch, SemanticMatch
from svc_daemon.store.keys import KeyRow
from svc_daemon.wire import searches as wire
from svc_daemon.wire.codes import ErrorCode

#: What the query string calls the body's `query`.
QUERY = "q"
#: Parameters that may be repeated, each a part of a list.
LISTS = ("buckets", "source_ids", "tags")
#: How the text of every other parameter is read.
SINGLES: dict[str, Callable[[str], Any]] = {
    QUERY: str,
    "agent": str,
    "mode": str,
    "max_num_results": whole_number,
    "score_threshold": decimal_number,
    "explain": lambda text: flag("explain", text),
}


async def post(request: Request) -> Response:
    key = caller(request, api_keys.SEARCH)
    return await _answer(request, key, await body_of(request, wire.SearchRequest))


async def get(request: Request) -> Response:
    key = caller(request, api_keys.SEARCH)
    fields = _fields(request)
    try:
        return await _answer(request, key, parse_model(fields, wire.SearchRequest))
    except ServiceError as error:
        raise _as_written(error) from error


async def _answer(request: Request, key: KeyRow, asked: wire.SearchRequest) -> Response:
    results = await search(context_of(request), key, asked)
    page = {
        "query": asked.query,
        "agent": asked.agent,
        "data": [_result(found, explain=asked.explain) for found in results.found],
        "has_more": results.has_more,
        "warnings": list(results.warnings),
    }
    return answer(request, wire.SearchPage, page)


def _fields(request: Request) -> dict[str, Any]:
    """The query string as the body it stands for; raises `invalid_request` for what can't stand in one."""
    query = _renamed(request.query_params)
    if QUERY not in query:
        raise refusal(QUERY, "must be sent: what to find.")
    for name in query:
        if name not in SINGLES and name not in LISTS:
            known = ", ".join([*SINGLES, *LISTS])
            raise refusal(name, f"can't be asked for in a query string, which takes {known}; send POST /v1/search.")
        if name in SINGLES and len(query.getlist(name)) > 1:
            raise refusal(name, "must be sent once.")
    lists: dict[str, Any] = {name: query.getlist(name) for name in LISTS if name in query}
    singles = {name: read(query[name]) for name, read in SINGLES.items() if name in query}
    return {"query": singles.pop(QUERY), **lists, **singles}


def _renamed(query: QueryParams) -> QueryParams:
    """The parameters, each scope under its own name; raises `invalid_request` for one that is sent under two."""
    meant = {name: wire.SearchRequest.field_meant_by(name) for name in query}
    named = {name: field if field in (*SINGLES, *LISTS) else name for name, field in meant.items()}
    for name, field in named.items():
        if name != field and list(named.values()).count(field) > 1:
            raise refusal(name, f"means the same as {field}; send one of the two.")
    return QueryParams([(named[name], value) for name, value in query.multi_items()])


def _as_written(error: ServiceError) -> ServiceError:
    """The same error, about the parameter that the caller wrote instead of the body's field."""
    if error.code is not ErrorCode.INVALID_REQUEST:
        return error
    told = [(QUERY if each["path"] == "query" else each["path"], each["message"]) for each in error.details["errors"]]
    return refusals(told)


def _result(found: SearchResults, *, explain: bool) -> wire.SearchResult:
    hit, source = found.hit, found.source
    return wire.SearchResult(
        source_id=source.id,
        chunk_id=hit.chunk_id,
        bucket_ids=list(found.bucket_ids),
        filename=source.filename,
        title=source.title,
        source_url=source.source_url,
        score=hit.score,
        tags=list(source.tags),
        metadata=source.metadata,
        text=hit.chunk.text,
        location=view_location(hit.chunk),
        explain=_explanation(hit) if explain else None,
    )


def _explanation(hit: Hit) -> wire.Explanation:
    return wire.Explanation(
        rank=hit.rank,
        fused=hit.fused,
        coverage=hit.coverage,
        terms=[wire.ExplainedTerm(term=each.term, idf=each.idf, parts=list(each.parts)) for each in hit.matches],
        keyword=_by_words(hit.keyword),
        semantic=_by_meaning(hit.semantic),
    )


def _by_words(match: KeywordMatch | None) -> wire.ExplainedKeyword | None:
    if match is None:
        return None
    return wire.ExplainedKeyword(rank=match.rank, bm25=match.bm25, feedback=match.feedback)


def _by_meaning(match: SemanticMatch | None) -> wire.ExplainedMeaning | None:
    if match is None:
        return None
    return wire.ExplainedMeaning(rank=match.rank, cosine=match.cosine, model=match.model)
