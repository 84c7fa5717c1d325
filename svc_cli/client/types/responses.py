"""Types of responses. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Any, Literal, NotRequired, TypedDict

from svc_cli.client.types.answers import AnnotationDict, AnswerSourceDict


class AskOptions(TypedDict):
    instructions: NotRequired[str | None]
    """Instructions on how to answer; used only if a language model writes the answer."""
    metadata: NotRequired[dict[str, str]]
    """Returned unchanged in the response."""
    buckets: NotRequired[list[str] | None]
    """Search only these buckets, given by id or slug."""


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
    """Number of tokens that the language model's server reports; without a model, number of words."""

    input_tokens: int
    input_tokens_details: InputTokensDetailsDict
    output_tokens: int
    output_tokens_details: OutputTokensDetailsDict
    total_tokens: int


class ResponseFaultDict(TypedDict):
    """Why a response failed, with an error code that OpenAI's clients know.

    In a stream, an `error` event with the service's own error code is sent first.
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
    """One answer. The fields of OpenAI's API come first; those that have no meaning here have neutral values."""

    id: str
    object: Literal["response"]
    created_at: int
    """When the answer was begun, as Unix time in seconds."""
    completed_at: int | None
    """When the answer was completed, as Unix time in seconds; null until then."""
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    background: bool
    error: ResponseFaultDict | None
    incomplete_details: IncompleteDetailsDict | None
    instructions: str | None
    max_output_tokens: int | None
    metadata: dict[str, str]
    model: str
    """The model id as given in the request."""
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
    """Whether every sentence is supported by a passage that was found and is relevant enough; null until this is
    known.
    """
    sources: list[AnswerSourceDict]
    warnings: list[str]
    """Warnings from the search for passages."""
    request_id: str
