"""HTTP handlers for searches, with a JSON body (POST) or a query string (GET)."""

from collections.abc import Callable
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.bodies import parse_model
from svc_daemon.api.endpoints import SEARCH, Endpoint
from svc_daemon.api.handlers.sources import view_freshness, view_location
from svc_daemon.api.requests import bare_flag, body_of, caller, context_of, decimal_number, whole_number
from svc_daemon.api.responses import respond
from svc_daemon.core.access import api_keys
from svc_daemon.core.json_bodies import refusal, refusals
from svc_daemon.errors import ServiceError
from svc_daemon.operations.retrieve.searches import SearchHit, search
from svc_daemon.operations.shared.response_objects import view_description
from svc_daemon.provider.contract import Hit
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.wire import searches as wire
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.requests import list_unknown

#: The query string parameter that corresponds to `query` in the body.
QUERY = "q"
#: Parameters that may be repeated.
LISTS = ("buckets", "source_ids", "tags")
#: Parameters that may be given only once, with their parsers.
SINGLES: dict[str, Callable[[str], Any]] = {
    QUERY: str,
    "agent": str,
    "mode": str,
    "max_num_results": whole_number,
    "score_threshold": decimal_number,
    "explain": lambda text: bare_flag("explain", text),
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
        if error.code is not ErrorCode.INVALID_REQUEST:
            raise
        # Name the parameter of the query string, not the field of the body.
        errors = [(each["path"], each["message"]) for each in error.details["errors"]]
        raise refusals([(QUERY if path == "query" else path, message) for path, message in errors]) from error


async def _answer(request: Request, key: KeyRow, asked: wire.SearchRequest) -> Response:
    results = await search(context_of(request), key, asked)
    unknown = list_unknown(asked)
    unheeded = [f"A search has no such field, so this had no effect: {unknown}."] if unknown else []
    page = {
        "object": "search_results.page",
        "query": asked.query,
        "agent": asked.agent,
        "data": [_result(found, explain=asked.explain) for found in results.found],
        "has_more": results.has_more,
        "warnings": [*results.warnings, *unheeded],
        "suggestions": [wire.SuggestedWord(word=each.word, instead=each.instead) for each in results.suggestions],
    }
    return respond(request, page)


def _fields(request: Request) -> dict[str, Any]:
    """Convert the query string to the fields of a POST body. Raises `invalid_request`."""
    sent = request.query_params
    meant = {name: wire.SearchRequest.field_meant_by(name) for name in sent}
    # Replace synonyms, such as `bucket_ids` for `buckets`.
    named = {name: field if field in (*SINGLES, *LISTS) else name for name, field in meant.items()}
    for name, field in named.items():
        if name != field and list(named.values()).count(field) > 1:
            raise refusal(name, f"means the same as {field}; send one of the two.")
    query = QueryParams([(named[name], value) for name, value in sent.multi_items()])
    if QUERY not in query:
        raise refusal(QUERY, "is required: the text to search for.")
    for name in query:
        if name not in SINGLES and name not in LISTS:
            known = ", ".join([*SINGLES, *LISTS])
            raise refusal(name, f"can't be asked for in a query string, which takes {known}; send POST /v1/search.")
        if name in SINGLES and len(query.getlist(name)) > 1:
            raise refusal(name, "must be sent once.")
    lists: dict[str, Any] = {name: query.getlist(name) for name in LISTS if name in query}
    singles = {name: read(query[name]) for name, read in SINGLES.items() if name in query}
    return {"query": singles.pop(QUERY), **lists, **singles}


def _result(found: SearchHit, *, explain: bool) -> wire.SearchResult:
    hit, source = found.hit, found.source
    return wire.SearchResult(
        source_id=source.id,
        chunk_id=hit.chunk_id,
        bucket_ids=list(found.bucket_ids),
        **view_description(source),
        score=hit.score,
        text=hit.chunk.text,
        highlights=[list(span) for span in hit.highlights],
        location=view_location(source, hit.chunk),
        explain=_explain(hit) if explain else None,
        **view_freshness(source),
    )


def _explain(hit: Hit) -> wire.Explanation:
    words, meaning = hit.keyword, hit.semantic
    return wire.Explanation(
        rank=hit.rank,
        named=hit.is_named,
        fused=hit.fused,
        coverage=hit.coverage,
        terms=[wire.ExplainedTerm(term=each.term, idf=each.idf, parts=list(each.parts)) for each in hit.matches],
        keyword=wire.ExplainedKeyword(rank=words.rank, bm25=words.bm25, feedback=words.feedback) if words else None,
        semantic=wire.ExplainedMeaning(rank=meaning.rank, cosine=meaning.cosine, model=meaning.model)
        if meaning
        else None,
    )


_PARAMETERS = {
    QUERY: "The query.",
    "agent": "A model id, such as svc-agent.",
    "buckets": "An id or slug; may be repeated.",
    "source_ids": "Only this source; may be repeated.",
    "tags": "Only sources that carry this tag; may be repeated.",
    "score_threshold": "0 to 1: leave out what scores less.",
    "max_num_results": "1 to {search_results}.",
    "mode": "hybrid, keyword or semantic.",
    "explain": "true: show for each result how it was found and scored.",
}

# fmt: off
ENDPOINTS = (
    Endpoint("POST", "/v1/search", post, "Search buckets", {200: wire.SearchPage},
             body=wire.SearchRequest, reads=True, errors=SEARCH),
    Endpoint("GET", "/v1/search", get, "Search buckets", {200: wire.SearchPage}, query=_PARAMETERS, errors=SEARCH),
)
# fmt: on
