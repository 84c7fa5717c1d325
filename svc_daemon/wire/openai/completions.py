"""OpenAI's chat completions API, and the models that it shares with responses."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field
from typing_extensions import TypedDict

from svc_daemon.wire.requests import AGENT, BUCKETS, FILTERS, PROPERTIES, RequestBody, ScopedBody
from svc_daemon.wire.sources import Freshness, Location

#: Fields of OpenAI's requests that would change an answer there, and have no effect here.
_UNHEEDED = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "max_output_tokens")
#: Other fields of OpenAI's requests, which don't limit what an answer may be about.
OPENAIS = (
    "audio", "frequency_penalty", "function_call", "functions", "include", "logit_bias", "logprobs", "max_tool_calls",
    "modalities", "moderation", "parallel_tool_calls", "prediction", "presence_penalty", "prompt", "prompt_cache_key",
    "prompt_cache_retention", "reasoning", "reasoning_effort", "response_format", "safety_identifier", "seed",
    "service_tier", "stop", "stream_options", "text", "tool_choice", "top_logprobs", "truncation", "verbosity",
    "web_search_options", *_UNHEEDED,
)  # fmt: skip
#: Names of fields that limit the search in other requests, and that requests for an answer refuse.
ANSWER_LIMITS: Mapping[str, str] = {**PROPERTIES, "scorethreshold": FILTERS}
#: The only kind of tool whose work the service does, whether it is sent or not.
_FILE_SEARCH = "file_search"


def list_unheeded(body: ScopedBody) -> tuple[str, ...]:
    """Return the fields of a request for an answer that have no effect, and would have one at OpenAI's service."""
    names = [name for name in _UNHEEDED if getattr(body, name, None) is not None]
    tools = getattr(body, "tools", None) or ()
    return (*names, *(["tools"] if any(tool.get("type") != _FILE_SEARCH for tool in tools) else []))


def in_parts(kind: str) -> Callable[[Any], Any]:
    """Return a validator that converts a string to a list with one part, whose type is `kind`."""
    return lambda sent: [{"type": kind, "text": sent}] if isinstance(sent, str) else sent


class Annotation(TypedDict):
    """A citation mark in the text, in OpenAI's format, with its quote."""

    type: Literal["file_citation"]
    #: The id of the source.
    file_id: str
    filename: str
    #: Character offset of the citation mark, such as `[1]`, in the answer's text.
    index: int
    #: The number in the citation mark: 1 for `[1]`.
    number: int
    quote: str
    location: Location


class AnswerSource(Freshness):
    """A quote that supports the answer, and its location."""

    #: The number in the citation marks for this source: 1 for `[1]`.
    number: int
    source_id: str
    chunk_id: str
    bucket_ids: list[str]
    filename: str
    title: str
    source_url: str | None
    #: The score of the passage that contains the quote.
    score: float
    #: The extracted text from `location.char_start` to `location.char_end`.
    quote: str
    #: The location of the quote, not of the whole passage.
    location: Location


class ChatPart(RequestBody):
    """A part of a message: text, or a refusal in an earlier answer."""

    type: Literal["text", "refusal"]
    text: str = ""


class ChatMessage(RequestBody):
    """One message of the conversation. A message without content, such as a tool call, counts as empty."""

    role: Literal["user", "assistant", "system", "developer", "tool", "function"]
    content: Annotated[
        list[ChatPart], BeforeValidator(in_parts("text"), json_schema_input_type=str | list[ChatPart])
    ] = Field(default_factory=list)


class StreamOptions(RequestBody):
    include_usage: bool = False


class ResponseFormat(RequestBody):
    type: Literal["text"] = "text"


class CompletionCreate(ScopedBody):
    """Body of `POST /v1/chat/completions`. Other parameters of OpenAI's API are ignored.

    Fields that would limit the search are never ignored. Synonyms, such as `bucket: "a"` for `buckets: ["a"]`, are
    accepted. Fields of other services, such as `vector_store_ids`, are refused. `warnings` names other unknown fields.
    """

    model_config = ConfigDict(extra="allow")

    scopes: ClassVar[Mapping[str, str]] = {AGENT: "model", BUCKETS: "buckets"}
    foreign_scopes: ClassVar[Mapping[str, str]] = ANSWER_LIMITS

    #: The model id of an agent, such as `svc-agent`.
    model: Annotated[str, Field(min_length=1)]
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    stream: bool = False
    stream_options: StreamOptions = Field(default_factory=StreamOptions)
    #: Search only these buckets (ids or slugs).
    buckets: list[str] | None = None
    #: How many answers to return; only 1 is supported.
    n: Literal[1] = 1
    #: Only plain text is supported.
    response_format: ResponseFormat = Field(default_factory=ResponseFormat)
    #: The following fields have no effect.
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    metadata: dict[str, str] | None = None
    store: bool | None = None
    tools: list[dict[str, Any]] | None = None
    user: str | None = None


class CompletionUsage(TypedDict):
    """How many tokens were used. Without a language model, words are counted instead."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class CompletionMessage(TypedDict):
    role: Literal["assistant"]
    content: str
    refusal: None
    annotations: list[Annotation]


class CompletionChoice(TypedDict):
    index: Literal[0]
    message: CompletionMessage
    logprobs: None
    finish_reason: Literal["stop", "length", "content_filter"]


class Completion(TypedDict):
    """One answer. The fields from `grounded` on are additions to OpenAI's format."""

    id: str
    object: Literal["chat.completion"]
    #: Unix time in seconds.
    created: int
    #: The model id, as in the request.
    model: str
    choices: list[CompletionChoice]
    usage: CompletionUsage
    system_fingerprint: None
    grounded: bool
    sources: list[AnswerSource]
    #: What the question names, such as `contract 61`, and rare words of it, that the answer lacks.
    unmatched: list[str]
    #: The nearest that was found, if the answer is not grounded.
    related: list[AnswerSource]
    #: Warnings of the search that found the passages, and that sources differ.
    warnings: list[str]
    request_id: str
