"""Search on the wire: the question, the page of results, and where each was found."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from svc_daemon.wire.models import WireModel
from svc_daemon.wire.scopes import AGENT, BUCKETS, FILTERS, SOURCES, TAGS, ScopedBody
from svc_daemon.wire.sources import Location

SEARCH_SCOPES = {AGENT: "agent", BUCKETS: "buckets", SOURCES: "source_ids", TAGS: "tags", FILTERS: "filters"}


class SearchRequest(ScopedBody):
    """Body of `POST /v1/search`. Another name that means a scope is taken for the field here where its meaning is plain
    (`bucket: "a"` for `buckets: ["a"]`), else refused; other unknown fields are ignored.
    """

    scopes: ClassVar[Mapping[str, str]] = SEARCH_SCOPES
    plain_scopes: ClassVar[Mapping[str, str]] = {"model": AGENT}
    foreign_scopes: ClassVar[Mapping[str, str]] = dict.fromkeys(("metadata", "mapping", "title", "type"), FILTERS)

    query: Annotated[str, Field(min_length=1)]
    #: A model id, such as `svc-agent`; it must not widen what the caller may see.
    agent: str | None = None
    #: Ids or slugs; all active buckets of the team where none is named.
    buckets: list[str] | None = None
    source_ids: list[str] | None = None
    #: OpenAI's grammar: eq, ne, gt, gte, lt, lte, in, nin, and, or.
    filters: dict[str, Any] | None = None
    #: Only sources that carry every one of these tags.
    tags: list[str] | None = None
    max_num_results: Annotated[int, Field(ge=1)] = 10
    mode: Literal["hybrid", "keyword", "semantic"] = "hybrid"
    score_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    explain: bool = False


class ExplainedTerm(WireModel):
    """A word of the query that the passage has."""

    term: str
    #: What it weighs: the rarer the word is among the team's passages, the more.
    idf: float
    #: Its place.
    parts: list[Literal["title", "headings", "text"]]


class ExplainedKeyword(WireModel):
    """The passage's place in the order by words."""

    rank: int
    bm25: float
    #: 0 to 1: how much of the best ones' terms it has; null where too few passages were found for it to count.
    feedback: float | None


class ExplainedMeaning(WireModel):
    """How near the passage is in meaning."""

    #: Null for one that came by its words and is not among the nearest.
    rank: int | None
    #: Between the vectors of query and passage, -1 to 1.
    cosine: float
    #: What made the vectors.
    model: str


class Explanation(WireModel):
    """Which part of the search found the passage, and what it scored there."""

    #: Place in the whole order, from 1.
    rank: int
    #: What the order of a hybrid search is made by; null in other modes.
    fused: float | None
    #: The share of the query's weight that the terms carry.
    coverage: float
    terms: list[ExplainedTerm]
    #: Null where it is not among the best by words.
    keyword: ExplainedKeyword | None
    #: Null where meaning was not looked for, or the passage has no vector.
    semantic: ExplainedMeaning | None


class SearchResult(WireModel):
    source_id: str
    chunk_id: str
    bucket_ids: list[str]
    filename: str
    title: str
    source_url: str | None
    #: 0 to 1, absolute. Keyword: the share of the query's weight that the passage covers. Semantic: the cosine, not
    #: below 0. Hybrid: the mean of both.
    score: float
    tags: list[str]
    metadata: dict[str, Any]
    text: str
    location: Location
    #: Only with `explain`.
    explain: Explanation | None = None


class SearchPage(WireModel):
    object: Literal["search_results.page"] = "search_results.page"
    query: str
    agent: str | None
    data: list[SearchResult]
    has_more: bool
    warnings: list[str]
    request_id: str
