"""OpenAI's Responses API. The field `model` names an agent."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field
from typing_extensions import TypedDict

from svc_daemon.wire.openai.completions import ANSWER_LIMITS, Annotation, AnswerSource, in_parts
from svc_daemon.wire.requests import AGENT, BUCKETS, RequestBody, ScopedBody


class InputPart(RequestBody):
    """A part of a message: text, or a refusal in an earlier answer."""

    type: Literal["input_text", "output_text", "refusal"]
    text: str = ""


class InputMessage(RequestBody):
    """One message of the conversation."""

    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: Annotated[
        list[InputPart], BeforeValidator(in_parts("input_text"), json_schema_input_type=str | list[InputPart])
    ]


class TextFormat(RequestBody):
    type: Literal["text"] = "text"


class TextOptions(RequestBody):
    format: TextFormat = Field(default_factory=TextFormat)


def _refuse(_: Any) -> None:
    raise ValueError("No answer is stored: send the conversation as input instead.")


#: Validator for fields that refer to earlier responses. It refuses every value, since responses aren't stored.
Refused = BeforeValidator(_refuse, json_schema_input_type=None)


def _as_messages(sent: Any) -> Any:
    """Convert a plain string to a conversation with one message."""
    if not isinstance(sent, str | list):
        raise ValueError("must be a string, or a list of messages.")  # noqa: TRY004 - pydantic reports only this one
    return [{"role": "user", "content": sent}] if isinstance(sent, str) else sent


class ResponseCreate(ScopedBody):
    """Body of `POST /v1/responses`. Other parameters of OpenAI's API are ignored.

    Fields that would limit the search are never ignored. Synonyms, such as `bucket: "a"` for `buckets: ["a"]`, are
    accepted. Fields of other services, such as `vector_store_ids`, are refused. `warnings` names other unknown fields.
    """

    model_config = ConfigDict(extra="allow")

    scopes: ClassVar[Mapping[str, str]] = {AGENT: "model", BUCKETS: "buckets"}
    foreign_scopes: ClassVar[Mapping[str, str]] = ANSWER_LIMITS

    #: The model id of an agent, such as `svc-agent`.
    model: Annotated[str, Field(min_length=1)]
    #: The question, or a conversation that ends with the question.
    input: Annotated[list[InputMessage], BeforeValidator(_as_messages, json_schema_input_type=str | list[InputMessage])]
    #: Instructions for the language model. Without a language model, they are ignored.
    instructions: str | None = None
    stream: bool = False
    #: Returned unchanged in the response.
    metadata: dict[str, str] = Field(default_factory=dict)
    #: Search only these buckets (ids or slugs).
    buckets: list[str] | None = None
    #: For this field and the next two, only the default is accepted, since responses are not stored.
    previous_response_id: Annotated[None, Refused] = None
    conversation: Annotated[None, Refused] = None
    background: Literal[False] = False
    #: Only plain text is supported.
    text: TextOptions = Field(default_factory=TextOptions)
    #: The following fields have no effect.
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    store: bool | None = None
    tools: list[dict[str, Any]] | None = None
    user: str | None = None


MessageStatus = Literal["in_progress", "completed", "incomplete"]
ResponseStatus = Literal["in_progress", "completed", "incomplete", "failed"]
#: A list that is always empty.
NoItems = Annotated[list[Any], Field(max_length=0)]


class OutputText(TypedDict):
    type: Literal["output_text"]
    text: str
    annotations: list[Annotation]
    logprobs: NoItems


class OutputMessage(TypedDict):
    type: Literal["message"]
    id: str
    status: MessageStatus
    role: Literal["assistant"]
    content: list[OutputText]


class InputTokensDetails(TypedDict):
    cached_tokens: int
    cache_write_tokens: int


class OutputTokensDetails(TypedDict):
    reasoning_tokens: int


class ResponseUsage(TypedDict):
    """How many tokens were used. Without a language model, words are counted instead."""

    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int


class ResponseFault(TypedDict):
    """Why a response failed. `code` is an error code of OpenAI's API.

    In a stream, an `error` event with the service's own error code comes first.
    """

    code: Literal["server_error"]
    message: str


class IncompleteDetails(TypedDict):
    reason: Literal["max_output_tokens", "content_filter"]


class PlainText(TypedDict):
    type: Literal["text"]


class TextConfig(TypedDict):
    format: PlainText


class Response(TypedDict):
    """One answer, in OpenAI's format. Fields that this service doesn't use have fixed values."""

    id: str
    object: Literal["response"]
    #: When the service began to answer, in Unix seconds.
    created_at: int
    #: When the answer was completed, in Unix seconds; null until then.
    completed_at: int | None
    status: ResponseStatus
    background: bool
    error: ResponseFault | None
    incomplete_details: IncompleteDetails | None
    instructions: str | None
    max_output_tokens: int | None
    metadata: dict[str, str]
    #: The model id, as in the request.
    model: str
    output: list[OutputMessage]
    parallel_tool_calls: bool
    previous_response_id: str | None
    store: bool
    temperature: float | None
    text: TextConfig
    tool_choice: Literal["none"]
    tools: NoItems
    top_p: float | None
    truncation: Literal["disabled"]
    usage: ResponseUsage | None
    user: str | None

    #: Whether every sentence of the answer is supported by a relevant passage; null until this is known.
    grounded: bool | None
    sources: list[AnswerSource]
    #: What the question names, such as `contract 61`, and rare words of it, that the answer lacks.
    unmatched: list[str]
    #: The nearest that was found, if the answer is not grounded.
    related: list[AnswerSource]
    #: Warnings of the search that found the passages, and that sources differ.
    warnings: list[str]
    request_id: str
