"""Types of responses. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Any, Literal, NotRequired, TypedDict

from svc_cli.client.types.answers import AnnotationDict, AnswerSourceDict


class AskOptions(TypedDict):
    instructions: NotRequired[str | None]
    """Instructions for the language model. Without a language model, they are ignored."""
    metadata: NotRequired[dict[str, str]]
    """Returned unchanged in the response."""
    buckets: NotRequired[list[str] | None]
    """Search only these buckets (ids or slugs)."""


class OutputTextDict(TypedDict):
    type: Literal["output_text"]
    text: str
    annotations: list[AnnotationDict]
    logprobs: list[Any]


class OutputMessageDict(TypedDict):
    type: Literal["message"]
    id: str
    status: Literal["in_progress", "completed", "incomplete"]
    role: Literal["assistant"]
    content: list[OutputTextDict]


class InputTokensDetailsDict(TypedDict):
    cached_tokens: int
    cache_write_tokens: int


class OutputTokensDetailsDict(TypedDict):
    reasoning_tokens: int


class ResponseUsageDict(TypedDict):
    """How many tokens were used. Without a language model, words are counted instead."""

    input_tokens: int
    input_tokens_details: InputTokensDetailsDict
    output_tokens: int
    output_tokens_details: OutputTokensDetailsDict
    total_tokens: int


class ResponseFaultDict(TypedDict):
    """Why a response failed. `code` is an error code of OpenAI's API.

    In a stream, an `error` event with the service's own error code comes first.
    """

    code: Literal["server_error"]
    message: str


class IncompleteDetailsDict(TypedDict):
    reason: Literal["max_output_tokens", "content_filter"]


class PlainTextDict(TypedDict):
    type: Literal["text"]


class TextConfigDict(TypedDict):
    format: PlainTextDict


class ResponseDict(TypedDict):
    """One answer, in OpenAI's format. Fields that this service doesn't use have fixed values."""

    id: str
    object: Literal["response"]
    created_at: int
    """When the service began to answer, in Unix seconds."""
    completed_at: int | None
    """When the answer was completed, in Unix seconds; null until then."""
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    background: bool
    error: ResponseFaultDict | None
    incomplete_details: IncompleteDetailsDict | None
    instructions: str | None
    max_output_tokens: int | None
    metadata: dict[str, str]
    model: str
    """The model id, as in the request."""
    output: list[OutputMessageDict]
    parallel_tool_calls: bool
    previous_response_id: str | None
    store: bool
    temperature: float | None
    text: TextConfigDict
    tool_choice: Literal["none"]
    tools: list[Any]
    top_p: float | None
    truncation: Literal["disabled"]
    usage: ResponseUsageDict | None
    user: str | None
    grounded: bool | None
    """Whether every sentence of the answer is supported by a relevant passage; null until this is known."""
    sources: list[AnswerSourceDict]
    warnings: list[str]
    """Warnings of the search that found the passages."""
    request_id: str
