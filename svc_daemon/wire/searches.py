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

    A field that limits what is searched is never ignored: synonyms such as `bucket: "a"` for `buckets: ["a"]` are
    accepted, and similar fields of other services are refused. All other unknown fields are ignored.
    """

    scopes: ClassVar[Mapping[str, str]] = SEARCH_SCOPES
    plain_scopes: ClassVar[Mapping[str, str]] = {"model": AGENT}
    foreign_scopes: ClassVar[Mapping[str, str]] = dict.fromkeys(("metadata", "mapping", "title", "type"), FILTERS)

    query: Annotated[str, Field(min_length=1)]
    #: A model id, such as `svc-agent`. The agent's policy further limits what the API key may search.
    agent: str | None = None
    #: Ids or slugs of the buckets to search; if omitted, all active buckets of the team.
    buckets: list[str] | None = None
    source_ids: list[str] | None = None
    #: A filter in OpenAI's syntax: eq, ne, gt, gte, lt, lte, in, nin, and, or.
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
    #: How similar the words of this passage are to those of the best passages (pseudo-relevance feedback), from 0 to 1.
    #: Null if too few passages were found to compute it.
    feedback: float | None


class ExplainedMeaning(WireModel):
    """The rank and similarity of the passage in the semantic search."""

    #: The rank in the semantic search; null if only the keyword search found the passage.
    rank: int | None
    #: Cosine similarity of the vectors of the query and the passage, from -1 to 1.
    cosine: float
    #: The model that computed both vectors.
    model: str


class Explanation(WireModel):
    """How the passage was found, and its scores."""

    #: Rank in the results, from 1.
    rank: int
    #: The score by which a hybrid search ranks its results; null in other modes.
    fused: float | None
    #: From 0 to 1: how much of the query the passage covers. This is the sum of its matching words' idf, divided by the
    #: sum of the idf of all words in the query.
    coverage: float
    terms: list[ExplainedTerm]
    #: The match in the keyword search; null if the passage is not among its best.
    keyword: ExplainedKeyword | None
    #: The match in the semantic search; null if there was none, or if the passage has no vector.
    semantic: ExplainedMeaning | None


class SearchResult(WireModel):
    source_id: str
    chunk_id: str
    bucket_ids: list[str]
    filename: str
    title: str
    source_url: str | None
    #: From 0 to 1, comparable between searches. In a keyword search, how much of the query the passage covers; in a
    #: semantic search, the cosine similarity, at least 0; in a hybrid search, the mean of both.
    score: float
    tags: list[str]
    metadata: dict[str, Any]
    text: str
    location: Location
    #: The explanation of the result; null unless the request has `explain`.
    explain: Explanation | None = None


class SearchPage(WireModel):
    object: Literal["search_results.page"] = "search_results.page"
    query: str
    agent: str | None
    data: list[SearchResult]
    has_more: bool
    warnings: list[str]
    request_id: str
