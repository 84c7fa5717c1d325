"""OpenAI's Responses on the wire: what is taken, and the object that is given; the model is an agent's id."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from svc_daemon.wire.answers import Annotation, AnswerSource, in_parts
from svc_daemon.wire.models import WireModel
from svc_daemon.wire.requests import RequestBody
from svc_daemon.wire.scopes import AGENT, BUCKETS, ScopedBody


class InputPart(RequestBody):
    """A part of a message: text, or what an earlier answer said."""

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


#: What only makes sense where answers are stored.
Refused = BeforeValidator(_refuse, json_schema_input_type=None)


def _as_messages(sent: Any) -> Any:
    """A conversation; a text by itself is the question."""
    if not isinstance(sent, str | list):
        raise ValueError("must be a text, or a list of messages.")  # noqa: TRY004 - pydantic reports only this one
    return [{"role": "user", "content": sent}] if isinstance(sent, str) else sent


class ResponseCreate(ScopedBody):
    """Body of `POST /v1/responses`. Whatever else OpenAI takes is ignored, as every unknown field.

    But for names that mean a scope: `bucket: "a"` is taken for `buckets: ["a"]`, and `vector_store_ids` is refused.
    """

    scopes: ClassVar[Mapping[str, str]] = {AGENT: "model", BUCKETS: "buckets"}

    #: An agent's id, such as `svc-agent`.
    model: Annotated[str, Field(min_length=1)]
    #: The question, or the conversation up to it.
    input: Annotated[list[InputMessage], BeforeValidator(_as_messages, json_schema_input_type=str | list[InputMessage])]
    #: How to answer; only a model takes note of it.
    instructions: str | None = None
    stream: bool = False
    #: Given back as it came.
    metadata: dict[str, str] = Field(default_factory=dict)
    #: Only in these buckets, by id or slug.
    buckets: list[str] | None = None
    #: Nothing is stored that could be gone on from, or be waited for.
    previous_response_id: Annotated[None, Refused] = None
    conversation: Annotated[None, Refused] = None
    background: Literal[False] = False
    #: Answers are sentences.
    text: TextOptions = Field(default_factory=TextOptions)
    #: Taken and not used, but of these types.
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    store: bool | None = None
    tools: list[dict[str, Any]] | None = None
    user: str | None = None


class OutputText(WireModel):
    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[Annotation]
    logprobs: list[Any] = Field(default_factory=list, max_length=0)


class OutputMessage(WireModel):
    type: Literal["message"] = "message"
    id: str
    status: Literal["in_progress", "completed", "incomplete"]
    role: Literal["assistant"] = "assistant"
    content: list[OutputText]


class InputTokensDetails(WireModel):
    cached_tokens: int = 0
    cache_write_tokens: int = 0


class OutputTokensDetails(WireModel):
    reasoning_tokens: int = 0


class ResponseUsage(WireModel):
    """Tokens as the model's server counted them; words, where no model was asked."""

    input_tokens: int
    input_tokens_details: InputTokensDetails = Field(default_factory=InputTokensDetails)
    output_tokens: int
    output_tokens_details: OutputTokensDetails = Field(default_factory=OutputTokensDetails)
    total_tokens: int


class ResponseFault(WireModel):
    """Why a response failed, in the words of OpenAI's client; the event before it has the service's own code."""

    code: Literal["server_error"] = "server_error"
    message: str


class IncompleteDetails(WireModel):
    reason: Literal["max_output_tokens", "content_filter"]


class PlainText(WireModel):
    type: Literal["text"] = "text"


class TextConfig(WireModel):
    format: PlainText = Field(default_factory=PlainText)


class Response(WireModel):
    """One answer. The first group is OpenAI's; what asks for nothing here has its neutral value."""

    id: str
    object: Literal["response"] = "response"
    #: Seconds since 1970, as the next one.
    created_at: int
    completed_at: int | None = None
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    background: bool = False
    error: ResponseFault | None = None
    incomplete_details: IncompleteDetails | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    metadata: dict[str, str] = Field(default_factory=dict)
    #: As it was sent.
    model: str
    output: list[OutputMessage]
    parallel_tool_calls: bool = False
    previous_response_id: str | None = None
    store: bool = False
    temperature: float | None = None
    text: TextConfig = Field(default_factory=TextConfig)
    tool_choice: Literal["none"] = "none"
    tools: list[Any] = Field(default_factory=list, max_length=0)
    top_p: float | None = None
    truncation: Literal["disabled"] = "disabled"
    usage: ResponseUsage | None = None
    user: str | None = None

    #: Every sentence rests on a passage that was found and scored enough. Null while it is not decided.
    grounded: bool | None = None
    sources: list[AnswerSource] = Field(default_factory=list)
    #: Warnings of the search behind the answer, as in its own `warnings`.
    warnings: list[str] = Field(default_factory=list)
    request_id: str
