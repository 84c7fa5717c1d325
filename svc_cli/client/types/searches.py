"""Types of searches. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Any, Literal, NotRequired, TypedDict

from svc_cli.client.types.sources import LocationDict


class SearchOptions(TypedDict):
    agent: NotRequired[str | None]
    """A model id, such as `svc-agent`. The agent's policy further limits what the API key may search."""
    buckets: NotRequired[list[str] | None]
    """Ids or slugs of the buckets to search; if omitted, all active buckets of the team."""
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
    """Inverse document frequency: the rarer the word is in the team's passages, the higher."""
    parts: list[Literal["title", "headings", "text"]]
    """The parts of the document in which the word occurs."""


class ExplainedKeywordDict(TypedDict):
    """The rank and scores of the passage in the keyword search."""

    rank: int
    bm25: float
    feedback: float | None
    """How similar the words of this passage are to those of the best passages (pseudo-relevance feedback), from 0 to
    1. Null if too few passages were found to compute it.
    """


class ExplainedMeaningDict(TypedDict):
    """The rank and similarity of the passage in the semantic search."""

    rank: int | None
    """The rank in the semantic search; null if only the keyword search found the passage."""
    cosine: float
    """Cosine similarity of the vectors of the query and the passage, from -1 to 1."""
    model: str
    """The model that computed both vectors."""


class ExplanationDict(TypedDict):
    """How the passage was found, and its scores."""

    rank: int
    """Rank in the results, from 1."""
    fused: float | None
    """The score by which a hybrid search ranks its results; null in other modes."""
    coverage: float
    """From 0 to 1: how much of the query the passage covers. This is the sum of its matching words' idf, divided by
    the sum of the idf of all words in the query.
    """
    terms: list[ExplainedTermDict]
    keyword: ExplainedKeywordDict | None
    """The match in the keyword search; null if the passage is not among its best."""
    semantic: ExplainedMeaningDict | None
    """The match in the semantic search; null if there was none, or if the passage has no vector."""


class SearchResultDict(TypedDict):
    source_id: str
    chunk_id: str
    bucket_ids: list[str]
    filename: str
    title: str
    source_url: str | None
    score: float
    """From 0 to 1, comparable between searches. In a keyword search, how much of the query the passage covers; in a
    semantic search, the cosine similarity, at least 0; in a hybrid search, the mean of both.
    """
    tags: list[str]
    metadata: dict[str, Any]
    text: str
    location: LocationDict
    explain: ExplanationDict | None
    """The explanation of the result; null unless the request has `explain`."""


class SearchPageDict(TypedDict):
    object: Literal["search_results.page"]
    query: str
    agent: str | None
    data: list[SearchResultDict]
    has_more: bool
    warnings: list[str]
    request_id: str
