"""Types of searches. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Any, Literal, NotRequired, TypedDict

from svc_cli.client.types.sources import LocationDict


class SearchOptions(TypedDict):
    agent: NotRequired[str | None]
    """A model id, such as `svc-agent`. The agent's policy limits the search further."""
    buckets: NotRequired[list[str] | None]
    """Ids or slugs of the buckets to search; if omitted, all active ones."""
    source_ids: NotRequired[list[str] | None]
    filters: NotRequired[dict[str, Any] | None]
    """A filter in OpenAI's syntax: eq, ne, gt, gte, lt, lte, in, nin, and, or."""
    tags: NotRequired[list[str] | None]
    """Search only sources that have all of these tags."""
    max_num_results: NotRequired[int]
    mode: NotRequired[Literal["hybrid", "keyword", "semantic"]]
    score_threshold: NotRequired[float | None]
    explain: NotRequired[bool]


class ExplainedTermDict(TypedDict):
    """A word of the query that occurs in the passage."""

    term: str
    idf: float
    """Inverse document frequency: the rarer the word, the higher the value."""
    parts: list[Literal["title", "headings", "text"]]
    """Where in the document the word occurs."""


class ExplainedKeywordDict(TypedDict):
    """The passage's rank and score in the keyword search."""

    rank: int
    bm25: float
    feedback: float | None
    """How similar the passage's words are to those of the best passages, 0 to 1; null if it was not computed."""


class ExplainedMeaningDict(TypedDict):
    """The passage's rank and similarity in the semantic search."""

    rank: int | None
    """Null if only the keyword search found the passage."""
    cosine: float
    """Cosine similarity of query and passage, -1 to 1."""
    model: str
    """The model that computed both vectors."""


class ExplanationDict(TypedDict):
    """How the passage was found, and which scores it has."""

    rank: int
    """Rank in the results, from 1."""
    fused: float | None
    """The score that determines the rank in a hybrid search; null in other modes."""
    coverage: float
    """The share of the query's words that occur in the passage, 0 to 1. Rare words count more."""
    terms: list[ExplainedTermDict]
    keyword: ExplainedKeywordDict | None
    """Null if the keyword search did not find the passage, or ranked it too low."""
    semantic: ExplainedMeaningDict | None
    """Null without a semantic search, or if the passage has no vector."""


class SearchResultDict(TypedDict):
    source_id: str
    chunk_id: str
    bucket_ids: list[str]
    filename: str
    title: str
    source_url: str | None
    score: float
    """How well the passage matches, 0 to 1. A keyword search uses the share of the query's words, a semantic search
    the cosine similarity, and a hybrid search the mean of both.
    """
    tags: list[str]
    metadata: dict[str, Any]
    text: str
    location: LocationDict
    explain: ExplanationDict | None
    """Null unless the request has `explain`."""


class SearchPageDict(TypedDict):
    object: Literal["search_results.page"]
    query: str
    agent: str | None
    data: list[SearchResultDict]
    has_more: bool
    warnings: list[str]
    request_id: str
