"""Types of completions. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Literal, TypedDict

from svc_cli.client.types.answers import Annotation, AnswerSource


class CompletionUsage(TypedDict):
    """Number of tokens as reported by the model's server, or number of words if no model was used."""

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
    """One answer; `grounded`, `sources` and `request_id` are added to OpenAI's fields."""

    id: str
    object: Literal["chat.completion"]
    created: int
    """Unix time in seconds."""
    model: str
    """The model id as given in the request."""
    choices: list[CompletionChoice]
    usage: CompletionUsage
    system_fingerprint: None
    grounded: bool
    sources: list[AnswerSource]
    warnings: list[str]
    """The `warnings` of the search for passages."""
    request_id: str
