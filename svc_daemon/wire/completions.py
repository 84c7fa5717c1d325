"""OpenAI's chat completions on the wire: what is taken, and the objects that are given; the model is an agent's id."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from svc_daemon.wire.answers import Annotation, AnswerSource, in_parts
from svc_daemon.wire.models import WireModel
from svc_daemon.wire.requests import RequestBody
from svc_daemon.wire.scopes import AGENT, BUCKETS, ScopedBody


class ChatPart(RequestBody):
    """A part of a message: text, or what an earlier answer said."""

    type: Literal["text", "refusal"]
    text: str = ""


class ChatMessage(RequestBody):
    """One message of the conversation; one without content, such as a call of a tool, is empty."""

    role: Literal["user", "assistant", "system", "developer", "tool", "function"]
    content: Annotated[
        list[ChatPart], BeforeValidator(in_parts("text"), json_schema_input_type=str | list[ChatPart])
    ] = Field(default_factory=list)


class StreamOptions(RequestBody):
    include_usage: bool = False


class ResponseFormat(RequestBody):
    type: Literal["text"] = "text"


class CompletionCreate(ScopedBody):
    """Body of `POST /v1/chat/completions`. Whatever else OpenAI takes is ignored, as every unknown field.

    But for names that mean a scope: `bucket: "a"` is taken for `buckets: ["a"]`, and `vector_store_ids` is refused.
    """

    scopes: ClassVar[Mapping[str, str]] = {AGENT: "model", BUCKETS: "buckets"}

    #: An agent's id, such as `svc-agent`.
    model: Annotated[str, Field(min_length=1)]
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    stream: bool = False
    stream_options: StreamOptions = Field(default_factory=StreamOptions)
    #: Only in these buckets, by id or slug.
    buckets: list[str] | None = None
    #: There is one answer, and it is sentences.
    n: Literal[1] = 1
    response_format: ResponseFormat = Field(default_factory=ResponseFormat)
    #: Taken and not used, but of these types.
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    metadata: dict[str, str] | None = None
    store: bool | None = None
    tools: list[dict[str, Any]] | None = None
    user: str | None = None


class CompletionUsage(WireModel):
    """Tokens as the model's server counted them; words, where no model was asked."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class CompletionMessage(WireModel):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: list[Annotation]


class CompletionChoice(WireModel):
    index: Literal[0] = 0
    message: CompletionMessage
    logprobs: None = None
    finish_reason: Literal["stop", "length", "content_filter"]


class Completion(WireModel):
    """One answer; `grounded`, `sources` and `request_id` are added to OpenAI's fields."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    #: Seconds since 1970.
    created: int
    #: As it was sent.
    model: str
    choices: list[CompletionChoice]
    usage: CompletionUsage
    system_fingerprint: None = None
    grounded: bool
    sources: list[AnswerSource]
    #: Warnings of the search behind the answer, as in its own `warnings`.
    warnings: list[str]
    request_id: str
