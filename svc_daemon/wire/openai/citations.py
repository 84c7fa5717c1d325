"""Models of the check of an answer's quotes and citations."""

from typing import Annotated, Literal, Self

from pydantic import AliasChoices, Field, model_validator
from typing_extensions import TypedDict

from svc_daemon.wire.requests import RequestBody

#: Maximum length of an answer to check, in characters, and its maximum number of quotes.
MOST_CHECKED, MOST_QUOTES = 200_000, 1000


class QuotedPlace(RequestBody):
    """Where a quote is, as an answer says it. A page, or lines, that are left out are not checked."""

    char_start: int
    char_end: int
    page: int | None = None
    line_start: int | None = None
    line_end: int | None = None
    headings: list[str] = Field(default_factory=list)


class QuoteToCheck(RequestBody):
    """A quote that an answer cites, and what is above it in its document.

    With a source and a location, as the `sources` of an answer have them, the quote is also proven.
    """

    #: The number in the citation marks for it: 1 for `[1]`.
    number: int
    quote: str
    title: str = ""
    #: By default, those of the location.
    headings: list[str] = Field(default_factory=list)
    source_id: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    location: QuotedPlace | None = None

    @model_validator(mode="after")
    def _with_both(self) -> Self:
        if (self.source_id is None) != (self.location is None):
            raise ValueError("source_id and location come together")
        if self.location is not None:
            self.headings = self.headings or self.location.headings
        return self


class QuotesCheck(RequestBody):
    """Body of `POST /v1/citations/verify`."""

    #: The answer, with its citation marks; without it, quotes are only proven.
    text: Annotated[str, Field(max_length=MOST_CHECKED)] = ""
    #: May also be sent as `sources`, as an answer has them.
    quotes: Annotated[
        list[QuoteToCheck], Field(max_length=MOST_QUOTES, validation_alias=AliasChoices("quotes", "sources"))
    ]
    #: What was asked; an answer may repeat it.
    question: str = ""


ProofResult = Literal["proven", "not_found", "elsewhere", "bytes_changed", "bytes_lost", "unreadable", "source_gone"]


class CheckedQuote(TypedDict):
    """Whether a quote is in its source, and whether the sentences that cite it say what it says."""

    number: int
    #: Null if the quote was sent without its source.
    proven: bool | None
    #: `proven`, or why it isn't; null if the quote was sent without its source.
    proof: (
        Literal["proven", "not_found", "elsewhere", "bytes_changed", "bytes_lost", "unreadable", "source_gone"] | None
    )
    #: The proof in words.
    reason: str | None
    #: `not_judged` if no sentence cites the quote, or one with too few of its words, or if the quote is not proven.
    result: Literal["supported", "changed", "not_judged"]
    #: What the sentences changed: a number with its unit, a code, a name, or the clause that denies the quote.
    changes: list[str]


class CheckedQuotes(TypedDict):
    object: Literal["citation_checks"]
    data: list[CheckedQuote]
    #: Numbers in citation marks of the text that no quote has.
    unknown_marks: list[int]
    request_id: str
