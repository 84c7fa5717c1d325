"""`svc-ask`: answers a question from the sources, with supporting quotes."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field, field_validator

from svc_daemon.tools.api_calls import Call, ToolService
from svc_daemon.tools.arguments import Arguments, Named, ToolResult
from svc_daemon.tools.searches import CitedPlace, place_of
from svc_daemon.wire import Json
from svc_daemon.wire.requests import AGENT, BUCKETS, ScopedBody

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
        return f"{self.citation} (source {self.source_id}): “{self.quote}”"


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
        return "\n".join([self.answer, *doubt, *lacking, *cited, *near, *warned])


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
