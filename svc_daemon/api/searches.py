"""Handlers of search."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.bodies import parse_model
from svc_daemon.api.presenting import answer, body_of, caller, context_of, flag, whole_number
from svc_daemon.api.sources import view_location
from svc_daemon.core import api_keys
from svc_daemon.operations.searches import Found, search
from svc_daemon.provider.contract import Hit, KeywordMatch, SemanticMatch
from svc_daemon.store.keys import Key
from svc_daemon.wire import searches as wire


async def post(request: Request) -> Response:
    key = caller(request, api_keys.SEARCH)
    return await _answer(request, key, await body_of(request, wire.SearchRequest))


async def get(request: Request) -> Response:
    key = caller(request, api_keys.SEARCH)
    return await _answer(request, key, parse_model(_fields(request), wire.SearchRequest))


async def _answer(request: Request, key: Key, asked: wire.SearchRequest) -> Response:
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
    """The query string as the body it stands for; `buckets` may be repeated."""
    query = request.query_params
    fields: dict[str, Any] = {"query": query.get("q", "")}
    if "buckets" in query:
        fields["buckets"] = query.getlist("buckets")
    for name in ("agent", "mode"):
        if name in query:
            fields[name] = query[name]
    if "max_num_results" in query:
        fields["max_num_results"] = whole_number(query["max_num_results"])
    if "explain" in query:
        fields["explain"] = flag("explain", query["explain"])
    return fields


def _result(found: Found, *, explain: bool) -> wire.SearchResult:
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
