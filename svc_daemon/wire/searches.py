"""Models of searches: the request, the results, their explanations, and the operator's switch."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from svc_daemon.wire.requests import AGENT, BUCKETS, FILTERS, PROPERTIES, SOURCES, TAGS, NoDryRunBody, ScopedBody
from svc_daemon.wire.sources import Freshness, Location, ShownDescription

SEARCH_SCOPES = {AGENT: "agent", BUCKETS: "buckets", SOURCES: "source_ids", TAGS: "tags", FILTERS: "filters"}


class SearchRequest(ScopedBody):
    """Body of `POST /v1/search`.

    Fields that would limit the search are never ignored. Synonyms, such as `bucket: "a"` for `buckets: ["a"]`, are
    accepted. Fields of other services, such as `vector_store_ids`, are refused. `warnings` names other unknown fields.
    """

    model_config = ConfigDict(extra="allow")

    scopes: ClassVar[Mapping[str, str]] = SEARCH_SCOPES
    plain_scopes: ClassVar[Mapping[str, str]] = {"model": AGENT}
    foreign_scopes: ClassVar[Mapping[str, str]] = {
        **PROPERTIES,
        **dict.fromkeys(("metadata", "mapping", "title", "type"), FILTERS),
        "models": AGENT,
    }

    query: Annotated[str, Field(min_length=1)]
    #: A model id, such as `svc-agent`. The agent's policy limits the search further.
    agent: str | None = None
    #: Ids or slugs of the buckets to search; if omitted, all active ones.
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


class ExplainedTerm(TypedDict):
    """A word of the query that occurs in the passage."""

    term: str
    #: Inverse document frequency: the rarer the word, the higher the value.
    idf: float
    #: Where in the document the word occurs.
    parts: list[Literal["title", "headings", "text"]]


class ExplainedKeyword(TypedDict):
    """The passage's rank and score in the keyword search."""

    rank: int
    bm25: float
    #: How similar the passage's words are to those of the best passages, 0 to 1; null if it was not computed.
    feedback: float | None


class ExplainedMeaning(TypedDict):
    """The passage's rank and similarity in the semantic search."""

    #: Null if only the keyword search found the passage.
    rank: int | None
    #: Cosine similarity of query and passage, -1 to 1.
    cosine: float
    #: The model that computed both vectors.
    model: str


class Explanation(TypedDict):
    """How the passage was found, and which scores it has."""

    #: Rank in the results, from 1.
    rank: int
    #: Whether the query names the document, as by its title. The best passages of such documents come first.
    named: bool
    #: The score that determines the rank in a hybrid search; null in other modes.
    fused: float | None
    #: The share of the query's words that occur in the passage, 0 to 1. Rare words count more.
    coverage: float
    terms: list[ExplainedTerm]
    #: Null if the keyword search did not find the passage, or ranked it too low.
    keyword: ExplainedKeyword | None
    #: Null without a semantic search, or if the passage has no vector.
    semantic: ExplainedMeaning | None


class SearchResult(Freshness, ShownDescription):
    source_id: str
    chunk_id: str
    bucket_ids: list[str]
    #: How well the passage matches, 0 to 1. A keyword search uses the share of the query's words, a semantic search the
    #: cosine similarity, and a hybrid search the mean of both.
    score: float
    text: str
    #: Where words of the query are in `text`: start and end of each, in characters.
    highlights: list[list[int]]
    location: Location
    #: Null unless the request has `explain`.
    explain: Explanation | None


class SuggestedWord(TypedDict):
    """A word of the query that occurs nowhere, and one of what was searched that may have been meant."""

    word: str
    instead: str


class SearchPage(TypedDict):
    object: Literal["search_results.page"]
    query: str
    agent: str | None
    data: list[SearchResult]
    has_more: bool
    warnings: list[str]
    suggestions: list[SuggestedWord]
    request_id: str


class SearchSwitchChange(NoDryRunBody):
    """Body of `PUT /admin/search`."""

    enabled: bool
    #: The value of `Retry-After` in the responses to refused searches.
    retry_after_seconds: Annotated[int, Field(ge=1, le=86_400)] = 60


class SearchSwitch(TypedDict):
    object: Literal["search_switch"]
    enabled: bool
    #: The value of `Retry-After` in the responses to refused searches; null if search is enabled.
    retry_after_seconds: int | None
