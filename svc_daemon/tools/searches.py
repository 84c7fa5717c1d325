"""`svc-search` finds passages that match a query, each with a location to cite; `svc-ask` answers from them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field, field_validator

from svc_daemon.tools.api_calls import Call, ToolService
from svc_daemon.tools.arguments import Arguments, Named, ToolResult
from svc_daemon.wire import Json
from svc_daemon.wire.requests import AGENT, BUCKETS, ScopedBody
from svc_daemon.wire.searches import SEARCH_SCOPES, SearchRequest


class Search(Arguments, ScopedBody):
    """Arguments of `svc-search`."""

    scopes: ClassVar[Mapping[str, str]] = SEARCH_SCOPES
    plain_scopes: ClassVar[Mapping[str, str]] = SearchRequest.plain_scopes
    foreign_scopes: ClassVar[Mapping[str, str]] = SearchRequest.foreign_scopes

    query: str = Field(description="What to find: keywords or a question.")
    buckets: Named = Field(default_factory=list, description="Search only these buckets, given by slug or id.")
    agent: str = Field("", description="Search what this agent may search; a model id such as svc-agent:support.")
    source_ids: Named = Field(default_factory=list, description="Search only these sources (src_…).")
    tags: list[str] = Field(default_factory=list, description="Search only sources that have all of these tags.")
    filters: Json = Field(
        default_factory=dict,
        min_length=1,
        description=(
            "Search only sources whose metadata match: {type, key, value} with type eq, ne, gt, gte, lt, lte, in or "
            "nin; or {type: and | or, filters: […]}."
        ),
    )
    max_num_results: Annotated[int, Field(ge=1)] = Field(10, description="Maximum number of passages, 1 to 50.")
    mode: Literal["hybrid", "keyword", "semantic"] = Field(
        "hybrid", description="Match by words (keyword), by meaning (semantic), or by both."
    )
    score_threshold: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="Omit passages with a lower score, 0 to 1."
    )

    def body(self) -> Json:
        """Build the body of `POST /v1/search`, without unset fields."""
        return self.model_dump(exclude_defaults=True)


class CitedPlace(BaseModel):
    """The location of a passage. Fields that don't apply to the file format are null."""

    source_id: str
    title: str
    filename: str
    source_url: str | None
    page: int | None
    line_start: int | None
    line_end: int | None
    headings: list[str]
    #: The location as text, such as `Handbook (handbook.pdf), page 3`.
    citation: str


class FoundPassage(CitedPlace):
    """A passage that was found."""

    #: How well the passage matches the query, 0 to 1.
    score: float
    passage: str
    bucket_ids: list[str]


class Passages(ToolResult):
    """The found passages, best first."""

    results: list[FoundPassage]
    has_more: bool
    warnings: list[str]

    def text(self) -> str:
        """Format the passages as numbered blocks."""
        blocks = [
            f"[{number}] {one.citation} (source {one.source_id}, score {one.score:.2f})\n{_quoted(one.passage)}"
            for number, one in enumerate(self.results, start=1)
        ]
        parts = [*blocks, *(f"Warning: {warning}" for warning in self.warnings)]
        return "\n\n".join(parts) or "Nothing was found."


async def search(service: ToolService, asked: Search) -> Passages:
    """Search for passages. Raises CallFailed with the errors of `POST /v1/search`."""
    page = (await service.call(Call(method="POST", path="/v1/search", body=asked.body()))).body
    results = [
        FoundPassage(**place_of(hit), score=hit["score"], passage=hit["text"], bucket_ids=hit["bucket_ids"])
        for hit in page["data"]
    ]
    return Passages(results=results, has_more=page["has_more"], warnings=page["warnings"])


def place_of(hit: Json) -> Json:
    """Extract the fields of a CitedPlace from a search result or a cited source."""
    location = hit["location"]
    source = {name: hit.get(name) for name in ("source_id", "title", "filename", "source_url")}
    place = {name: location[name] for name in ("page", "line_start", "line_end", "headings")}
    doubt = " (may be outdated)" if hit.get("stale") else ""
    return {**source, **place, "citation": cite(source, location) + doubt}


def cite(source: Json, location: Json) -> str:
    """Format title, file and location as a citation."""
    title, filename = source["title"], source["filename"]
    named = filename if title == filename else f"{title} ({filename})"
    first, last = location["line_start"], location["line_end"]
    if location["page"]:
        scanned = " (recognised in a scan)" if location.get("ocr") else ""
        return f"{named}, page {location['page']}{scanned}"
    if not first:
        return named
    return f"{named}, line {first}" if last in (first, None) else f"{named}, lines {first}-{last}"


def _quoted(text: str) -> str:
    """Mark each line as quoted, since the text of a document may look like a result or a warning."""
    return "\n".join(f"> {line}" for line in text.splitlines())


#: Maximum wait for the response, longer than the service's own time limit for a language model.
SILENCE_S = 600.0
#: Note on an answer with citations that is not grounded.
PARTLY = "Not grounded: some sentences are not supported by a source. Read the quotes before relying on it."
#: Note on an answer without citations.
NOT_AT_ALL = "Not grounded: the sources do not answer this."


class AskArguments(Arguments, ScopedBody):
    """Arguments of `svc-ask`."""

    scopes: ClassVar[Mapping[str, str]] = {AGENT: "agent", BUCKETS: "buckets"}
    plain_scopes: ClassVar[Mapping[str, str]] = {"model": AGENT}
    foreign_scopes: ClassVar[Mapping[str, str]] = {"models": AGENT}

    question: str = Field(description="The question, as a complete sentence.")
    agent: str = Field(
        "svc-agent",
        description="The model id of the agent that answers from its buckets, such as svc-agent:support.",
    )
    buckets: Named = Field(default_factory=list, description="Answer only from these buckets, given by slug or id.")

    @field_validator("question")
    @classmethod
    def _said(cls, question: str) -> str:
        """Refuse an empty question. The API's error would name a field that the tool doesn't have."""
        if not question.strip():
            raise ValueError("The question is empty.")
        return question

    def body(self) -> dict[str, Any]:
        """Build the body of `POST /v1/responses`."""
        return {"model": self.agent, "input": self.question, **({"buckets": self.buckets} if self.buckets else {})}


class AnswerCitation(CitedPlace):
    """The source and the quote that a citation mark refers to."""

    #: The number in the citation mark: 1 for `[1]`.
    number: int
    #: The exact words of the source.
    quote: str

    @property
    def line(self) -> str:
        return f"{self.citation} (source {self.source_id}): “{' '.join(self.quote.split())}”"


class Answered(ToolResult):
    """The result of `svc-ask`: an answer with its citations."""

    answer: str
    #: Whether every sentence of the answer is supported by a quote. If not, don't rely on the answer.
    grounded: bool
    citations: list[AnswerCitation]
    #: What the question names that the answer lacks.
    unmatched: list[str] = Field(default_factory=list)
    #: The nearest that was found, if the answer is not grounded: about something else than was asked.
    related: list[AnswerCitation] = Field(default_factory=list)
    #: Warnings of the search that found the passages.
    warnings: list[str]

    def text(self) -> str:
        """Format the answer, with one line per citation."""
        cited = [f"[{one.number}] {one.line}" for one in self.citations]
        lacking = [f"Nothing about: {', '.join(self.unmatched)}."] if self.unmatched else []
        near = [f"Related, but not an answer: {one.line}" for one in self.related]
        doubt = [] if self.grounded else [PARTLY if self.citations else NOT_AT_ALL]
        warned = [f"Warning: {warning}" for warning in self.warnings]
        return "\n".join([_quoted(self.answer), *doubt, *lacking, *cited, *near, *warned])


async def ask(service: ToolService, asked: AskArguments) -> Answered:
    """Ask the question. Raises CallFailed with the errors of `POST /v1/responses`."""
    call = Call(method="POST", path="/v1/responses", body=asked.body(), silence_s=SILENCE_S)
    response = (await service.call(call)).body
    said = [part["text"] for message in response["output"] for part in message["content"]]
    return Answered(
        answer="\n".join(said),
        grounded=bool(response["grounded"]),
        citations=_cite(response["sources"]),
        # Older services don't send the rest.
        unmatched=response.get("unmatched") or [],
        related=_cite(response.get("related") or []),
        warnings=response.get("warnings") or [],
    )


def _cite(sources: Sequence[Json]) -> list[AnswerCitation]:
    return [AnswerCitation(**place_of(source), number=source["number"], quote=source["quote"]) for source in sources]
