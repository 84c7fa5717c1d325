"""Types of responses. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Any, Literal, NotRequired, TypedDict

from svc_cli.client.types.answers import AnnotationDict, AnswerSourceDict


class AskOptions(TypedDict):
    instructions: NotRequired[str | None]
    """How to answer; used only if a model writes the answer."""
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
    """Number of tokens as reported by the model's server, or number of words if no model was used."""

    input_tokens: int
    input_tokens_details: InputTokensDetailsDict
    output_tokens: int
    output_tokens_details: OutputTokensDetailsDict
    total_tokens: int


class ResponseFaultDict(TypedDict):
    """Why a response failed, with a code that OpenAI's clients know.

    In a stream, an `error` event with the service's own code is sent before it.
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
    """One answer. The first group of fields is from OpenAI's API; those that don't apply here have neutral values."""

    id: str
    object: Literal["response"]
    created_at: int
    """When the response was begun, in Unix time in seconds."""
    completed_at: int | None
    """When the response was completed, in Unix time in seconds; null until then."""
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
    """Whether every sentence is supported by a passage that was found and is relevant enough; null until it is
    decided.
    """
    sources: list[AnswerSourceDict]
    warnings: list[str]
    """The `warnings` of the search for passages."""
    request_id: str
