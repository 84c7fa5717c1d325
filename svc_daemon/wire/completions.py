"""OpenAI's chat completions API. The field `model` names an agent."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field
from typing_extensions import TypedDict

from svc_daemon.wire.answers import Annotation, AnswerSource, in_parts
from svc_daemon.wire.requests import RequestBody
from svc_daemon.wire.scope_fields import AGENT, BUCKETS, ScopedBody


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
    accepted. Fields of other services, such as `vector_store_ids`, are refused.
    """

    scopes: ClassVar[Mapping[str, str]] = {AGENT: "model", BUCKETS: "buckets"}

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
    """One answer. `grounded`, `sources`, `warnings` and `request_id` are additions to OpenAI's format."""

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
    #: Warnings of the search that found the passages.
    warnings: list[str]
    request_id: str
