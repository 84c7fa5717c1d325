"""Models of searches: the request, the page of results, and the explanation of each result."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from svc_daemon.wire.models import WireModel
from svc_daemon.wire.scopes import AGENT, BUCKETS, FILTERS, SOURCES, TAGS, ScopedBody
from svc_daemon.wire.sources import Location

SEARCH_SCOPES = {AGENT: "agent", BUCKETS: "buckets", SOURCES: "source_ids", TAGS: "tags", FILTERS: "filters"}


class SearchRequest(ScopedBody):
    """Body of `POST /v1/search`.

    Fields that limit what is searched are never ignored: synonyms such as `bucket: "a"` for `buckets: ["a"]` are
    accepted, and other names of scopes are refused. All other unknown fields are ignored.
    """

    scopes: ClassVar[Mapping[str, str]] = SEARCH_SCOPES
    plain_scopes: ClassVar[Mapping[str, str]] = {"model": AGENT}
    foreign_scopes: ClassVar[Mapping[str, str]] = dict.fromkeys(("metadata", "mapping", "title", "type"), FILTERS)

    query: Annotated[str, Field(min_length=1)]
    #: A model id, such as `svc-agent`. The agent's policy further limits what the API key may search.
    agent: str | None = None
    #: Ids or slugs; if omitted, all active buckets of the team are searched.
    buckets: list[str] | None = None
    source_ids: list[str] | None = None
    #: In OpenAI's filter syntax: eq, ne, gt, gte, lt, lte, in, nin, and, or.
    filters: dict[str, Any] | None = None
    #: Search only sources that have all of these tags.
    tags: list[str] | None = None
    max_num_results: Annotated[int, Field(ge=1)] = 10
    mode: Literal["hybrid", "keyword", "semantic"] = "hybrid"
    score_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    explain: bool = False


class ExplainedTerm(WireModel):
    """A word of the query that occurs in the passage."""

    term: str
    #: Inverse document frequency: the rarer the word is in the team's passages, the higher.
    idf: float
    #: The parts of the document in which the word occurs.
    parts: list[Literal["title", "headings", "text"]]


class ExplainedKeyword(WireModel):
    """The rank and scores of the passage in the keyword search."""

    rank: int
    bm25: float
    #: Pseudo-relevance feedback, 0 to 1: how similar the words of this passage are to those of the best passages. Null
    #: if too few passages were found to compute it.
    feedback: float | None


class ExplainedMeaning(WireModel):
    """The rank and similarity of the passage in the semantic search."""

    #: Null if the passage was found by keywords only, because it is not among those nearest to the query.
    rank: int | None
    #: Cosine similarity of the query's and the passage's vectors, -1 to 1.
    cosine: float
    #: The embedding model.
    model: str


class Explanation(WireModel):
    """How the passage was found, and its scores."""

    #: Rank in the results, from 1.
    rank: int
    #: The score by which a hybrid search ranks its results; null in other modes.
    fused: float | None
    #: The share of the query's total idf that the matching words have, 0 to 1.
    coverage: float
    terms: list[ExplainedTerm]
    #: Null if the passage is not among the best of the keyword search.
    keyword: ExplainedKeyword | None
    #: Null if no semantic search was done, or if the passage has no vector.
    semantic: ExplainedMeaning | None


class SearchResult(WireModel):
    source_id: str
    chunk_id: str
    bucket_ids: list[str]
    filename: str
    title: str
    source_url: str | None
    #: 0 to 1, comparable between searches. Keyword: the matching words' share of the total idf of the query. Semantic:
    #: the cosine similarity, at least 0. Hybrid: the mean of both.
    score: float
    tags: list[str]
    metadata: dict[str, Any]
    text: str
    location: Location
    #: Null unless the request has `explain`.
    explain: Explanation | None = None


class SearchPage(WireModel):
    object: Literal["search_results.page"] = "search_results.page"
    query: str
    agent: str | None
    data: list[SearchResult]
    has_more: bool
    warnings: list[str]
    request_id: str
